"""What a fault did to a run, and whether the run survived it as argosy promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.injection import CORRUPT, SUPERVISOR_KILL, Injection
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.injected import Injected
from argosy.steps.record.meaning import injected_in
from argosy.steps.record.restart import Restart
from argosy.steps.record.story import began_again, ending, lost_in


@dataclass(frozen=True)
class Judged:
    """One fault. ``wrong`` says what should not be; empty: it was survived."""

    fault: str
    run: str
    named: str
    """How the failure was told, with rank or node."""
    back_after: float | None
    """Seconds from the fault to the next step; None: there was none, or it disturbed none."""
    lost_steps: int
    """Steps that were done again."""
    wrong: str = ""

    def as_json(self) -> dict[str, Any]:
        """With stable keys."""
        return asdict(self)


def judge(fault: Injection, record: RunRecord, end: int) -> Judged:
    """One fault of a run that should have reached step ``end``."""
    seen = next((each for each in record.injected if each.asked == fault.text), None)
    wrong = "" if record.phase == "Succeeded" else f"the run ended {record.phase}"
    if not wrong and record.last_step < end:
        wrong = f"the run ended at step {record.last_step}, the calm one at {end}"
    if seen is None:
        return Judged(fault.text, record.workflow, "", None, 0, wrong or "it did not happen")
    index = max((number for number, each in enumerate(record.restarts) if each.began <= seen.time), default=0)
    told = record.restarts[index]
    first = _first(record, index)
    if fault.fault == SUPERVISOR_KILL and (first or not told.failed):
        return Judged(fault.text, record.workflow, "nothing: training went on", None, 0, wrong)
    steps = [point.time for each in record.restarts[index + 1 :] for point in each.points if point.time > seen.time]
    nothing = fault.fault == CORRUPT and not _saved_before(record, record.restarts[index + 1 :])
    return Judged(
        fault.text,
        record.workflow,
        f"{ending(told)}, no checkpoint to damage yet" if nothing else ending(told),
        min(steps) - seen.time if steps else None,
        _lost(record, index) if first is seen or first is None else 0,
        wrong or _blamed_wrongly(record, index) or _resumed_wrongly(fault, record, index),
    )


def _first(record: RunRecord, index: int) -> Injected | None:
    """Of several faults in one start (a node that is reclaimed trains on for its grace) the first one counts; a start
    outlives its supervisor.
    """
    return next((each for each in injected_in(record, index) if each.fault != SUPERVISOR_KILL), None)


def _lost(record: RunRecord, index: int) -> int:
    """What went with attempt ``index``, and with those after it that found nothing but a damaged checkpoint."""
    later = record.restarts[index + 1 :]
    damaged = list(takewhile(lambda each: each.cause == Cause.CHECKPOINT_CORRUPT, later))
    return sum(lost_in(record, at) for at in range(index, index + 1 + len(damaged)))


def _blamed_wrongly(record: RunRecord, index: int) -> str:
    told, first = record.restarts[index], _first(record, index)
    if first is None:
        return ""
    if first.rank is not None and told.rank != first.rank:
        return f"rank {first.rank} was at fault, and {'none' if told.rank is None else f'rank {told.rank}'} was named"
    if first.node and told.node != first.node:
        return f"{first.node} was at fault, and {told.node or 'none'} was named"
    return ""


def _resumed_wrongly(fault: Injection, record: RunRecord, index: int) -> str:
    later = record.restarts[index + 1 :]
    if fault.fault == CORRUPT and _saved_before(record, later):
        return "" if any(each.skipped for each in later) else "the damaged checkpoint was not passed over"
    return began_again(later[0]) if later else ""


def _saved_before(record: RunRecord, later: Sequence[Restart]) -> bool:
    return bool(later) and any(each.time < later[0].began for each in record.checkpoints)


def is_unlike_from_start(record: RunRecord, calm: RunRecord) -> bool:
    """Whether losses differ before either has restored anything."""
    ours, theirs = losses(record.restarts[:1]), losses(calm.restarts[:1])
    return any(ours[step] != theirs[step] for step in {*ours} & {*theirs})


def losses(restarts: Sequence[Restart]) -> dict[int, float]:
    """Step -> loss, as it was told last."""
    return {point.step: point.loss for each in restarts for point in each.points if point.loss is not None}


def compared(record: RunRecord, calm: RunRecord) -> tuple[int, int, float]:
    """(steps whose loss both told, how many are the same, the largest difference)."""
    ours, theirs = losses(record.restarts), losses(calm.restarts)
    differences = [abs(ours[step] - theirs[step]) for step in sorted({*ours} & {*theirs})]
    return len(differences), sum(not each for each in differences), max(differences, default=0.0)
