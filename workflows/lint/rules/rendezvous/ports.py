"""The port at which rank 0 waits."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launch import Given, Launch
from argosy.workflows.manifests.service import service
from argosy.workflows.manifests.workload import Workload


def port_of(launch: Launch) -> tuple[Given, int] | None:
    """(where, port) that the ranks dial; None when it is the default, or not known."""
    if launch.torch:
        endpoint = launch.setting("rdzv-endpoint")
        if endpoint is not None:
            master = launch.master
            return (endpoint, master[1].port) if master is not None and master[1].port is not None else None
        given = launch.setting("master-port")
    elif launch.program == "accelerate":
        given = launch.option("main-process-port") or launch.variable("MASTER_PORT")
    else:
        given = launch.option("master-port") or launch.variable("MASTER_PORT")
    return (given, given.number) if given is not None and given.number is not None else None


@rule("REND060", Level.ERROR, on=Workload)
def different_ports(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Ranks of one training that dial two ports of one host."""
    first: dict[str, tuple[Launch, int]] = {}
    for each in bundle.launches(workload):
        found, master = port_of(each), each.master
        if found is None or master is None or workload.family in ("argo", "pod"):
            continue
        given, port = found
        other = first.setdefault(master[1].host, (each, port))
        if other[1] != port and other[0].role is not each.role and other[0].program == each.program:
            yield Problem(
                given.node,
                f"{each.role.name} dials port {port} of {master[1].host}, and {other[0].role.name} port {other[1]}",
                f"write one port: {other[1]}",
                inside=given.inside,
            )


@rule("REND061", Level.ERROR, on=Workload)
def port_of_service(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A Service with an address of its own forwards the ports that it lists, and no others."""
    for each in bundle.launches(workload):
        found, master = port_of(each), each.master
        if found is None or master is None or (not each.several_nodes and master[1].loopback):
            continue
        held = service(bundle, master[1].host, workload.document)
        if (
            held is None
            or held.headless
            or held.external
            or held.spec["clusterIP"].text == "None"
            or not held.spec["ports"].items
        ):
            continue
        given, port = found
        listed = [item["port"].number for item in held.spec["ports"]]
        if port not in listed and None not in listed:
            yield Problem(
                given.node,
                f"the ranks dial port {port} of the Service {master[1].host}, which forwards "
                f"{', '.join(str(number) for number in listed)} only",
                f"add port {port} to the Service, or make it headless",
                inside=given.inside,
            )
