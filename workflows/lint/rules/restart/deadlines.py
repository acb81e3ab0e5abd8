"""Deadlines that kill what only waits, and objects that are gone before anybody has read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Pod
from argosy.workflows.manifests.workload import Workload

_SOON: Final = 600


@rule("RESTART026", Level.NOTE, on=Pod)
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


@rule("RESTART029", Level.NOTE, on=Workload)
def gone_soon(workload: Workload) -> Iterator[Problem]:
    """An object that is deleted as soon as it has ended takes its logs and its status along."""
    spec = workload.spec
    ttl = spec["ttlSecondsAfterFinished"] or spec.at("runPolicy.ttlSecondsAfterFinished")
    if workload.family in ("argo", "ray", "pod", "other") or ttl.number is None or ttl.number >= _SOON:
        return
    yield Problem(
        ttl,
        f"ttlSecondsAfterFinished: {ttl.text}: the {workload.document.kind}, its pods and their logs are deleted "
        f"{ttl.text + ' s after' if ttl.number else 'as soon as'} it has ended, failed or not",
        "write an hour or a day, so that somebody can read why it failed",
        level=None if ttl.number < 10 else Level.NOTE,
    )
