"""``argosy lint``."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from argosy.steps.contract.errors import InputError
from argosy.steps.nccl.facts import Span
from argosy.workflows.cli.lint.description import find_descriptions, read_description
from argosy.workflows.cli.lint.machine import as_github, as_json, as_sarif
from argosy.workflows.cli.lint.selection import Selection
from argosy.workflows.cli.lint.text import as_text, summary
from argosy.workflows.cli.output import harmless
from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.lint.fix.mend import Mended, diff, fixable, mend
from argosy.workflows.lint.linter import lint
from argosy.workflows.lint.page import page
from argosy.workflows.lint.rule import RULES
from argosy.workflows.lint.rules import load
from argosy.workflows.manifests.folder import find_files
from argosy.workflows.manifests.reading import LARGEST, SourceFile, read_file, read_text

STDIN = "<stdin>"
LEVELS = click.Choice([level.word for level in Level])


@click.command()
@click.argument("paths", nargs=-1, metavar="FILE|DIR|- …")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    show_default=True,
    help="For a person, a program, a code scanner, a pull request.",
)
@click.option("--json", "json_style", is_flag=True, help="The same as --format json.")
@click.option("--select", multiple=True, metavar="RULES", help="Only these rules or families: NCCL,REND003.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these rules or families.")
@click.option("--level", type=LEVELS, default="warning", show_default=True, help="Show this level and what is worse.")
@click.option(
    "--fail-on", type=LEVELS, default="error", show_default=True, help="Exit 1 at this level and what is worse."
)
@click.option("--nccl", metavar="VERSION", default="", help="NCCL in the images. [default: what their tags say]")
@click.option("--fix", is_flag=True, help="Mend what is safe to mend, and show the diff.")
@click.option("--diff", "diff_only", is_flag=True, help="Show what --fix would change; write nothing.")
@click.option("--list", "list_rules", is_flag=True, help="List the rules.")
@click.option("--explain", metavar="RULE", help="Print a rule's page: what, why, sources, examples.")
def command(
    paths: tuple[str, ...],
    style: str,
    json_style: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    level: str,
    fail_on: str,
    nccl: str,
    fix: bool,
    diff_only: bool,
    list_rules: bool,
    explain: str | None,
) -> int:
    """Find what is wrong in training manifests, without a cluster.

    Looks at PyTorchJob, TFJob, XGBoostJob, MPIJob, TrainJob, JobSet, Job, RayJob, Volcano Job, pods, Services,
    ConfigMaps, PVCs, ServiceMonitors, Argo Workflows, Sensors and EventSources, several in a file or a folder: what one
    refers to in another is followed. A folder is searched for *.yaml, *.yml, *.json and the run.toml of argosy.

    A finding is excused by a comment on its line or alone above it, with the reason:
    # argosy: ignore[NCCL003] the vendor asks for it

    Exit codes: 0 nothing at the level of --fail-on, 1 something, 2 wrong use.

    \b
    Example:
      argosy lint pytorchjob.yaml
      argosy lint manifests/ --fix
      helm template ./chart | argosy lint - --format github
      argosy lint --explain NCCL003
    """
    gc.disable()  # a tree per file, all alive until the end
    load()
    if list_rules:
        return _list(Selection.of(select, ignore, level))
    if explain is not None:
        click.echo(page(explain.upper()).text.rstrip())
        return 0
    if nccl and not Span.exactly(nccl).low:
        raise InputError(f"--nccl {nccl}: is no version; write for example --nccl 2.30.7")
    selection = Selection.of(select, ignore, level)
    files, given = _read(paths)

    def look(current: Sequence[SourceFile]) -> list[Finding]:
        return lint(current, selection.wants, given, nccl)

    outcome = mend(files, look) if fix or diff_only else Mended(files, look(files), [])
    if fix or diff_only:
        _write(files, outcome, really=not diff_only)
    done = "would be mended; " if diff_only else "mended; " if fix else ""
    _show(outcome, selection, "json" if json_style else style, done)
    return 1 if any(each.level >= Level.of(fail_on) for each in outcome.findings) else 0


def _list(selection: Selection) -> int:
    for name in sorted(RULES):
        if selection.wants(name):
            held = page(name)
            click.echo(f"{name:<10} {held.level:<8} {'fix' if held.fixable else '':<4} {held.title}")
    return 0


def _read(paths: Sequence[str]) -> tuple[list[SourceFile], list[Finding]]:
    """The files, and what is found in those that describe runs."""
    if not paths:
        raise InputError("no file: name manifests, folders, or - for the standard input; see argosy lint --help")
    if paths.count("-") > 1:
        raise InputError("-: the standard input can be read once; name it once")
    files: dict[str, SourceFile] = {}
    found: list[Finding] = []
    for path in paths:
        if path == "-":
            files[STDIN] = read_text(sys.stdin.buffer.read(LARGEST + 1), STDIN)
            continue
        for each in find_descriptions(Path(path)):
            files[str(each)], given = read_description(each.read_bytes(), str(each))
            found.extend(given)
        for each in find_files(Path(path)):
            if each.suffix != ".toml":
                files.setdefault(str(each), read_file(each))
    if not files:
        raise InputError(f"{', '.join(paths)}: no *.yaml, *.yml, *.json or run.toml in it; name a folder of manifests")
    return list(files.values()), found


def _write(before: Sequence[SourceFile], outcome: Mended, *, really: bool) -> None:
    """The diffs go to standard error: the findings on standard output are for programs, too."""
    for old, new in zip(before, outcome.files, strict=True):
        if old.text == new.text:
            continue
        for line in diff(old, new).splitlines():
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            click.secho(harmless(line), err=True, fg=colour)
        if really and old.name == STDIN:
            raise InputError("--fix -: the standard input cannot be written; name a file, or take --diff")
        if really:
            _replace(Path(old.name), new.text)


def _replace(path: Path, text: str) -> None:
    """In one step, with the mode it had: a kill leaves the old file or the new one."""
    target = path.resolve()
    part = target.with_name(f".{target.name}.argosy-part")
    try:
        bom = "\ufeff" if target.read_bytes().startswith(b"\xef\xbb\xbf") else ""
        part.write_bytes((bom + text).encode())
        part.chmod(target.stat().st_mode & 0o7777)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: {error.strerror}; --fix needs a file that can be written") from error


def _show(outcome: Mended, selection: Selection, style: str, done: str) -> None:
    shown = [each for each in outcome.findings if selection.shows(each)]
    if style == "json":
        click.echo(as_json(shown, fixable(outcome.files, shown)))
    elif style == "sarif":
        from importlib.metadata import version

        click.echo(as_sarif(shown, version("argosy")))
    elif style == "github":
        _echo(as_github(shown))
    else:
        _echo(as_text(shown, outcome.files))
        line = summary(shown, len(outcome.files), len(fixable(outcome.files, shown)))
        known = any(file.documents or file.name.endswith(".toml") for file in outcome.files)
        other = "" if shown or known else ": no object of Kubernetes and no run.toml, so nothing was looked at"
        click.echo(f"{f'{len(outcome.mended)} {done}' if done else ''}{line}{other}", err=True)
        if shown:
            worst = max(shown, key=lambda finding: finding.level)  # the first of the worst
            click.echo(f"why: argosy lint --explain {worst.rule}", err=True)


def _echo(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(line)
