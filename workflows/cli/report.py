"""``argosy report``."""

from __future__ import annotations

from pathlib import Path

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.options import as_json, output, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands, typed
from argosy.workflows.cli.run_folder import find_run
from argosy.workflows.record.summary import summary


@click.command()
@run_id
@output("Write to this file. [default: in the run's folder]")
@as_json
@state_dir
def command(run_id: str | None, output: Path | None, as_json: bool, state_dir: Path) -> None:
    """Write the HTML report of a run: one static file, no scripts, nothing remote.

    \b
    Example:
      argosy report -o report.html
    """
    from argosy.workflows.report.page import write

    folder = find_run(state_dir, run_id)
    path = output if output is not None else folder.report
    record = folder.record()
    try:
        write(record, path)
    except OSError as error:
        raise InputError(
            f"--output {path}: cannot write there ({error.strerror}); name a file in a folder that exists"
        ) from error
    if as_json:
        emit(summary(record, str(path)))
        return
    click.echo(f"report: {path}")
    next_commands(
        [(typed("xdg-open", path), "look at it"), (folder.command("explain", folder.path.name), "the same in words")]
    )
