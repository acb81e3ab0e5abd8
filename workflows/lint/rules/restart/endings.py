"""How a pod is told to end: the grace period, what runs in it, and probes that kill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod
from argosy.workflows.manifests.ranks import launches, torch_launch

_GRACE: Final = 30
_SHUTDOWN: Final = 30
_MARGIN: Final = 15
_PATIENT: Final = 1800
"""Seconds of silence that a training may need: compilation, a checkpoint, the first collective."""


@rule("RESTART022", Level.NOTE, on=Pod)
def grace(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """The agent gives its ranks 30 s after SIGTERM; Kubernetes gives the agent 30 s by default."""
    found = torch_launch(pod, bundle)
    if found is None or pod.document.kind == "TrainJob" or pod.document.group == "argoproj.io":
        yield from _no_grace(pod, bundle)
        return
    container, process = found
    variable = bundle.environment_of(process, container).get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT")
    text = process.option("shutdown-timeout") or (variable.value if variable is not None else None) or str(_SHUTDOWN)
    node = pod.spec["terminationGracePeriodSeconds"]
    given = node.number if node else _GRACE
    if not text.isdecimal() or given is None or given >= int(text) + _MARGIN:
        return
    written = (
        f"terminationGracePeriodSeconds: {given}" if node else f"no terminationGracePeriodSeconds, which means {given}"
    )
    late = "is killed before it has ended its ranks" if given <= int(text) else "has no time left to report"
    yield Problem(
        node,
        f"{written}: torchrun waits up to {text} s for its ranks after SIGTERM and {late}",
        f"write terminationGracePeriodSeconds: {int(text) + _MARGIN} or more, and what a last checkpoint takes",
        level=None if node else Level.NOTE,
    )


def _no_grace(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """Whatever trains without torchrun needs some seconds too."""
    node = pod.spec["terminationGracePeriodSeconds"]
    workload = bundle.workload(pod.document)
    trains = workload is not None and workload.family != "other"
    if node.number is not None and node.number <= 1 and pod.gpus != 0 and trains:
        yield Problem(
            node,
            f"terminationGracePeriodSeconds: {node.number}: the ranks are killed without a word when the pod is "
            "preempted or drained, and nothing can be saved",
            "write as many seconds as a checkpoint takes",
        )


@rule("RESTART024", Level.WARNING, on=Container)
def liveness(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A liveness probe kills a rank that is busy, and the gang with it."""
    probe = container.node["livenessProbe"]
    if not probe:
        return
    trains = any(each.node is container.node for each, _ in launches(container.pod, bundle))
    role = container.pod.role
    workload = bundle.workload(container.pod.document)
    alone = workload is None or workload.family in ("other", "ray") or (role is not None and role.launcher)
    if container.init or (alone and not trains):
        return
    if not trains and not (container.gpus and workload is not None and workload.gang):
        return
    patience = _number(probe["failureThreshold"], 3) * _number(probe["periodSeconds"], 10)
    yield Problem(
        probe,
        f"a liveness probe restarts a rank that does not answer for {patience} s: a compilation, a long step or a "
        "checkpoint is enough, and the gang goes down with it",
        "remove it and watch progress from outside (steps, NCCL's watchdog), or be as patient as the longest step",
        level=None if trains and patience < _PATIENT else Level.NOTE,
    )


def _number(node: Node, default: int) -> int:
    return default if node.number is None else node.number
