"""``argosy top``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.record.building import build_record, prefix_of
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.story import outcome
from argosy.steps.record.unwritten import with_unwritten
from argosy.steps.record.wording import called, duration, figure, percent
from argosy.steps.runlog import Event
from argosy.workflows.cli.finding import Run, find
from argosy.workflows.cli.follower import EventFollower
from argosy.workflows.cli.options import as_json, place_or_here, run_id, state_dir
from argosy.workflows.cli.output import emit, harmless
from argosy.workflows.cli.run_folder import RunFolder, every_run
from argosy.workflows.cluster.place import ClusterPlace
from argosy.workflows.engine.gotext import rfc3339

if TYPE_CHECKING:
    from rich.table import Table

REFRESH_SECONDS = 2.0
MOST_RUNS = 20
COLUMNS = ("run", "phase", "step", "loss", "tokens/s", "nodes", "restarts", "goodput", "time")


@dataclass
class Row:
    """One run, read on from where the last look ended."""

    run: Run
    events: list[Event] = field(default_factory=list)
    follower: EventFollower | None = None
    record: RunRecord | None = None
    trouble: str = ""
    """Why nothing is known of its training."""
    gone: bool = False
    """Deleted since it was listed."""

    def look(self) -> None:
        """Read what is new; a run that has ended stays as it is."""
        if self.record is not None and self.record.done and not self.trouble:
            return
        state: dict[str, Any] = {}
        try:
            state = self.run.standing()
            if self.follower is None and (prefix := prefix_of(state)):
                store = self.run.store(quiet=True)  # the table says it, and a line would lie across it
                self.follower = EventFollower(store, prefix) if store is not None else None
            self.events += self.follower.new() if self.follower is not None else ()
            self.trouble = ""
        except (StepError, InputError) as error:
            self.trouble = str(error)
            self.gone = not state and isinstance(error, InputError) and not isinstance(self.run, RunFolder)
        state = state or {"name": self.run.name}
        self.record = with_unwritten(build_record(self.events, state, time.time()), state)

    def facts(self, now: float) -> dict[str, Any]:
        """The run as numbers, ids and times, for ``--json``; None is not known. A test freezes the keys."""
        record = self.record
        if record is None:
            return {"run": self.run.name, **dict.fromkeys(_FACTS[1:])}
        latest = next((each for each in reversed(record.restarts) if each.points), None)
        point = None if latest is None else latest.points[-1]
        reached = record.last_step if latest is None else latest.last_step
        until = record.ended or record.silent_since or (None if record.interrupted else now)
        values = (
            self.run.name,
            record.run_id or None,
            outcome(record)[0],
            reached or None,
            record.end_step or None,
            None if point is None else point.loss,
            None if point is None else point.tokens_per_second,
            record.gangs[-1].nnodes if record.gangs else None,
            max(0, len(record.restarts) - 1) if record.restarts else None,
            round(record.goodput.ratio, 4) if record.goodput else None,
            None if record.started is None else rfc3339(record.started),
            None if record.ended is None else rfc3339(record.ended),
            None if record.started is None or until is None else round(record.spent(record.started, until), 3),
            None if record.silent_since is None else rfc3339(record.silent_since),
        )
        return dict(zip(_FACTS, values, strict=True))

    def cells(self, now: float) -> tuple[str, ...]:
        """Texts for :data:`COLUMNS`; "-" is not known."""
        facts = self.facts(now)
        if self.record is not None and self.record.silent_since is not None:
            facts["phase"] = f"{facts['phase']} for {duration(now - self.record.silent_since)}"
        if self.record is not None and self.record.goodput is not None:
            facts["goodput"] = (
                self.record.goodput.ratio
            )  # once rounded, 8.854% would become 8.8% here and 8.9% elsewhere
        return tuple("-" if facts[key] is None else _TEXTS[key](facts) for key in _TEXTS)


_FACTS = ("run", "run_id", "phase", "step", "end_step", "loss", "tokens_per_second", "nodes", "restarts", "goodput",
          "started", "ended", "seconds", "silent_since")  # fmt: skip
_TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "run": lambda facts: called(facts["run"], facts["run_id"]),
    "phase": lambda facts: str(facts["phase"]),
    "step": lambda facts: f"{facts['step']}" + (f"/{facts['end_step']}" if facts["end_step"] else ""),
    "loss": lambda facts: figure(facts["loss"]),
    "tokens_per_second": lambda facts: f"{facts['tokens_per_second']:,.0f}",
    "nodes": lambda facts: str(facts["nodes"]),
    "restarts": lambda facts: str(facts["restarts"]),
    "goodput": lambda facts: percent(facts["goodput"]),
    "seconds": lambda facts: duration(facts["seconds"]),
}
"""Of each of :data:`COLUMNS` the fact and how it is shown."""


@click.command()
@run_id
@place_or_here
@as_json
@state_dir
def command(run_id: str | None, place: ClusterPlace, as_json: bool, state_dir: Path) -> int:
    """Show the runs as a live table: phase, step, loss, rate, nodes, restarts, goodput.

    Those of this machine, or with -n of a namespace; with RUN_ID only that one. In a terminal it is refreshed until
    Ctrl-C; elsewhere it is printed once.

    \b
    Example:
      argosy top
      argosy top -n research
    """
    rows = Rows(lambda: [find(state_dir, run_id, place)] if run_id else every_place(state_dir, place))
    rows.look()
    if as_json:
        emit({"runs": [row.facts(time.time()) for row in rows.shown], "warnings": rows.troubles()})
    elif sys.stdout.isatty():
        _live(rows)
    elif rows.shown:
        print_rows(rows)
    else:
        click.echo("no run yet")
    return 0


class Rows:
    """The runs that are shown, newest first; new ones join."""

    def __init__(self, runs: Callable[[], list[Run]], most: int = MOST_RUNS) -> None:
        self._runs, self._most = runs, most
        self._known: dict[str, Row] = {}
        """By the command that finds the run: two runs in a store may have one id, of two names."""
        self.shown: list[Row] = []
        self.total = 0

    def look(self) -> None:
        """Read all of them."""
        runs = self._runs()
        self.total = len(runs)
        self.shown = [self._known.setdefault(run.command("status", run.name), Row(run)) for run in runs[: self._most]]
        for row in self.shown:
            row.look()
        self.shown = [row for row in self.shown if not row.gone]

    def troubles(self) -> list[str]:
        """What keeps us from knowing more, each once; whose store takes nothing."""
        found = [row.trouble for row in self.shown]
        records = [(row.run.name, row.record) for row in self.shown if row.record is not None]
        found += [f"{name}: {record.unwritten}" for name, record in records if record.unwritten]
        return list(filter(None, dict.fromkeys(found)))


def every_place(state_dir: Path, place: ClusterPlace) -> list[Run]:
    """The runs of this machine or of the namespace, newest first."""
    if not place.named:
        return list(every_run(state_dir))
    from argosy.workflows.cluster.run import every_cluster_run

    return list(every_cluster_run(place))


def print_rows(rows: Rows) -> None:
    """The table as plain text, and on standard error what is not known."""
    table = [COLUMNS, *(row.cells(time.time()) for row in rows.shown)]
    widths = [max(len(row[index]) for row in table) for index in range(len(COLUMNS))]
    for row in table:
        click.echo("  ".join(harmless(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for text in rows.troubles():
        click.echo(f"warning: {harmless(text)}", err=True)


def _live(rows: Rows) -> None:
    from rich.live import Live

    try:
        with Live(_table(rows), auto_refresh=False, screen=False) as live:
            while True:
                live.update(_table(rows), refresh=True)
                time.sleep(REFRESH_SECONDS)
                rows.look()
    except KeyboardInterrupt:
        return


def _table(rows: Rows) -> Table:
    from rich.table import Table
    from rich.text import Text

    told = Text("\n".join(_captions(rows)))  # as text alone its brackets would be taken for markup
    table = Table(*COLUMNS, box=None, header_style="bold", caption=told, caption_justify="left")
    # What a run is called is shown whole, however narrow the terminal is.
    table.columns[0].min_width = max((len(row.run.name) for row in rows.shown), default=0)
    for row in rows.shown:
        table.add_row(*(harmless(cell) for cell in row.cells(time.time())))
    return table


def _captions(rows: Rows) -> Iterator[str]:
    yield from (f"warning: {harmless(text)}" for text in rows.troubles())
    if not rows.shown:
        yield "no run yet"
