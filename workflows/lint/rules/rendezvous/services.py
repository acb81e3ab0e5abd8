"""The headless Service that gives pods their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from argosy.workflows.lint.finding import AddKey, Level, Problem, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launch import Launch
from argosy.workflows.manifests.names import pod_names
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.service import Service, service
from argosy.workflows.manifests.workload import Workload


class Named(NamedTuple):
    """A role whose pods are named by a Service that somebody must write."""

    role: Role
    node: Node
    """``subdomain`` or ``serviceName``."""


def _own_names(workload: Workload) -> Iterator[Named]:
    for role in workload.roles:
        spec = role.template["spec"]
        if workload.document.kind == "StatefulSet":
            node = workload.spec["serviceName"]
        elif workload.family in ("job", "pod", "other"):
            node = spec["subdomain"]
        else:
            continue
        if node.text and not node.open:
            yield Named(role, node)


def talks(workload: Workload, bundle: Bundle) -> list[Launch]:
    """The commands that must find other pods: told of several nodes, or of a master elsewhere."""
    found = []
    for each in bundle.launches(workload):
        master = each.master
        if each.several_nodes or (master is not None and not master[1].loopback):
            found.append(each)
    return found


@rule("REND001", Level.ERROR, on=Workload)
def subdomain(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """An Indexed Job sets its pods' hostname and not their subdomain: without one there is no DNS record."""
    if workload.family != "job" or workload.document.kind != "Job" or not workload.gang:
        return
    for role in workload.roles:
        spec = role.template["spec"]
        names = pod_names(workload, role)
        if names is None or names.subdomains or spec["subdomain"].exists:
            continue
        dialled = [each.master for each in talks(workload, bundle) if each.master is not None]
        own = [address for _, address in dialled if names.has(address.host)]
        if not own and (dialled or not talks(workload, bundle)):
            continue
        yield Problem(
            spec["subdomain"],
            "an Indexed Job of several pods without a subdomain: its pods have no DNS names",
            "set spec.template.spec.subdomain to the name of a headless Service that selects these pods",
            level=None if any(each.service for each in own) else Level.WARNING,  # else a Service may have the name
        )


@rule("REND002", Level.ERROR, on=Workload)
def headless(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The Service that a subdomain names has an address of its own: it makes no records for pods."""
    for named in _own_names(workload):
        found = service(bundle, named.node.text, workload.document)
        if found is None or found.headless or not (workload.gang or talks(workload, bundle)):
            continue
        held = found.spec["clusterIP"]
        yield Problem(
            held if held.exists else found.spec,
            f"pods take their names from the Service {named.node.text}, which is not headless: they get no DNS records",
            "write clusterIP: None",
            level=_dialled_level(named, workload, bundle),
            edits=[]
            if found.external
            else [SetValue(held, "None") if held.exists else AddKey(found.spec, "clusterIP", "None")],
        )


def _dialled_level(named: Named, workload: Workload, bundle: Bundle) -> Level | None:
    """The rule's own where a command dials a name of the Service's; who dials none does without."""
    masters = [each.master for each in talks(workload, bundle)]
    return None if any(each and each[1].service == named.node.text for each in masters) else Level.NOTE


@rule("REND003", Level.WARNING, on=Workload)
def not_ready_addresses(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The names of pods that are not ready yet."""
    seen: set[int] = set()
    others = any(each.nodes is None or each.several_nodes for each in talks(workload, bundle))
    for role, found in [
        *((named.role, found) for named, found in _found(workload, bundle)),
        *_dialled(workload, bundle),
    ]:
        flag = found.spec["publishNotReadyAddresses"]
        if not found.headless or flag.flag is True or flag.open or not others:
            continue
        if id(found.document) in seen:
            continue
        seen.add(id(found.document))
        probe = next((each for each in role.pod.containers if each.node["readinessProbe"]), None)
        waits = f", and {probe.name or 'a container'} has a readiness probe that waits for the others" if probe else ""
        add = SetValue(flag, True) if flag.exists else AddKey(found.spec, "publishNotReadyAddresses", True)
        yield Problem(
            flag if flag.exists else found.spec,
            f"a rank's name resolves only when its pod is ready{waits}: the others fail to find it, and DNS servers "
            "remember that",
            "write publishNotReadyAddresses: true",
            edits=[add] if found.spec.is_mapping else (),
        )


@rule("REND004", Level.WARNING, on=Workload)
def selector(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The Service that a subdomain names selects other pods."""
    for named, found in _found(workload, bundle):
        if not (workload.gang or talks(workload, bundle)) or found.selects(workload, named.role, bundle):
            continue
        if found.selector.entries:
            message = f"the Service {named.node.text} selects none of the pods that take their names from it"
        else:
            message = (
                f"the Service {named.node.text} has no selector, so the pods that take their names from it get none"
            )
        yield Problem(
            found.selector if found.selector.exists else found.spec,
            message,
            f"select labels that the pod template of {workload.document.kind} {workload.document.name} has"
            + (", or batch.kubernetes.io/job-name" if workload.family == "job" else ""),
            level=_dialled_level(named, workload, bundle),
        )


@rule("REND005", Level.NOTE, on=Workload)
def missing(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Nobody makes the Service of a subdomain: the controllers of Jobs, StatefulSets and plain pods do not."""
    for named in _own_names(workload):
        if service(bundle, named.node.text, workload.document) is None and talks(workload, bundle):
            yield Problem(
                named.node,
                f"pods take their names from the Service {named.node.text}, which is not among the files given: "
                "without it they have no DNS names",
                f"add a headless Service {named.node.text} that selects them",
                level=Level.WARNING if other_service(workload, bundle) else None,
            )


def other_service(workload: Workload, bundle: Bundle) -> bool:
    """Whether a Service of the file stands for the pods, or other files of the folder have some: a name is missed."""
    found = [Service(each) for each in bundle.near("Service", workload.document)]
    beside = any(each.document.file != workload.document.file for each in found)
    roles = [role for role in workload.roles if role.template]
    return beside or any(each.selects(workload, role, bundle) for each in found for role in roles)


def _found(workload: Workload, bundle: Bundle) -> Iterator[tuple[Named, Service]]:
    for named in _own_names(workload):
        found = service(bundle, named.node.text, workload.document)
        if found is not None:
            yield named, found


def _dialled(workload: Workload, bundle: Bundle) -> Iterator[tuple[Role, Service]]:
    """Services whose own name the ranks dial."""
    for each in talks(workload, bundle):
        master, backend = each.master, each.backend if each.torch else "static"
        if master is not None and backend is not None and not backend.startswith("etcd"):
            found = service(bundle, master[1].host, workload.document)
            if found is not None:
                yield each.role, found
