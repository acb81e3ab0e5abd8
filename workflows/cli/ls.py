"""``argosy ls``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from argosy.workflows.cli.described import description_here
from argosy.workflows.cli.finding import Run
from argosy.workflows.cli.options import as_json, place_or_here, state_dir
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.top import Rows, every_place, print_rows
from argosy.workflows.cluster.place import ClusterPlace


@click.command()
@click.argument("store", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@place_or_here
@as_json
@state_dir
def command(store: str | None, limit: int, place: ClusterPlace, as_json: bool, state_dir: Path) -> None:
    """List runs: phase, step, loss, rate, nodes, restarts, goodput.

    Those of this machine, newest first; with -n of a namespace; with STORE (storage.uri of a run.toml, or
    STORE/NAME) all that have left events there, by name. argosy top shows the same and keeps it up to date.

    \b
    Example:
      argosy ls
      argosy ls s3://bucket/argosy/gpt
    """
    rows = Rows(lambda: _stored(store) if store else every_place(state_dir, place), limit)
    rows.look()
    if as_json:
        emit({"runs": [row.facts(time.time()) for row in rows.shown], "total": rows.total, "warnings": rows.troubles()})
        return
    if not rows.shown:
        if store:
            click.echo(f"no run in {store}; it is storage.uri of a run.toml, or that and the run's name")
            return None
        click.echo("no run yet" if place.named else f"no run yet in {state_dir}")
        start = (
            ("submit", description_here(), *place.flags(place.namespace))
            if place.named
            else ("run", description_here())
        )
        return next_commands([(typed("argosy", *start), "start one")])
    print_rows(rows)
    if rows.total > len(rows.shown):
        say(f"and {rows.total - len(rows.shown)} more: --limit {rows.total}")
    return None


def _stored(store: str) -> list[Run]:
    from argosy.workflows.cluster.stored_run import every_stored_run

    return list(every_stored_run(store))
