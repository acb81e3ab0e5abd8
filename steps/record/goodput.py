"""Where the training time went."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from argosy.steps.contract.causes import Cause
from argosy.steps.record.facts import Goodput
from argosy.steps.record.restart import Restart
from argosy.steps.record.wording import duration, percent
from argosy.steps.runlog import ENGINE_WENT, Event

_TRAINS = ("gang_created", "restart_began", "step", "checkpoint_committed", "restart_ended")


def kept_until(restarts: Sequence[Restart], index: int) -> int:
    """The last step of restart ``index`` whose result the run kept, in the restart's own count of steps; the one before
    its first where none was.
    """
    here, later = restarts[index], restarts[index + 1 :]
    if not later and (here.failed or here.cut_off):
        return here.base if here.saved_told is None else here.saved_told
    kept = here.last_step
    for each in later:
        if kept <= here.base:  # of hundreds of restarts each is compared with each
            break
        kept = min(kept, _continued(here, each))
    return max(here.base, kept)


def _continued(here: Restart, later: Restart) -> int:
    """The last step of ``here`` that counts in a ``later`` restart."""
    if later.began_again:
        return later.base
    if not later.restored_digest:
        return here.base
    if later.restored_at is None:
        return later.restored_step
    if later.restored_at < here.began:
        return here.base
    if later.restored_told is not None:  # its newest save need not be what was gone back to
        return later.restored_told
    return here.last_step if here.saved_told is None else here.saved_told


def lost_steps(restarts: Sequence[Restart], index: int) -> int:
    """How many steps of restart ``index`` had to be done again, or are in no checkpoint."""
    each = restarts[index]
    return max(0, each.last_step - kept_until(restarts, index)) if each.points else 0


def lost_at_end_of(restarts: Sequence[Restart], index: int) -> int:
    """The same, but told of the restart whose end they were lost at: that is a later one than theirs where it went on
    from a checkpoint of theirs that was found damaged then.
    """
    if index + 1 == len(restarts):
        return lost_steps(restarts, index)
    lost = 0
    for at, each in enumerate(restarts[: index + 1]):
        if each.points and (left := _continued(each, restarts[index + 1])) < each.last_step:
            before = each.last_step if at == index else kept_until(restarts[: index + 1], at)
            lost += max(0, before - max(each.base, left))
    return lost


def redone_steps(restarts: Sequence[Restart], index: int) -> int:
    """How many of them a later restart has done again so far."""
    lost = lost_steps(restarts, index)
    kept = restarts[index].last_step - lost
    reached = max((each.last_step for each in restarts[index + 1 :] if each.points), default=kept)
    return max(0, min(lost, reached - kept))


class Idle(NamedTuple):
    """From the end of a training to the next; seconds since 1970."""

    began: float
    ended: float
    left: bool
    """Nobody had the run: no Argo that waited to try again."""


def idle_in(events: Sequence[Event]) -> list[Idle]:
    """What lay between trainings; ``events`` by time.

    An end that nobody wrote down, as of a machine that was switched off, is the last that was heard before another
    engine, or another workflow, took the run up.
    """
    found: list[Idle] = []
    ended, heard, told, left = None, None, False, False
    for event in events:
        if event.kind == "train_ended":
            ended, told, left = event.time, True, event.fields.get("cause") == Cause.SIGTERM
        elif _takes_up(event):
            ended, left = heard if ended is None else ended, True
        elif ended is not None and event.kind in ("gang_created", "restart_began"):
            found.append(Idle(ended, event.time, left))
            ended, told = None, False
        elif ended is not None and event.kind in _TRAINS and not told:
            ended = None  # it runs still: who came was not let in
        if event.kind in _TRAINS:
            heard = event.time
    return found


def worked_from(events: Sequence[Event], idle: Sequence[Idle]) -> float | None:
    """When the first gang was made, later by what lay between trainings: nobody had it run."""
    began = next((event.time for event in events if event.kind == "gang_created"), None)
    return None if began is None else began + sum(each.ended - each.began for each in idle)


def _takes_up(event: Event) -> bool:
    """Whether it tells that nobody had the run, or another than before."""
    lost = event.kind == "gang_deleted" and event.fields.get("reason") == ENGINE_WENT
    return lost or event.kind in ("admission", "finalized")


def measure(
    restarts: Sequence[Restart], began: float | None, ended: float, waits: Sequence[float] = ()
) -> Goodput | None:
    """Split the time from ``began`` (first gang created) to ``ended``; None before a gang exists.

    A step's time is the distance from the report before it. The first step after a start has none before it;
    it is booked with the median of the others, the rest of that distance as starting. ``waits``: seconds of each
    restart's steps that went into waiting for data; when is not known, so kept and lost steps bear it alike.
    """
    if began is None or not restarts or ended <= began:
        return None
    useful = lost = starting = ending = waiting = 0.0
    again = 0
    for index, each in enumerate(restarts):
        stop = min(_end_of(restarts, index, ended), ended)
        kept = kept_until(restarts, index)
        again += lost_steps(restarts, index)
        if not each.points:
            starting += max(0.0, stop - each.began)
            continue
        steps = _step_seconds(each)
        total = sum(seconds for _, seconds in steps)
        waited = min(waits[index], total) if waits else 0.0
        at_work = 1 - waited / total if total > 0 else 1.0
        waiting += waited
        useful += at_work * sum(seconds for step, seconds in steps if step <= kept)
        lost += at_work * sum(seconds for step, seconds in steps if step > kept)
        starting += max(0.0, first_step_began(each) - each.began)
        tail = max(0.0, stop - each.points[-1].time)
        # After a failure the time since the last report belongs to the step that was under way.
        if each.failed or index + 1 < len(restarts):
            lost += tail
        else:
            ending += tail
    wall = ended - began
    recovering = max(0.0, wall - useful - lost - starting - ending - waiting)
    return Goodput(wall, useful, lost, starting, recovering, ending, waiting, again)


def in_words(goodput: Goodput) -> str:
    """``93.1% of 1 min 20 s went into steps that were kept``, and what else much of it went into."""
    # Of a run of a minute it is mostly this, and its figure says nothing of a longer one's.
    starting = goodput.starting if goodput.starting > goodput.wall / 2 else 0.0
    others = ((goodput.waiting, "waiting for data"), (starting, "starting"))
    more = "".join(f", {percent(spent / goodput.wall)} into {what}" for spent, what in others if spent)
    return f"{percent(goodput.ratio)} of {duration(goodput.wall)} went into steps that were kept{more}"


def first_step_began(restart: Restart) -> float:
    """When the step of the first report is taken to have begun; ``restart`` has points."""
    return restart.points[0].time - _first_seconds(restart)


def _end_of(restarts: Sequence[Restart], index: int, ended: float) -> float:
    known = restarts[index].ended
    if known is not None:
        return known
    if index + 1 == len(restarts):
        return ended
    # The supervisor was killed: nothing is known after the last report, so nothing after it is claimed.
    points = restarts[index].points
    return points[-1].time if points else restarts[index].began


def _first_seconds(restart: Restart) -> float:
    gaps = _gaps(restart)
    available = max(0.0, restart.points[0].time - restart.began)
    return min(median(seconds for _, seconds in gaps), available) if gaps else 0.0


def _gaps(restart: Restart) -> list[tuple[int, float]]:
    pairs = zip(restart.points, restart.points[1:], strict=False)
    return [(after.step, max(0.0, after.time - before.time)) for before, after in pairs]


def _step_seconds(restart: Restart) -> list[tuple[int, float]]:
    return [(restart.points[0].step, _first_seconds(restart)), *_gaps(restart)]
