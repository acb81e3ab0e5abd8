"""A Volcano Job's policies: what happens when a pod of the gang fails or is evicted."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from argosy.workflows.lint.finding import Level, Problem, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.ranks import alone, torch_launch, waits_for_all
from argosy.workflows.manifests.workload import Workload

_EVENTS: Final = (
    *("*", "PodPending", "PodRunning", "PodFailed", "PodEvicted", "Unknown", "TaskCompleted"),
    *("TaskFailed", "OutOfSync", "CommandIssued", "JobUpdated"),
)
# pkg/webhooks/admission/jobs/validate/util.go marks these as its own: a user's policy with one of them is refused.
_INTERNAL: Final = ("OutOfSync", "CommandIssued", "JobUpdated", "SyncJob", "EnqueueJob")
_ACTIONS: Final = (
    *("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob"),
    *("ResumeJob", "SyncJob", "EnqueueJob"),
)


_USABLE: Final = {
    "event": "write PodFailed, PodEvicted, TaskFailed, TaskCompleted or '*'",
    "action": "write RestartJob, AbortJob, TerminateJob or CompleteJob",
}


def _events(policy: Node) -> list[Node]:
    return [*([policy["event"]] if policy["event"] else []), *policy["events"]]


def _policies(workload: Workload) -> list[Node]:
    return [*workload.spec["policies"], *(each for role in workload.roles for each in role.node["policies"])]


@rule("RESTART036", Level.WARNING, on=Workload)
def unanswered(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Without a policy a failed pod of a Volcano Job is left failed, and the others wait."""
    if workload.family != "volcano" or not workload.gang:
        return
    answered = {event.text for policy in _policies(workload) for event in _events(policy)}
    coded = any(policy["exitCode"] for policy in _policies(workload))
    missing = [event for event in ("PodFailed", "PodEvicted") if not {event, "*"} & answered]
    if coded:
        missing = [event for event in missing if event != "PodFailed"]
    # mpirun gives up when a worker is lost, and waits for no timeout.
    gives_up = workload.gpus == 0 and any(alone(workload, role) for role in workload.roles)
    elastic = 1 < (workload.spec["minAvailable"].number or 1) < (workload.total or 0)
    if missing:
        yield Problem(
            workload.spec["policies"],
            f"no policy for {' and '.join(missing)}: the pod is lost, and the rest of the gang runs on without it "
            "until NCCL's timeout",
            "write policies: [{event: PodEvicted, action: RestartJob}, {event: PodFailed, action: RestartJob}]",
            # Of several that are enough, without a launcher, one may go.
            level=None
            if waits_for_all(workload, bundle) and not gives_up and (not elastic or bundle.launches(workload))
            else Level.NOTE,
        )


@rule("RESTART037", Level.WARNING, on=Workload)
def one_of_the_gang(workload: Workload) -> Iterator[Problem]:
    """RestartTask and RestartPod leave the other ranks running."""
    if workload.family != "volcano" or not workload.gang:
        return
    for policy in _policies(workload):
        action = policy["action"]
        if action.text in ("RestartTask", "RestartPod") and len(workload.roles) + (action.text == "RestartPod") > 1:
            yield Problem(
                action,
                f"{action.text} starts a part of the gang again, and the ranks that were left wait for it until NCCL's "
                "timeout",
                "write action: RestartJob",
                [SetValue(action, "RestartJob")],
            )


@rule("RESTART038", Level.ERROR, on=Workload)
def refused(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Words and pairs that Volcano's webhook refuses, and exit codes that torchrun never returns."""
    if workload.family != "volcano":
        return
    for policy in _policies(workload):
        for event in _events(policy):
            yield from _word(event, _EVENTS, "event")
        yield from _word(policy["action"], _ACTIONS, "action")
        if policy["exitCode"] and _events(policy):
            yield Problem(policy, "a policy with an event and an exitCode, which Volcano refuses", "write two policies")
        if policy["exitCode"].number == 0:
            yield Problem(policy["exitCode"], "exitCode: 0 is refused by Volcano", "write event: TaskCompleted")
    found = [torch_launch(role.pod, bundle) for role in workload.roles]
    for policy in _policies(workload) if found and all(found) else []:
        code = policy["exitCode"].number
        if code is not None and code not in (0, 1, 137):
            message = f"torchrun exits with 1 whatever its ranks exit with, so a policy for {code} never matches"
            yield Problem(policy["exitCode"], message, "match 1, or event: PodFailed", level=Level.WARNING)


def _word(node: Node, words: tuple[str, ...], what: str) -> Iterator[Problem]:
    if node.text in _INTERNAL:
        yield Problem(node, f"{node.text} is an {what} of Volcano's own, which it refuses in a Job", _USABLE[what])
        return
    if node.is_scalar and not node.open and node.text not in words:
        near = get_close_matches(node.text, words, 1, 0.7)
        edits = [SetValue(node, near[0])] if near else []
        message = f"{node.text!r} is no {what} of Volcano's, and is refused"
        level = None if near else Level.WARNING  # a newer Volcano may have more
        yield Problem(node, message, f"write {near[0] if near else ', '.join(words)}", edits, level)
