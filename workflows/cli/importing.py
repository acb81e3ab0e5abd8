"""``argosy import``."""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.options import as_json, output
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.written import write_whole
from argosy.workflows.imports.convert import Imported, convert
from argosy.workflows.imports.record import record
from argosy.workflows.imports.telling import summary, told
from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.folder import find_files
from argosy.workflows.manifests.reading import LARGEST, SourceFile, read_file, read_text

_NEVER_STARTS: Final = ("GANG029",)
"""Warnings that, of a run's own manifest, mean that no pod can be placed."""


@click.command()
@click.argument("files", nargs=-1, metavar="FILE|DIR|- …", required=True)
@output("Write the run.toml to this file. [default: stdout]", stdout=True)
@click.option("--workload", metavar="NAME", help="Which object, where there are several trainings in the files.")
@click.option("--script", metavar="PATH", default="", help="Script in the image, where the manifest does not say.")
@click.option("--module", metavar="NAME", default="", help="Module in the image, where the manifest does not say.")
@click.option("--explain", is_flag=True, help="Tell what became of every value, also of those that were kept.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@as_json
def command(
    files: tuple[str, ...],
    output: Path | None,
    workload: str | None,
    script: str,
    module: str,
    explain: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Turn a PyTorchJob, TFJob, XGBoostJob, MPIJob, TrainJob, JobSet, Job, Volcano Job or RayJob into a run.toml.

    The run.toml compiles. What became of each value goes to standard error: changed and why, left to you, not
    representable; nothing is dropped without a word. The Services, ConfigMaps, PVCs and runtimes that the job refers
    to are followed when they are among the files.

    \b
    Example:
      argosy import pytorchjob.yaml -o run.toml
      argosy compile run.toml -o workflow.yaml
    """
    if script and module:
        raise InputError(f"--script {script} and --module {module}: a rank starts one of them; leave the other out")
    imported = convert(_read(files), workload, script, module)
    _check(imported)
    if output is not None:
        _write(output, imported.toml, force)
    if as_json:
        emit(record(imported, str(output or "")))
        return
    if output is None:
        click.echo(imported.toml, nl=False)
        sys.stdout.flush()
    _tell(imported, everything=explain)
    if output is not None:
        ways = [(typed("argosy", "compile", output, "-o", "workflow.yaml"), "the YAML that `argo submit` takes")]
        # The code is in the image; a script with its whole path may lie there on this machine, too.
        script_path = Path(tomllib.loads(imported.toml).get("script", ""))
        if script_path.is_absolute() and script_path.is_file():
            ways.append((typed("argosy", "run", output), "run it on this machine"))
        next_commands(ways, err=True)


def _read(paths: Sequence[str]) -> list[SourceFile]:
    found: list[SourceFile] = []
    for path in paths:
        if path == "-":
            found.append(read_text(sys.stdin.buffer.read(LARGEST + 1), "<stdin>"))
        elif path.endswith(".toml"):
            compiled = typed("argosy", "compile", path)
            raise InputError(f"{path}: is a run's description already; {compiled} makes its YAML")
        else:
            found.extend(read_file(each) for each in find_files(Path(path)))
    return found


def _check(imported: Imported) -> None:
    """What is written must compile, and be what it says when it is read again."""
    from argosy.workflows.compile import compile_run
    from argosy.workflows.spec.load import parse_run

    try:
        compiled = compile_run(parse_run(imported.toml))
    except InputError as error:
        raise InputError(f"{imported.kind} {imported.name!r}: {error}") from error
    found = lint([read_text(compiled, "workflow.yaml")])
    for wrong in (each for each in found if each.level is Level.ERROR or each.rule in _NEVER_STARTS):
        told = f"{wrong.message}; {wrong.remedy} ({wrong.rule})"
        raise InputError(f"{imported.kind} {imported.name!r}: what it compiles to would not run: {told}")


def _write(path: Path, text: str, force: bool) -> None:
    if path.exists() and not force:
        raise InputError(f"--output {path}: exists already; give --force to overwrite it, or another name")
    write_whole(path, text.encode())


def _tell(imported: Imported, *, everything: bool) -> None:
    say(f"{imported.kind} {imported.name}: {summary(imported.account)}", err=True)
    width = min(shutil.get_terminal_size((120, 24)).columns, 140)
    for kind, text in told(imported.account, everything=everything, width=width):
        if kind == "head":
            click.secho(f"\n{text}", err=True, bold=True)
        else:
            say(text, err=True)
    if not everything:
        click.echo("\n--explain tells what became of every value.", err=True)
