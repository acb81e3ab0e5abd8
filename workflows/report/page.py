"""From a record to the page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from argosy.steps.record import wording
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.meaning import injected_in, meaning
from argosy.steps.record.remedy import what_to_do
from argosy.steps.record.restart import Restart
from argosy.steps.record.story import (
    began_again,
    ending,
    goodput_sentence,
    headline,
    lost_in,
    outcome,
    streaming_sentence,
    way_on,
)
from argosy.steps.record.transport import latest_transports
from argosy.steps.record.waiting import waiting_sentence
from argosy.workflows.report.gate_chart import gate_flags
from argosy.workflows.report.loss import loss_chart
from argosy.workflows.report.timeline import attempt_end, timeline

if TYPE_CHECKING:
    from jinja2 import Template

Row = TypeVar("Row")

MOST_ROWS = 200
"""Rows of a table; the middle of a longer one is left out, and said to be."""


@dataclass(frozen=True)
class LastWords:
    """What a rank or step that failed wrote last, line by line; ``who``: ``rank 1``, ``step evaluate``."""

    who: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class AttemptRow:
    """An attempt as the table shows it."""

    number: int
    each: Restart
    ending: str
    seconds: float | None
    lost: int
    way_on: str
    meaning: str
    began_again: str
    injected: str
    """Faults caused on purpose during the attempt."""


@dataclass(frozen=True)
class Part:
    """One stretch of the bar that says where the time went."""

    kind: str
    label: str
    seconds: float
    percent: float


def render(record: RunRecord, words: LastWords | None = None) -> str:
    """The whole page; the same record gives the same bytes. ``words``: what the rank or step that failed wrote last."""
    label, tone = outcome(record)
    return _template().render(
        run=record,
        label=label,
        tone=tone,
        headline=headline(record),
        remedy=what_to_do(record),
        words=words,
        speed=record.speed,
        goodput_sentence=goodput_sentence(record),
        streaming_sentence=streaming_sentence(record),
        waiting_sentence=waiting_sentence(record),
        timeline=timeline(record),
        loss=loss_chart(record),
        attempts=_attempts(record),
        checkpoints=_shortened(list(record.checkpoints)),
        parts=_parts(record),
        flags=gate_flags(record),
        wall=_wall(record),
        preflight=record.preflight,
        transports=_shortened(latest_transports(record.transports)),
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("size", "duration", "short", "percent", "figure", "clock"):
        environment.filters[name] = getattr(wording, name)
    return environment.get_template("report.html.j2")


def _wall(record: RunRecord) -> float | None:
    """Seconds until the end, or until what was heard last of a run that goes on or was stopped."""
    told = [each.points[-1].time for each in record.restarts if each.points]
    until = record.ended or record.train_ended or max(told, default=None)
    return record.spent(record.started, until) if until is not None and record.started is not None else None


def _attempts(record: RunRecord) -> list[AttemptRow]:
    rows = []
    for index, each in enumerate(record.restarts):
        end = attempt_end(record, index, each.points[-1].time if each.points else each.began)
        rows.append(
            AttemptRow(
                number=index + 1,
                each=each,
                ending=ending(each),
                seconds=max(0.0, end - each.began),
                lost=lost_in(record, index),
                way_on=way_on(record, index) if each.failed else "",
                meaning=meaning(record, index) if each.failed else "",
                began_again=began_again(each),
                injected=", ".join(fault.words for fault in injected_in(record, index)),
            )
        )
    return _shortened(rows)


def _shortened(rows: list[Row]) -> list[Row]:
    return rows if len(rows) <= MOST_ROWS else rows[: MOST_ROWS // 2] + rows[-MOST_ROWS // 2 :]


def _parts(record: RunRecord) -> list[Part]:
    goodput = record.goodput
    if goodput is None:
        return []
    named = [
        ("kept", "steps that were kept", goodput.useful),
        ("lost", "steps done again or cut off", goodput.lost),
        ("waiting", "waiting for data", goodput.waiting),
        ("starting", "starting: imports, rendezvous, restore", goodput.starting),
        ("recovering", "between attempts: detect, wait, check in", goodput.recovering),
        ("ending", "after the last step: a save, the exit", goodput.ending),
    ]
    return [Part(kind, label, seconds, seconds / goodput.wall * 100) for kind, label, seconds in named if seconds > 0]
