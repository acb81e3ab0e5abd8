"""``argosy report``."""

from __future__ import annotations

from pathlib import Path

import click

from argosy.steps.record.facts import RunRecord
from argosy.steps.record.summary import summary
from argosy.workflows.cli.finding import Run, find, known
from argosy.workflows.cli.last_words import last_words
from argosy.workflows.cli.options import as_json, output, place_or_here, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.written import write_whole
from argosy.workflows.cluster.place import ClusterPlace


@click.command()
@run_id
@output("Write to this file. [default: in the run's folder, or NAME.html here]")
@place_or_here
@as_json
@state_dir
def command(run_id: str | None, output: Path | None, place: ClusterPlace, as_json: bool, state_dir: Path) -> None:
    """Write the HTML report of a run: one static file, no scripts, nothing remote.

    \b
    Example:
      argosy report -o report.html
    """
    run = find(state_dir, run_id, place)
    record, path = write_report(run, output)
    if as_json:
        emit(summary(record, str(path)))
        return
    click.echo(f"report: {path}")
    next_commands(
        [(run.command("open", run.name), "look at it"), (run.command("explain", run.name), "the same in words")]
    )


def write_report(run: Run, output: Path | None) -> tuple[RunRecord, Path]:
    """The report of a run as it stands now, in ``output`` or where the run's report lies.

    Raises:
        InputError: it cannot be written there.
    """
    from argosy.workflows.report.page import render

    path = output if output is not None else run.report
    record = known(run)
    # A cluster's pods may be gone, and asking for their words may take long.
    words = last_words(run, record) if isinstance(run, RunFolder) else None
    write_whole(path, render(record, words).encode())
    return record, path
