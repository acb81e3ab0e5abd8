"""The restarts of a run: began, ran, ended; and those whose end nobody lived to write down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from argosy.steps.runlog import Event
from argosy.workflows.record.facts import Point, Restart
from argosy.workflows.record.reading import number, text, texts, whole

Key = tuple[int, int]
"""(attempt, restart)"""


def restarts_of(events: Sequence[Event]) -> tuple[Restart, ...]:
    """``events`` sorted by time. A restart that a new one follows without an end was cut off with its supervisor."""
    began = {_key(event): event for event in events if event.kind == "restart_began"}
    ended = {_key(event): event for event in events if event.kind == "restart_ended"}
    points = _points(events)
    ordered = sorted(began, key=lambda key: began[key].time)
    found = [_restart(began[key], ended.get(key), points.get(key, ())) for key in ordered]
    training = next((event for event in reversed(events) if event.kind == "train_ended"), None)
    if found and training is not None and found[-1].ended is None and training.time >= found[-1].began:
        found[-1] = _ended_with_training(found[-1], training)
    return tuple(found)


def cause_of(event: Event) -> str:
    """The event's cause; "" for none."""
    cause = text(event.fields, "cause")
    return "" if cause == "none" else cause


def _ended_with_training(last: Restart, training: Event) -> Restart:
    """The last restart has no end of its own when every rank ended well, or when the supervisor was stopped."""
    return replace(last, ended=training.time, cause=cause_of(training), exit_code=whole(training.fields, "exit_code"))


def _key(event: Event) -> Key:
    return whole(event.fields, "attempt") or 0, whole(event.fields, "restart") or 0


def _points(events: Sequence[Event]) -> dict[Key, tuple[Point, ...]]:
    """Of each step the report of the lowest rank: one curve, whoever else reports."""
    best: dict[Key, dict[int, tuple[int, Point]]] = {}
    for event in events:
        step = whole(event.fields, "step")
        if event.kind != "step" or step is None:
            continue
        rank = whole(event.fields, "rank") or 0
        point = Point(event.time, step, number(event.fields, "loss"), number(event.fields, "tokens_per_second"))
        steps = best.setdefault(_key(event), {})
        if step not in steps or rank < steps[step][0]:
            steps[step] = (rank, point)
    return {
        key: tuple(sorted((point for _, point in steps.values()), key=lambda point: (point.step, point.time)))
        for key, steps in best.items()
    }


def _restart(began: Event, ended: Event | None, points: tuple[Point, ...]) -> Restart:
    attempt, restart = _key(began)
    fields = ended.fields if ended else {}
    restored = whole(began.fields, "restored_step") or 0
    reached = max([whole(fields, "last_step") or 0, restored, *(point.step for point in points)])
    return Restart(
        attempt=attempt,
        restart=restart,
        generation=whole(began.fields, "generation"),
        began=began.time,
        ended=ended.time if ended else None,
        restored_step=restored,
        restored_digest=text(began.fields, "restored_digest"),
        skipped=texts(began.fields, "skipped"),
        cause=cause_of(ended) if ended else "",
        signal=whole(fields, "signal"),
        exit_code=whole(fields, "exit_code"),
        rank=whole(fields, "rank"),
        node=text(fields, "node"),
        quote=text(fields, "quote"),
        last_step=reached,
        points=points,
    )
