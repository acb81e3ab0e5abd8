"""Deadlines that kill what only waits, and objects that are gone before anybody has read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Edit, Level, Problem, Remove
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.queue import queued_by
from argosy.workflows.lint.view.ranks import argo_template
from argosy.workflows.lint.view.workload import Workload

_SOON: Final = 600


@rule("RESTART026", Level.WARNING, on=Pod)
def of_a_pod(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """A deadline in a template is each pod's own."""
    node = pod.spec["activeDeadlineSeconds"]
    workload = bundle.workload(pod.document)
    if not node or workload is None or workload.family in ("pod", "argo", "other"):
        return
    yield Problem(
        node,
        f"activeDeadlineSeconds: {node.text} in the pod template fails the pod alone; the Job or the operator takes "
        "that for a failure and starts it again",
        "write it in the Job's spec (or in runPolicy), where it ends the whole",
    )


@rule("RESTART027", Level.WARNING, on=Workload)
def while_queued(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Argo's clock runs while the gang waits in a queue."""
    template = argo_template(workload)
    who = queued_by(workload, bundle)
    host = workload.document.host
    if template is None or host is None or not who:
        return
    spec = host.spec["workflowSpec"] or host.spec
    node = spec["activeDeadlineSeconds"]
    if node and not template["activeDeadlineSeconds"]:  # ARGO032 says it of a template's own
        yield Problem(
            node,
            f"activeDeadlineSeconds: {node.text} counts from the start of the workflow, while "
            f"{workload.document.kind} may still wait in {who}: a long queue ends the workflow, and the "
            f"{workload.document.kind} runs on",
            "write the deadline into the object that is queued: its clock stops while it is suspended",
        )


@rule("RESTART028", Level.NOTE, on=Workload)
def while_pending(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Without a queue that suspends it, a Job's clock runs while its pods are Pending."""
    del bundle
    if not workload.gang or workload.gpus == 0 or workload.document.labels["kueue.x-k8s.io/queue-name"]:
        return
    for node in (_deadline(workload), *(role.job["activeDeadlineSeconds"] for role in workload.roles)):
        if node and workload.spec["suspend"].flag is not True:
            yield Problem(
                node,
                f"activeDeadlineSeconds: {node.text} counts the time in which pods wait for GPUs",
                "add the longest wait, or suspend the object until there is room (Kueue), which stops its clock",
            )
            return


def _deadline(workload: Workload) -> Node:
    return workload.spec.at("runPolicy.activeDeadlineSeconds") or workload.spec["activeDeadlineSeconds"]


@rule("RESTART029", Level.WARNING, on=Workload)
def gone_soon(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """An object that is deleted as soon as it has ended takes its logs and its status along."""
    del bundle
    spec = workload.spec
    ttl = spec["ttlSecondsAfterFinished"] or spec.at("runPolicy.ttlSecondsAfterFinished")
    if workload.family in ("argo", "ray", "pod", "other") or ttl.number is None or ttl.number >= _SOON:
        return
    yield Problem(
        ttl,
        f"ttlSecondsAfterFinished: {ttl.text}: the {workload.document.kind}, its pods and their logs are deleted "
        f"{ttl.text + ' s after' if ttl.number else 'as soon as'} it has ended, failed or not",
        "write an hour or a day, so that somebody can read why it failed",
        level=None if ttl.number < 60 else Level.NOTE,
    )


@rule("RESTART030", Level.WARNING, on=Workload)
def in_a_runtime(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Trainer makes the JobSet again that its TTL has deleted."""
    del bundle
    ttl = workload.spec.at("template.spec.ttlSecondsAfterFinished")
    if workload.family == "trainer" and ttl:
        edits: list[Edit] = [Remove(ttl)]
        yield Problem(
            ttl,
            "ttlSecondsAfterFinished in a runtime: when the JobSet is deleted, Trainer (up to 2.3) makes it again "
            "and the training starts from the beginning, for ever",
            "remove it, and delete TrainJobs instead",
            edits,
        )
