"""``argosy compile``."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import click

from argosy.steps.contract.errors import InputError
from argosy.steps.record.wording import count, size
from argosy.workflows.cli.options import as_json, output, ranks, state_dir
from argosy.workflows.cli.output import emit, next_commands, typed
from argosy.workflows.cli.source import Source, from_toml, is_toml, push_code, with_trigger, write_yaml


@click.command()
@click.argument("file", metavar="RUN.toml", type=click.Path(path_type=Path))
@output("Write the YAML to this file. [default: stdout]", stdout=True)
@click.option("--template", is_flag=True, help="Compile to a WorkflowTemplate, for events and templateRef.")
@click.option("--trigger", is_flag=True, help="The WorkflowTemplate and what starts it: see [trigger].")
@click.option("--push", is_flag=True, help="Write the code archive into the run's store, as a cluster needs it.")
@ranks
@as_json
@state_dir
def command(
    file: Path,
    output: Path | None,
    template: bool,
    trigger: bool,
    push: bool,
    ranks: tuple[int, int] | None,
    as_json: bool,
    state_dir: Path,
) -> None:
    """Turn a run.toml into Argo Workflows YAML.

    The same input gives the same bytes; nothing is contacted unless --push is given. What is worth knowing goes
    to standard error.

    \b
    Example:
      argosy compile run.toml -o workflow.yaml --push
      argo submit workflow.yaml
    """
    gc.disable()  # Hera's models stay until the end: looking for garbage among them is a tenth of this verb's time
    if not is_toml(file):
        raise InputError(
            f"RUN.toml {file}: a run's description is wanted here; a workflow is run with: argosy run {file}; of a "
            f"manifest that trains argosy import {file} -o run.toml makes one"
        )
    source = from_toml(file, ranks, "WorkflowTemplate" if template or trigger else "Workflow")
    if trigger:
        source = with_trigger(source)
    pushed = push_code(source, state_dir) if push else ""
    facts = _facts(source)
    if output is not None:
        write_yaml(source, output)
    if as_json:
        emit({**facts, "output": str(output or ""), "code_uri": pushed, "yaml": "" if output else source.yaml.decode()})
        return
    if output is None:
        sys.stdout.buffer.write(source.yaml)
        sys.stdout.flush()
    _say(source, facts, output, pushed)
    next_commands(_ways_on(file, output, source.archive is not None, push, template or trigger), err=True)


def _facts(source: Source) -> dict[str, Any]:
    from argosy.workflows.bound import worst_case
    from argosy.workflows.spec.run import warnings

    assert source.run is not None
    run = source.run
    return {
        "name": run.name,
        "yaml_sha256": source.sha256,
        "code_digest": source.archive.digest if source.archive else "",
        "batch": run.batch.describe(run.gang.world_size) if run.batch else "",
        "bound": worst_case(run),
        "warnings": warnings(run),
    }


def _say(source: Source, facts: dict[str, Any], output: Path | None, pushed: str) -> None:
    click.echo(f"yaml sha256 {facts['yaml_sha256']}" + (f"  {output}" if output else ""), err=True)
    if source.archive is not None:
        held = f"{count(len(source.archive.files), 'file')}, {size(len(source.archive.data))}"
        click.echo(f"code sha256 {source.archive.digest}  {held}", err=True)
    if pushed:
        where = " (on this machine: a cluster's own volume lacks it)" if pushed.startswith("file:") else ""
        click.echo(f"pushed {pushed}{where}", err=True)
    for line in filter(None, [facts["batch"], facts["bound"], *(f"warning: {text}" for text in facts["warnings"])]):
        click.echo(line, err=True)


def _ways_on(file: Path, output: Path | None, travels: bool, pushed: bool, template: bool) -> list[tuple[str, str]]:
    if output is None:
        keep = ("argosy", "compile", file, "-o", "workflow.yaml")
        stored = (typed(*keep, "--push"), "keep it, and put the code in the store")
        return [stored if travels and not pushed else (typed(*keep), "keep it")]
    if template:
        return [(typed("kubectl", "apply", "-f", output), "put the template on a cluster")]
    here = (typed("argosy", "run", output), "run these bytes on this machine")
    there = (typed("argo", "submit", output), "run the same bytes on a cluster")
    code = (typed("argosy", "compile", file, "-o", output, "--push"), "put the code into the store first")
    ways = [here, there] if travels else [there]  # no run of this machine uses a script that lies in an image
    return [code, *ways] if travels and not pushed else ways
