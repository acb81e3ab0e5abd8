"""Pod groups: that the group is there, that somebody belongs to it, and how many it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.pod_group import group_of
from argosy.workflows.manifests.workload import Workload

_GROUPS: Final = {
    "native": "scheduling.k8s.io",
    "volcano": "scheduling.volcano.sh",
    "coscheduling": "scheduling.x-k8s.io",
}
_MAKES_ITS_OWN: Final = ("volcano", "argo")


def _members(group: Document, bundle: Bundle) -> list[Role]:
    """The roles among the files whose pods say that they belong to a group."""
    found = []
    for role in bundle.group_members.get(group.name, ()):
        named = group_of(role.pod)
        same = not group.namespace or not role.document.namespace or group.namespace == role.document.namespace
        if named is not None and _GROUPS[named[0]] == group.group and same:
            found.append(role)
    return found


@rule("GANG004", Level.NOTE, on=Workload)
def no_group(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The pods name a group that is not among the files."""
    seen: set[str] = set()
    for role in workload.roles:
        named = group_of(role.pod)
        if named is None or named[1].open or named[1].text in seen or workload.family in _MAKES_ITS_OWN:
            continue
        kind, node = named
        seen.add(node.text)
        group = bundle.find("PodGroup", node.text, workload.document)
        if (
            node.key == "pod-group.scheduling.sigs.k8s.io/name"
            and role.pod.labels["pod-group.scheduling.sigs.k8s.io/min-available"]
        ):
            continue  # ACK's scheduler makes the group of the two labels
        if group is None:
            elsewhere = next(iter(bundle.named("PodGroup", node.text)), None)
            others = any(each.file == workload.document.file for each in bundle.of_kind("PodGroup"))
            where = f"in the namespace {elsewhere.namespace}" if elsewhere else "not among the files given"
            yield Problem(
                node,
                f"the PodGroup {node.text!r} is {where}: pods that name a group that does not exist stay Pending, or "
                "are scheduled one by one",
                f"add a PodGroup of {_GROUPS[kind]} with this name to the pods' namespace",
                # Files without any PodGroup may be a part of what is applied.
                level=Level.WARNING if others and (kind != "native" or workload.family != "jobset") else None,
            )
        elif group.group != _GROUPS[kind] and role.pod.spec["schedulerName"].text != "koord-scheduler":
            yield Problem(
                node,
                f"{node.text!r} is a PodGroup of {group.group}, and the pods name one of {_GROUPS[kind]}",
                f"name it the way {group.group} reads, or make a PodGroup of {_GROUPS[kind]}",
                level=Level.WARNING if group.group in _GROUPS.values() else None,
            )


@rule("GANG006", Level.NOTE, on=Document)
def members(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """More members than there are pods never start; fewer start without the rest."""
    least = document.spec["minMember"] or document.spec.at("schedulingPolicy.gang.minCount")
    if document.kind != "PodGroup" or document.group not in _GROUPS.values() or least.number is None:
        return
    roles = _members(document, bundle)
    numbers = [role.replicas for role in roles]
    if not numbers or None in numbers:
        return
    pods = sum(number or 0 for number in numbers)
    if least.number > pods:
        message = (
            f"the group waits for {least.number} pods, and {pods} of the files belong to it: alone they never start"
        )
        beside = all(role.document.file == document.file for role in roles)
        yield Problem(least, message, f"write {least.key}: {pods}", level=Level.WARNING if beside else None)
    elif least.number < pods and least.number >= 0:
        message = (
            f"the group starts with {least.number} of {pods} pods: half gangs hold their GPUs and wait for the rest"
        )
        yield Problem(least, message, f"write {least.key}: {pods}")


@rule("GANG007", Level.ERROR, on=Workload)
def available(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``minAvailable`` of a Volcano Job and of the operators' schedulingPolicy."""
    total = workload.total
    if workload.family == "volcano":
        node = workload.spec["minAvailable"]
    else:
        node = workload.spec.at("runPolicy.schedulingPolicy.minAvailable")
    if node.number is None or total is None or (not workload.gang and node.number <= total):
        return
    least = node.number
    if least > total > 0:
        message = f"minAvailable {least} is above the {total} pods of the {workload.document.kind}: none ever starts"
        # Without a gang scheduler the operators' field is read by nobody; Volcano refuses its own.
        refused = None if workload.family == "volcano" else Level.WARNING
        yield Problem(node, message, f"write minAvailable: {total}", level=refused)
    elif least < total and not workload.spec["elasticPolicy"] and not _but_the_launcher(workload, least):
        message = f"minAvailable {least} of {total} pods: half gangs hold their GPUs and wait for the rest"
        told = [each.nodes for each in bundle.launches(workload)]
        # Who starts with fewer means it, unless the launcher waits for all.
        level = Level.WARNING if any(each and each[1] == total for each in told) else Level.NOTE
        yield Problem(node, message, f"write minAvailable: {total}", level=level)


def _but_the_launcher(workload: Workload, least: int) -> bool:
    """Whether all that train are counted, and only a launcher or a head is not."""
    training = sum(role.replicas or 0 for role in workload.roles if not role.launcher)
    return workload.family == "mpi" and least == training
