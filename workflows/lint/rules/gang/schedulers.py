"""``schedulerName`` against the group, the queue, and the other pods of the gang."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.steps.contract.objects import RUN_LABEL
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod_group import group_of
from argosy.workflows.manifests.queue import all_or_nothing
from argosy.workflows.manifests.ranks import together
from argosy.workflows.manifests.workload import Workload

_DEFAULT: Final = ("", "default-scheduler")


@rule("GANG008", Level.NOTE, on=Workload)
def group_without_scheduler(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The default scheduler reads neither Volcano's nor scheduler-plugins' groups."""
    seen: set[str] = set()
    own = next((pod.spec["schedulerName"] for pod in workload.pods if pod.spec["schedulerName"]), None)
    own = own or workload.spec["schedulerName"]
    if workload.family == "volcano" and own.text == "default-scheduler":
        message = "the default scheduler does not read the group of a Volcano Job: its pods are placed one by one"
        yield Problem(own, message, "leave it out, which means volcano", level=Level.WARNING)
    for role in workload.roles:
        named = group_of(role.pod)
        if named is None or named[0] == "native" or workload.family == "volcano" or named[1].text in seen:
            continue
        seen.add(named[1].text)
        scheduler = role.pod.spec["schedulerName"]
        right = "volcano" if named[0] == "volcano" else "the name of the scheduler with the coscheduling plugin"
        wrong = scheduler.text in _DEFAULT or (named[0] == "coscheduling" and scheduler.text == "volcano")
        if wrong and not scheduler.open and not str(named[1].key).startswith("pod-group.scheduling.sigs"):
            has = f"schedulerName: {scheduler.text}" if scheduler else "the default scheduler"
            yield Problem(
                scheduler,
                f"the pods belong to the group {named[1].text!r}, which {has} does not read: they are placed one by "
                "one",
                f"write schedulerName: {right}",
                # The plugin's scheduler may be the default one; Volcano's is not.
                level=Level.WARNING
                if named[0] == "volcano" and bundle.find("PodGroup", named[1].text, workload.document)
                else None,
            )


@rule("GANG012", Level.WARNING, on=Workload)
def nothing(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Several pods with GPUs and nobody who starts all of them or none."""
    if not workload.gang or not workload.gpus or workload.family not in _TRAINS or all_or_nothing(workload):
        return
    with_gpus = sum(role.replicas or 0 for role in workload.roles if role.pod.gpus)
    if workload.document.labels[RUN_LABEL]:  # its supervisor gives up a gang that is not whole in time
        return
    if any(role.pod.spec["schedulingGates"] for role in workload.roles):  # who opens them looks at all pods
        return
    # An elastic job starts with what there is, unless its launcher is told another number.
    fixed = any(each.option("nnodes") is not None for each in bundle.launches(workload))
    least = None if fixed else workload.spec.at("elasticPolicy.minReplicas").number
    if (
        with_gpus < 2
        or (least or with_gpus) < with_gpus
        or (workload.family == "job" and workload.roles[0].job["completionMode"].text != "Indexed")
    ):
        return
    yield Problem(
        workload.document.metadata["name"] or workload.document.root["kind"],
        f"{with_gpus} pods with GPUs and nothing that starts all of them or none: two such gangs can each hold a "
        "half of the GPUs and wait for the other",
        "label it kueue.x-k8s.io/queue-name (Kueue), or use a PodGroup with its scheduler (Volcano, coscheduling, KAI)",
        level=Level.NOTE if not together(workload, bundle) or (workload.gpus or _NODE) < _NODE else None,
    )


_NODE: Final = 8
"""GPUs of a node: who asks for fewer in all waits for few."""
_TRAINS: Final = ("pytorch", "tensorflow", "xgboost", "mpi", "jobset", "job", "ray")
