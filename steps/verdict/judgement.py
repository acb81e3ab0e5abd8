"""The judge: facts of the cluster first, then how and when processes ended, then what they said."""

from __future__ import annotations

from collections.abc import Sequence
from signal import SIGKILL

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.trouble import Trouble
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.collectives import uneven_end, with_suspect
from argosy.steps.verdict.facts import weigh_pod
from argosy.steps.verdict.finding import Finding
from argosy.steps.verdict.match import MAX_QUOTE, Evidence, match_line
from argosy.steps.verdict.process import weigh_ending
from argosy.steps.verdict.record import PodFact, Verdict

SAME_MOMENT_SECONDS = 2.0
"""Clocks of nodes differ; within this span the order of times decides nothing."""


def judge(endings: Sequence[Ending], errors: Sequence[Trouble], pods: Sequence[PodFact]) -> Verdict:
    """The root cause of a restart that ended.

    ``endings`` of all ranks that are known to have ended (those ended on purpose too: they name suspects),
    ``errors`` of launch and of the supervisor itself, ``pods`` the host's facts. Nothing at all gives ``unknown``.
    """
    found = [
        *filter(None, (weigh_pod(pod) for pod in pods)),
        *(_weigh_error(error) for error in errors),
        *filter(None, (weigh_ending(ending, pods) for ending in endings)),
    ]
    if not found:
        return Verdict(cause=Cause.UNKNOWN, exit_code=Cause.UNKNOWN.exit_code, quote="no process left a record")
    root = _root(found)
    if root.evidence.weight <= Weight.MESSENGER:
        root = uneven_end(endings, root) or with_suspect(endings, root)
    return _verdict(root, [finding for finding in found if finding is not root])


def _root(found: Sequence[Finding]) -> Finding:
    """The most believed kind of evidence; of equals the earliest."""
    strongest = max(_rank_of_belief(finding) for finding in found)
    equals = [finding for finding in found if _rank_of_belief(finding) == strongest]
    first = min(equals, key=lambda finding: finding.time or float("inf"))
    if first.evidence.cause == Cause.UNKNOWN and first.exit_code is not None:
        # Open MPI ends a rank that lost its peer with a code and no word; a SIGKILL has its reason outside the ranks.
        span = first.time + SAME_MOMENT_SECONDS
        killed = [finding for finding in equals if finding.signal == SIGKILL and finding.time < span]
        first = min(killed, key=lambda finding: finding.time, default=first)
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
        return Weight.MACHINE
    if finding.evidence.weight >= Weight.GENERIC:
        return Weight.GENERIC
    return int(finding.evidence.weight)


def _weigh_error(error: Trouble) -> Finding:
    cause = Cause(error.cause) if error.cause in set(Cause) else Cause.UNKNOWN
    quote = (error.quote or error.message or cause)[:MAX_QUOTE]
    said = match_line(quote)
    code = said.code if said is not None and said.cause == cause else cause.exit_code
    if error.code in set(ExitCode):
        code = ExitCode(error.code)
    evidence = Evidence(cause, quote, cause.weight, code)
    return Finding(evidence, rank=error.rank, node=error.node, pod=error.pod, time=error.time, step=error.step)


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
