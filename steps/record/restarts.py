"""The restarts of a run: began, ran, ended; and those whose end nobody lived to write down."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import inf

from argosy.steps.contract.causes import Cause
from argosy.steps.record.reading import number, text, texts, whole
from argosy.steps.record.restart import Point, Restart
from argosy.steps.runlog import Event

Key = tuple[int, int]
"""(attempt, restart)"""


def restarts_of(events: Sequence[Event], *, over: bool = False) -> tuple[Restart, ...]:
    """``events`` sorted by time. A restart that a new one follows without an end was cut off with its supervisor; so
    was the last when the run is ``over``: it failed, or was interrupted.
    """
    began = {_key(event): event for event in events if event.kind == "restart_began"}
    ended = {_key(event): event for event in events if event.kind == "restart_ended"}
    grown = {_key(event): event for event in events if event.kind == "gang_grows"}
    points = _points(events)
    ordered = sorted(began, key=lambda key: began[key].time)
    aside = set_aside_in(events)
    saves = [event for event in events if event.kind == "checkpoint_committed"]
    until = [began[key].time for key in ordered[1:]] + [inf] * bool(ordered)
    found = [
        _restart(began[key], ended.get(key) or grown.get(key), points.get(key, ()), saves, end, aside)
        for key, end in zip(ordered, until, strict=True)
    ]
    # A training that was stopped, and went on later, has ended more than once.
    ends = [event for event in events if event.kind == "train_ended"]
    for index, (each, end) in enumerate(zip(found, until, strict=True)):
        told = [event for event in ends if each.began <= event.time < end] if each.ended is None else []
        writers = _writers(events, each.attempt) if told else ()
        if (training := next((event for event in told if _speaks(event, writers)), None)) is not None:
            found[index] = _ended_with_training(each, training)
        after = found[index + 1] if index + 1 < len(found) else None
        if after is not None and found[index].ended is None and after.restored_digest and after.restored_at is None:
            # Its last save was committed when nobody was left to write that down.
            found[index] = replace(found[index], last_step=max(each.last_step, after.restored_step))
    if over and found and found[-1].ended is None:
        found[-1] = replace(found[-1], cut_off=True)
    return tuple(_as_it_counts(found))


def _as_it_counts(restarts: Sequence[Restart]) -> Sequence[Restart]:
    """A script that calls its first step 0 and saves, after the one it calls 5, that 6 are done goes on with 6: near
    as they were, the number of the files was taken for what it had told.
    """
    if not any(each.base == -1 for each in restarts):
        return restarts
    return [
        replace(each, restored_told=each.restored_told - 1)
        if each.restored_told and each.points and each.points[0].step == each.restored_told
        else each
        for each in restarts
    ]


def stillborn_of(events: Sequence[Event]) -> tuple[Restart, ...]:
    """Restarts that ended before their agents were started; no step's time went into them."""
    began = {_key(event) for event in events if event.kind == "restart_began"}
    ended = {_key(event): event for event in events if event.kind == "restart_ended" and _key(event) not in began}
    return tuple(as_it_ended(event) for event in ended.values())


def as_it_ended(event: Event) -> Restart:
    """The restart as its end alone tells it."""
    return _restart(event, event, (), (), event.time)


def cause_of(event: Event) -> str:
    """The event's cause; "" for none."""
    cause = text(event.fields, "cause")
    return "" if cause == "none" else cause


def _ended_with_training(last: Restart, training: Event) -> Restart:
    """A training's last has no end of its own when every rank ended well, or when the supervisor was stopped."""
    cause, code = cause_of(training), whole(training.fields, "exit_code")
    return replace(last, ended=training.time, cause=cause, exit_code=code, stopped=cause == Cause.SIGTERM)


def _key(event: Event) -> Key:
    return whole(event.fields, "attempt") or 0, whole(event.fields, "restart") or 0


def set_aside_in(events: Sequence[Event]) -> dict[str, str]:
    """Digests of the checkpoints that nobody is to resume from, and why."""
    found = (event.fields for event in events if event.kind == "set_aside")
    return {text(fields, "digest"): text(fields, "reason") for fields in found}


def told_by(save: Event) -> int | None:
    """What the script had told when it saved; a Checkpointer's step is what it tells."""
    return whole(save.fields, "told" if "step_from" in save.fields else "step")


def told_at(events: Sequence[Event]) -> dict[int | None, int]:
    """The same of each step: a save that was restored and is committed again as the end has no word of its own."""
    saves = [event for event in events if event.kind == "checkpoint_committed"]
    return {whole(each.fields, "step"): told for each in saves if (told := told_by(each)) is not None}


def _points(events: Sequence[Event]) -> dict[Key, tuple[Point, ...]]:
    """Of each step the report of the lowest rank: one curve, whoever else reports. A rank that goes back has begun to
    count something else, or trains again what it had trained.
    """
    best: dict[Key, dict[int, tuple[int, Point]]] = {}
    told: dict[tuple[Key, int], list[int]] = {}
    """What each rank told since it went back the last time: ascending, so that a day of steps is one pass."""
    for event in events:
        step = whole(event.fields, "step")
        if event.kind != "step" or step is None:
            continue
        rank = whole(event.fields, "rank") or 0
        point = Point(event.time, step, number(event.fields, "loss"), number(event.fields, "tokens_per_second"))
        steps = best.setdefault(_key(event), {})
        own = told.setdefault((_key(event), rank), [])
        while own and own[-1] > step:
            later = own.pop()
            if later in steps and steps[later][0] == rank:
                del steps[later]
        own.append(step)
        known = steps.get(step)
        if known is None or rank < known[0] or (rank == known[0] and known[1].loss is None):
            steps[step] = (rank, point)
    return {
        key: tuple(sorted((point for _, point in steps.values()), key=lambda point: (point.step, point.time)))
        for key, steps in best.items()
    }


def training_end_of(events: Sequence[Event]) -> Event | None:
    """None also for one that was stopped and goes on."""
    gang = next((event for event in reversed(events) if event.kind == "gang_created"), None)
    latest = _writers(events, _key(gang)[0]) if gang is not None else ()
    told = (event for event in reversed(events) if event.kind in ("train_ended", "gang_created"))
    end = next((event for event in told if event.kind == "gang_created" or _speaks(event, latest)), None)
    return end if end is not None and end.kind == "train_ended" else None


def _writers(events: Sequence[Event], attempt: int) -> set[str]:
    """Who had this gang: its supervisor, and one that adopted it."""
    return {event.writer for event in events if _key(event)[0] == attempt}


def _speaks(ended: Event, writers: Collection[str]) -> bool:
    """Not what a supervisor says of itself that others, ``writers``, had already taken the run from."""
    return cause_of(ended) != Cause.FENCED or ended.writer in writers


def _restart(
    began: Event,
    ended: Event | None,
    points: tuple[Point, ...],
    saves: Sequence[Event],
    until: float,
    aside: Collection[str] = (),
) -> Restart:
    """``aside``: digests of checkpoints that kept nothing."""
    attempt, restart = _key(began)
    fields = ended.fields if ended else {}
    restored, digest = whole(began.fields, "restored_step") or 0, text(began.fields, "restored_digest")
    source = next((save for save in saves if text(save.fields, "digest") == digest != ""), None)
    own = [save for save in saves if began.time <= save.time < until and text(save.fields, "digest") not in aside]
    saved = told_by(own[-1]) if own else None
    # Ranks train on until they are stopped: what they tell once it was said how their start ended is a part of it only
    # where they saved it, for nobody trains that again.
    last = ended.time if ended else inf
    points = tuple(point for point in points if point.time <= last or point.step <= (saved or 0))
    furthest = max((point.step for point in points), default=None)
    return Restart(
        attempt=attempt,
        restart=restart,
        began=began.time,
        ended=ended.time if ended else None,
        restored_step=restored,
        restored_digest=digest,
        restored_at=source.time if source else None,
        restored_told=_restored_told(source, restored),
        saved_told=saved,
        skipped=texts(began.fields, "skipped"),
        cause=cause_of(ended) if ended else "",
        signal=whole(fields, "signal"),
        exit_code=whole(fields, "exit_code"),
        rank=whole(fields, "rank"),
        node=text(fields, "node"),
        quote=text(fields, "quote"),
        last_step=reached_step(whole(fields, "last_step") or 0, furthest, own, restored),
        points=points,
        grown=whole(fields, "to") or 0,
    )


def reached_step(ended_at: int, furthest: int | None, saves: Sequence[Event], restored: int) -> int:
    """The last step of a restart, by its own ``saves`` and by ``furthest`` of those it told; None: it told none."""
    # A script that prints each tenth step saves between them, too.
    known = [ended_at, (told_by(saves[-1]) if saves else None) or 0]
    if furthest is not None:
        return max(*known, furthest)
    named = [whole(save.fields, "step") or 0 for save in saves if text(save.fields, "step_from") in ("name", "file")]
    return max(*known, restored, *named)


def _restored_told(source: Event | None, restored: int) -> int | None:
    if source is None:
        return restored
    return None if source.fields.get("relative") else told_by(source)
