"""``argosy replay``."""

from __future__ import annotations

from pathlib import Path

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.document import parameters
from argosy.workflows.cli.options import as_json, run_id, state_dir
from argosy.workflows.cli.output import say
from argosy.workflows.cli.run_folder import find_run
from argosy.workflows.cli.source import from_yaml, is_toml

_OF_THAT_RUN_ALONE = ("run-id", "resume-from", "event")


@click.command()
@run_id
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="The run.toml or workflow of that run. [default: the very YAML, of a run of this machine]",
)
@as_json
@state_dir
def command(run_id: str | None, file: Path | None, as_json: bool, state_dir: Path) -> int:
    """Let the failures of a run happen again, on this machine.

    RUN_ID is a run of this machine, or the uri of a run's place in a store, a cluster's too. Each failure in its event
    log becomes a real fault at the same step on the same rank or node; what the script does by itself needs no help.
    What a run of this machine was given by -p is given again; of one in a store it is not known: argosy run FILE
    --replay RUN -p … says it. Exit code: that of argosy run.

    \b
    Example:
      argosy replay gpt-x7k2p
      argosy replay s3://bucket/store/gpt/runs/gpt-x7k2p --file workflow.yaml
    """
    from argosy.workflows.cli.run import command as run

    given, templates = tuple[str, ...](), tuple[Path, ...]()
    if run_id is None or "://" not in run_id:
        folder = find_run(state_dir, run_id)
        run_id = folder.name
        given = tuple(each for each in folder.given() if each.partition("=")[0] not in _OF_THAT_RUN_ALONE)
        if file is None:
            file, templates = folder.path / "workflow.yaml", folder.templates()
        else:
            given = taken(file, given)
    elif file is None:
        raise InputError(f"replay {run_id}: a store does not hold a run's YAML; name it: --file workflow.yaml")
    words = {"file": file, "replay": run_id, "new": True, "given": given, "templates": templates}
    code: int = click.get_current_context().invoke(run, **words, as_json=as_json, state_dir=state_dir)
    return code


def taken(file: Path, given: tuple[str, ...]) -> tuple[str, ...]:
    """Those that the workflow of ``file`` has, too: another dataset's, say, mean nothing to it."""
    from argosy.workflows.compile import workflow_parameters
    from argosy.workflows.spec.load import load_run

    if is_toml(file):
        known = {each.name for each in workflow_parameters(load_run(file))}
    else:
        known = {*parameters(from_yaml(file).document)}
    if left := [each for each in given if each.partition("=")[0] not in known]:
        say(f"not given again, {file} has no such parameter: {', '.join(left)}", err=True)
    return tuple(each for each in given if each not in left)
