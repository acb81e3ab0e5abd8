"""When all that is known are timeouts and lost peers: who was it that the others waited for?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.evidence import read_lines
from argosy.steps.verdict.finding import Finding
from argosy.steps.verdict.match import Evidence
from argosy.steps.verdict.process import signal_of

_WORK = re.compile(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+)")


def uneven_end(endings: Sequence[Ending], root: Finding) -> Finding | None:
    """One rank ended well while the others still waited for it: uneven data, a collective mismatch.

    Not so when it had done as many steps as they: then only the tearing down went wrong.
    """
    if root.evidence.cause not in (Cause.PEER_LOST, Cause.NCCL_TIMEOUT):
        return None
    done = [ending for ending in endings if ending.exit_code == 0 and not ending.stopped and signal_of(ending) is None]
    early = [ending for ending in done if ending.time and ending.time < (root.time or float("inf"))]
    if not early or root.rank is None:
        return None
    first = min(early, key=lambda ending: ending.time)
    if first.last_step == root.step and root.step > 0:
        return None
    where = f" on {first.node}" if first.node else ""
    after = f" after step {first.last_step}" if first.last_step else ""  # mostly rank 0 alone tells steps
    quote = (
        f"rank {first.rank}{where} ended with exit code 0{after} while rank {root.rank} still waited for it: "
        f"{root.evidence.quote}"
    )
    cause = Cause.COLLECTIVE_MISMATCH
    return Finding(
        Evidence(cause, quote, Weight.ROOT, cause.exit_code),
        rank=first.rank,
        node=first.node,
        pod=first.pod,
        time=first.time,
        exit_code=0,
        step=first.last_step,
    )


def with_suspect(endings: Sequence[Ending], root: Finding) -> Finding:
    """A timeout's finding, moved to the rank that did not report one or was behind; others unchanged."""
    if root.evidence.cause != Cause.NCCL_TIMEOUT:
        return root
    works = {ending.rank: _last_work(ending) for ending in endings}
    reported = {ending.rank for ending in endings if _timed_out(ending)}
    silent = [ending for ending in endings if ending.rank not in reported and not _lost_peer(ending)]
    if len(silent) == 1 and len(endings) > 1:
        return _blame(root, silent[0], "is the one that reported no timeout")
    known = {rank: work for rank, work in works.items() if work is not None}
    if len({sequence for sequence, _ in known.values()}) > 1:
        behind = min(known, key=lambda rank: known[rank][0])
        ending = next(ending for ending in endings if ending.rank == behind)
        return _blame(root, ending, f"is behind, at SeqNum {known[behind][0]}")
    if len({operation for _, operation in known.values()}) > 1:
        what = ", ".join(f"rank {rank} ran {operation}" for rank, (_, operation) in sorted(known.items()))
        cause = Cause.COLLECTIVE_MISMATCH
        evidence = Evidence(cause, f"{root.evidence.quote} ({what})", Weight.ROOT, cause.exit_code)
        return replace(root, evidence=evidence)
    return root


def _timed_out(ending: Ending) -> bool:
    said = read_lines(ending.tail)
    return said is not None and said.cause == Cause.NCCL_TIMEOUT


def _lost_peer(ending: Ending) -> bool:
    said = read_lines(ending.tail)
    return said is not None and said.cause == Cause.PEER_LOST


def _last_work(ending: Ending) -> tuple[int, str] | None:
    found = [match for line in ending.tail for match in _WORK.finditer(line)]
    return (int(found[-1].group(1)), found[-1].group(2)) if found else None


def _blame(root: Finding, suspect: Ending, why: str) -> Finding:
    where = f" on {suspect.node}" if suspect.node else ""
    quote = f"{root.evidence.quote} (rank {suspect.rank}{where} {why})"
    return replace(
        root,
        evidence=replace(root.evidence, quote=quote),
        rank=suspect.rank,
        node=suspect.node,
        pod=suspect.pod,
        signal=suspect.signal,
        exit_code=suspect.exit_code,
        step=suspect.last_step,
    )
