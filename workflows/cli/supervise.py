"""``argosy supervise``."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import click

from argosy.steps.contract.arguments import SuperviseArgs
from argosy.steps.contract.errors import StepError
from argosy.workflows.cli.options import as_json, place
from argosy.workflows.cli.output import emit
from argosy.workflows.cluster.place import ClusterPlace


@click.command()
@click.argument("file", metavar="GANG.yaml", type=click.Path(path_type=Path))
@click.option("--max-restarts", default=5, show_default=True, type=click.IntRange(0), help="Without preemptions.")
@click.option(
    "--placement-seconds",
    default=900,
    show_default=True,
    type=click.IntRange(1),
    help="All pods must have a node so long after the first; else what they hold is given back.",
)
@place
@as_json
def command(file: Path, max_restarts: int, placement_seconds: int, place: ClusterPlace, as_json: bool) -> int:
    """Run a JobSet or Indexed Job of your own until it has finished.

    Creates it under a fresh name, prints its pods' logs, says why it failed, and replaces the whole gang when another
    try can help: after a preemption, a lost node, a network error. Nothing of it is left at the end, nor after
    Ctrl-C. Exit code: 0 done, 70..78 the class of the cause, 2 wrong input, 130 interrupted.

    \b
    Example:
      argosy supervise gang.yaml -n research
    """
    from argosy.steps.supervise.run import run

    args = SuperviseArgs(
        gang=str(file.absolute()), max_restarts=max_restarts, placement_timeout_seconds=placement_seconds
    )
    try:
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            code = run(args, place.reach())
    except StepError as error:
        click.echo(f"argosy: {error.cause}: {' '.join(str(error).split())}", err=True)
        code = int(error.code)
    if as_json:
        emit({"exit_code": code})
    return code
