"""``argosy open``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from argosy.workflows.cli.finding import find
from argosy.workflows.cli.options import as_json, place_or_here, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands
from argosy.workflows.cli.report import write_report
from argosy.workflows.cluster.place import ClusterPlace


@click.command()
@run_id
@place_or_here
@as_json
@state_dir
def command(run_id: str | None, place: ClusterPlace, as_json: bool, state_dir: Path) -> None:
    """Write the HTML report of a run as it stands now and show it in a browser ($BROWSER, or the desktop's).

    \b
    Example:
      argosy open
      argosy open gpt-x7k2p -n research
    """
    run = find(state_dir, run_id, place)
    _, path = write_report(run, None)
    shown = webbrowser.open(path.absolute().as_uri())
    if as_json:
        emit({"run": run.name, "report": str(path), "shown": shown})
        return
    click.echo(f"report: {path}" if shown else f"report: {path} (no browser here: open the file where there is one)")
    next_commands([(run.command("explain", run.name), "the same in words")])
