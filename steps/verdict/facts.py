"""What the cluster's own words about a pod mean."""

from __future__ import annotations

import re

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.families.kubernetes import REASONS
from argosy.steps.verdict.finding import Finding
from argosy.steps.verdict.match import MAX_QUOTE, Evidence, match_line
from argosy.steps.verdict.record import PodFact

_TRANSIENT_PULL = re.compile(r"(?i)toomanyrequests|rate limit|429|\b5\d\d\b|timeout|i/o|connection re")


def weigh_pod(pod: PodFact) -> Finding | None:
    """The finding of a pod's reason and message, or None where they explain nothing."""
    said = match_line(pod.message) if pod.message else None
    named = REASONS.get(pod.reason)
    if named is None and (said is None or said.weight < Weight.MACHINE):
        return None
    if said is not None and said.weight == Weight.MACHINE and _refines(said.cause, named):
        cause, code = said.cause, said.code
    else:
        assert named is not None
        cause, code = named, _code(named, pod)
    text = ": ".join(part for part in (pod.reason, pod.message) if part)
    evidence = Evidence(
        cause, f"{pod.name} on {pod.node or 'an unknown node'}: {text}"[:MAX_QUOTE], Weight.MACHINE, code
    )
    return Finding(
        evidence,
        node=pod.node,
        pod=pod.name,
        time=pod.time,
        signal=pod.signal,
        exit_code=pod.exit_code,
        fact=True,
    )


def _refines(said: Cause, named: Cause | None) -> bool:
    """Evicted for its disk is the disk; anything else that was evicted stays an eviction."""
    if named is None or said == named:
        return True
    if named == Cause.PREEMPTED_EVICTED:
        return said == Cause.DISK_FULL
    return named != Cause.HOST_OOM


def _code(cause: Cause, pod: PodFact) -> ExitCode:
    if cause == Cause.PREEMPTED_EVICTED and pod.exit_code == ExitCode.PREEMPTED:
        return ExitCode.PREEMPTED
    if cause == Cause.IMAGE_PULL and _TRANSIENT_PULL.search(pod.message):
        return ExitCode.TRANSIENT
    return cause.exit_code
