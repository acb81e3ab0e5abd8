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


def _members(group: Document, bundle: Bundle) -> list[Role]:
    """The roles among the files whose pods say that they belong to a group."""
    found = []
    for role in bundle.group_members.get(group.name, ()):
        named = group_of(role.pod)
        same = not group.namespace or not role.document.namespace or group.namespace == role.document.namespace
        if named is not None and _GROUPS[named[0]] == group.group and same:
            found.append(role)
    return found


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
