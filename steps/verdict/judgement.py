"""The judge: facts of the cluster first, then how and when processes ended, then what they said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.steps.contract.causes import EXIT_CODE, Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.verdict.collectives import uneven_end, with_suspect
from argosy.steps.verdict.evidence import MAX_QUOTE, Evidence, match_line
from argosy.steps.verdict.facts import weigh_pod
from argosy.steps.verdict.finding import Finding
from argosy.steps.verdict.pattern import Weight
from argosy.steps.verdict.process import weigh_ending
from argosy.steps.verdict.record import PodFact, Verdict

SAME_MOMENT_SECONDS = 2.0
"""Clocks of nodes differ; within this span the order of times decides nothing."""


def judge(endings: Sequence[Ending], errors: Sequence[Mapping[str, Any]], pods: Sequence[PodFact]) -> Verdict:
    """The root cause of a restart that ended.

    ``endings`` of all ranks that are known to have ended (those ended on purpose too: they name suspects),
    ``errors`` of launch and of the supervisor itself ({"cause", "message", "quote", "pod", "node", "time", "rank"}),
    ``pods`` the host's facts. Nothing at all gives ``unknown``.
    """
    found = [
        *filter(None, (weigh_pod(pod) for pod in pods)),
        *(_weigh_error(error) for error in errors),
        *filter(None, (weigh_ending(ending, pods) for ending in endings)),
    ]
    if not found:
        return Verdict(cause=Cause.UNKNOWN, exit_code=EXIT_CODE[Cause.UNKNOWN], quote="no process left a record")
    root = _root(found)
    if root.evidence.weight <= Weight.MESSENGER:
        root = uneven_end(endings, root) or with_suspect(endings, root)
    return _verdict(root, [finding for finding in found if finding is not root])


def _root(found: Sequence[Finding]) -> Finding:
    """The most believed kind of evidence; of equals the earliest."""
    strongest = max(_rank_of_belief(finding) for finding in found)
    equals = [finding for finding in found if _rank_of_belief(finding) == strongest]
    first = min(equals, key=lambda finding: finding.time or float("inf"))
    if first.fact and first.time:
        # A pod that was evicted long after a rank had failed for its own reason is a consequence or a coincidence.
        earlier = [
            finding
            for finding in found
            if not finding.fact
            and finding.evidence.weight >= Weight.GENERIC
            and finding.time
            and finding.time < first.time - SAME_MOMENT_SECONDS
        ]
        if earlier:
            return min(earlier, key=lambda finding: finding.time)
    return first


def _rank_of_belief(finding: Finding) -> int:
    if finding.evidence.weight == Weight.MACHINE:
        return 4
    if finding.evidence.weight >= Weight.GENERIC:
        return 3
    return int(finding.evidence.weight)


def _weigh_error(error: Mapping[str, Any]) -> Finding:
    raw = str(error.get("cause", ""))
    cause = Cause(raw) if raw in set(Cause) else Cause.UNKNOWN
    quote = str(error.get("quote") or error.get("message") or cause)[:MAX_QUOTE]
    weak = (Cause.RENDEZVOUS_TIMEOUT, Cause.RENDEZVOUS_CONNECT, Cause.NCCL_TIMEOUT, Cause.HANG, Cause.UNKNOWN)
    weight = Weight.MESSENGER if cause in weak else Weight.ROOT
    if cause == Cause.PEER_LOST:
        weight = Weight.CASCADE
    said = match_line(quote)
    code = said.code if said is not None and said.cause == cause else EXIT_CODE[cause]
    if "code" in error and error["code"] in set(ExitCode):
        code = ExitCode(error["code"])
    return Finding(
        Evidence(cause, quote, weight, code),
        rank=error.get("rank"),
        node=str(error.get("node", "")),
        pod=str(error.get("pod", "")),
        time=float(error.get("time") or 0.0),
        step=int(error.get("step") or 0),
    )


def _verdict(root: Finding, others: Sequence[Finding]) -> Verdict:
    later = sorted(others, key=lambda finding: finding.time or float("inf"))
    return Verdict(
        cause=root.evidence.cause,
        exit_code=int(root.evidence.code),
        rank=root.rank,
        node=root.node,
        pod=root.pod,
        signal=root.signal,
        code=root.exit_code,
        step=root.step,
        quote=root.evidence.quote,
        consequences=tuple(finding.line() for finding in later),
    )
