"""Who else can reach the rendezvous.

The c10d store takes no password and its state is unpickled: whoever reaches the port runs code in every rank
(https://github.com/pytorch/pytorch/blob/main/SECURITY.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.rendezvous.ports import port_of
from argosy.workflows.lint.rules.rendezvous.services import talks
from argosy.workflows.lint.view.network import NetworkPolicy
from argosy.workflows.lint.view.service import Service
from argosy.workflows.lint.view.workload import Workload

_DEFAULT_PORTS = frozenset({29400, 29500, 23456})


@rule("REND070", Level.ERROR, on=Document)
def outside(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """The rendezvous port behind a Service that the world outside of the cluster reaches."""
    if document.kind != "Service" or not Service(document).external:
        return
    found = Service(document)
    for workload, role in bundle.selected(found.selector) if found.selector.entries else ():
        if not found.selects(workload, role, bundle) or not talks(workload, bundle):
            continue
        told = {port[1] for each in talks(workload, bundle) if (port := port_of(each)) is not None}
        for node, number in found.ports():
            if number in (told or _DEFAULT_PORTS):
                yield Problem(
                    node,
                    f"a {found.spec['type'].text} puts the rendezvous port {number} outside of the cluster: "
                    "its store takes no password and executes what it is sent",
                    "make the Service headless (clusterIP: None), without a type",
                )
                return


@rule("REND071", Level.NOTE, on=Workload)
def on_the_node(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The rendezvous on the node's own network."""
    found = talks(workload, bundle)
    role = next((each.role for each in found if each.role.pod.host_network), None)
    if role is not None:
        yield Problem(
            role.pod.spec["hostNetwork"],
            "the rendezvous listens on the node's own address, where no NetworkPolicy holds: its store takes no "
            "password, and two runs on one node need two ports",
            "firewall the nodes, and give each run a master port of its own",
        )


@rule("REND072", Level.ERROR, on=Document)
def some_ports_only(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A NetworkPolicy that keeps ranks from each other, on the ports that they choose or on all."""
    if document.kind != "NetworkPolicy":
        return
    policy = NetworkPolicy(document)
    for workload, role in policy.pods(bundle):
        talking = bool(talks(workload, bundle))
        if not (workload.gang or talking) or not (workload.gpus or talking):
            continue
        closed = policy.closed(workload, role, bundle)
        if closed is None:
            continue
        ports = closed.key == "ports"
        yield Problem(
            closed,
            "ranks reach each other on these ports only: NCCL and Gloo listen on ports that the kernel chooses, so "
            "the rendezvous succeeds and the first collective hangs"
            if ports
            else f"no rule of this policy lets the pods of {workload.document.name} reach each other, and no "
            "other policy among the files given does",
            "allow all ports between the pods of the run: a from/to rule with their labels and no ports",
            level=None if ports else Level.WARNING,
        )
        return
