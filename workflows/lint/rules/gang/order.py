"""Orders of start, and priorities, against a group that starts as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.queue import group_of
from argosy.workflows.lint.view.workload import Workload

_SYSTEM: Final = ("system-node-critical", "system-cluster-critical")
_HIGHEST: Final = 1_000_000_000


@rule("GANG023", Level.WARNING, on=Workload)
def waits_for_itself(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A group of all pods, and an order that makes the later pods when the first are ready."""
    spec = workload.spec if workload.family == "jobset" else workload.spec.at("template.spec")
    if workload.family not in ("jobset", "trainer"):
        return
    in_order = spec.at("startupPolicy.startupPolicyOrder").text == "InOrder"
    waiting = [role for role in workload.roles if role.node["dependsOn"]]
    for name in {named[1].text for role in workload.roles if (named := group_of(role.pod)) is not None}:
        members = [role for role in workload.roles if (group_of(role.pod) or ("", role.node))[1].text == name]
        first = members[:1] if in_order else [role for role in members if not role.node["dependsOn"]]
        group = bundle.find("PodGroup", name, workload.document)
        least = group.spec["minMember"].number if group is not None else None
        enough = least is not None and least <= sum(role.replicas or 0 for role in first)
        if len(first) == len(members) or enough:
            continue
        yield Problem(
            spec["startupPolicy"] if in_order else waiting[0].node["dependsOn"],
            f"the later pods of the group {name!r} are made when the first are ready, and the group starts none before "
            "all of its members are there",
            "give the jobs that start first a group of their own, or start all together",
        )


@rule("GANG024", Level.WARNING, on=Workload)
def critical(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Priorities of the system's own for a training."""
    del bundle
    for role in workload.roles:
        node = role.pod.spec["priorityClassName"]
        if node.text in _SYSTEM and workload.document.kind != "DaemonSet" and role.pod.gpus != 0:
            yield Problem(
                node,
                f"priorityClassName: {node.text} for a training: it may evict the node's own agents, and most clusters "
                "refuse it outside kube-system",
                "write a PriorityClass of your own, below the system's",
            )


@rule("GANG025", Level.ERROR, on=Document)
def priority(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A PriorityClass above what users may have, or for everybody."""
    del bundle
    if not document.is_a("PriorityClass", "scheduling.k8s.io"):
        return
    value = document.root["value"]
    if value.number is not None and value.number > _HIGHEST and document.name not in _SYSTEM:
        message = f"value {value.number}: the API keeps values above {_HIGHEST} for the system"
        yield Problem(value, message, f"write a value up to {_HIGHEST}")
    if document.root["globalDefault"].flag is True and (value.number or 0) > 0:
        yield Problem(
            document.root["globalDefault"],
            f"globalDefault: every pod without a class gets priority {value.number}, and the training no longer has "
            "any over it",
            "write globalDefault: false and name the class in the pods that should have it",
            level=Level.WARNING,
        )
