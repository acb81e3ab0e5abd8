"""``argosy diagnose``: anybody's logs, one cause with its proof."""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from lzma import LZMAError
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.options import as_json
from argosy.workflows.cli.output import emit, harmless, say

if TYPE_CHECKING:
    from argosy.workflows.diagnosis.verdict import Diagnosis, Named

STDIN = "-"
_OURS = frozenset(
    {
        *("ending.json", "endings.json", "process.json", "gang.json", "deleted.json", "channel.json"),
        *("index.json", "verdict.json", "summary.json", "state.json", "report.html"),
    }
)
"""What argosy itself has made of the logs that lie beside it, in a run's folder or its evidence."""
_PROGRAMS = frozenset((".py", ".pyi", ".ipynb", ".sh", ".toml"))
"""Endings of what ran and not what it said: the code beside the logs raises many errors, and prints as many."""
_NO_LOGS = re.compile(r"/(pods/[^/]+/volumes/(outputs|data)|volumes/argosy/store)/")
_SHOWN_CONSEQUENCES = 5
_MANIFEST_BYTES = 4 << 20
"""A longer file is no manifest."""


@click.command()
@click.argument("paths", metavar="FILE|DIR|-", nargs=-1, required=True)
@as_json
def command(paths: tuple[str, ...], as_json: bool) -> None:
    """Name what ended a training, from logs that any launcher, framework or cluster wrote.

    Takes what torchrun, mpirun, Ray, Slurm and the like print, of one rank or all of them, and what `kubectl logs`,
    `describe`, `get events` and `get -o yaml` do. Of a folder it reads every text file but
    programs (*.py and the like) and manifests.

    \b
    Example:
      argosy diagnose train.log
      kubectl describe pod trainer-0 | argosy diagnose -
      argosy diagnose logs/ --json | jq -r .cause
    """
    from argosy.workflows.diagnosis.excerpt import excerpt
    from argosy.workflows.diagnosis.verdict import diagnose

    well = list[str]()
    files = [file for path in paths for file in _files(path, well)]
    total = sum(Path(file).stat().st_size for file in files if file != STDIN)
    logs = []
    with click.progressbar(length=total, label="reading", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for file in files:
            with _opened(file) as source:
                logs.append(excerpt(source, file, bar.update))
    found = _as_argosy_saw(diagnose(logs))
    tells = found.root.line is not None or not all(any(_is_of(file, folder) for folder in well) for file in files)
    if as_json:
        nothing = {"cause": "none", "exit_code": 0, "runner_up": None, "meaning": "The run succeeded.", "remedy": ""}
        return emit(found.record() | ({} if tells else nothing))
    for folder in dict.fromkeys(well):
        got_over = found.root.line is not None and _is_of(found.root.line.file, folder)
        so = "what follows it got over" if got_over else "so nothing ended it"
        say(f"{folder}: this run succeeded, {so}; argosy explain tells what happened on the way")
    if tells:
        _tell(found, len(files), empty=not any(logs))


def _files(path: str, well: list[str]) -> Iterator[str]:
    """What is to be read; ``well`` takes the folders of runs that succeeded, of which only a part that is named is."""
    if path == STDIN:
        yield path
    elif Path(path).is_dir():
        within = list[str]()
        if inside := next((up for up in Path(path).absolute().parents if _has_succeeded(up / "state.json")), None):
            well.append(str(inside))  # who names a part of it asks for what failed there
        for at, folders, names in os.walk(path, onerror=_not_read):
            if _has_succeeded(Path(at, "state.json")):
                well.append(at)
                folders.clear()
            else:
                within += [str(file) for name in names if _is_log(file := Path(at, name))]
        within.sort()
        if not within and not well:
            raise InputError(f"{path}: holds no log to read; name one, a folder with logs, or - for standard input")
        yield from within
    elif _is_manifest(Path(path)):
        remedy = f"name a log, or the output of kubectl get -o yaml; what is wrong with a manifest: argosy lint {path}"
        raise InputError(f"{path}: is a manifest without a status, so it tells of no failure; {remedy}")
    elif Path(path).exists():
        yield path
    else:
        raise InputError(f"{path}: there is no such file or folder; name a log, or - for standard input")


def _is_of(file: str, folder: str) -> bool:
    return file != STDIN and Path(file).absolute().is_relative_to(Path(folder).absolute())


def _has_succeeded(state: Path) -> bool:
    try:
        told = json.loads(state.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and "yaml_sha256" in told and told.get("phase") == "Succeeded"


def _is_log(file: Path) -> bool:
    if file.name in _OURS or file.suffix in _PROGRAMS:
        return False
    try:
        return file.is_file() and _is_text(file) and _is_said(file) and not _is_manifest(file)
    except OSError as error:
        _not_read(error)
        return False


def _not_read(error: OSError) -> None:
    """Of a folder the rest still tells something; who reads the answer has to know that this is missing."""
    click.echo(f"not read: {harmless(str(error.filename))}: {error.strerror}", err=True)


def _is_text(file: Path) -> bool:
    from argosy.workflows.diagnosis.reading import HEAD_BYTES, is_log

    with file.open("rb") as source:
        return is_log(source.read(HEAD_BYTES))


def _is_said(file: Path) -> bool:
    """Not a pod's data and outputs, the store, an archive, or in argosy's evidence the machine's kernel log and its
    account of memory where no process of the run was killed for want of it: then what they tell happened to others.
    """
    if _NO_LOGS.search(file.absolute().as_posix()) or re.search(r"\.(tar(\.\w+)?|t[gbx]z)$", file.name):
        return False
    if file.name not in ("kernel.log", "cgroup.txt") or not (file.parent.parent / "endings.json").exists():
        return True
    return (file.parent / "oom-kills.txt").exists()


def _is_manifest(file: Path) -> bool:
    """What somebody wants to be, and not what came of it."""
    if file.suffix not in (".yaml", ".yml") or not file.is_file():
        return False
    with file.open("rb") as source:
        text = source.read(_MANIFEST_BYTES)
    told = re.search(rb"(?m)^[\s-]*(status:|kind: Event\b)", text)
    return re.search(rb"(?m)^apiVersion: ", text) is not None and told is None


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    from argosy.workflows.diagnosis.reading import unpacked

    name = "the standard input" if file == STDIN else file
    try:
        with nullcontext(sys.stdin.buffer) if file == STDIN else Path(file).open("rb") as source:
            yield unpacked(source, name)
    except EOFError as error:
        raise InputError(f"{name}: its end is missing; unpack what is there, and name that") from error
    except (OSError, LZMAError, zlib.error) as error:
        raise InputError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _as_argosy_saw(found: Diagnosis) -> Diagnosis:
    """In our evidence of a hang every rank's log says the same: the verdict beside them knows who held them up."""
    from argosy.steps.verdict.line import Line

    said = found.root.line
    if said is None or said.file == STDIN or found.root.cause != Cause.HANG or found.rank is not None:
        return found
    for file in (folder / "verdict.json" for folder in Path(said.file).absolute().parents[1:3]):
        try:
            text = file.read_text()
            told = json.loads(text)
            rank, node, quote = told["rank"], told["node"], json.dumps(told["quote"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if told.get("cause") == Cause.HANG and isinstance(rank, int):
            number = next((at for at, line in enumerate(text.splitlines(), 1) if quote in line), 1)
            line = Line(str(file), number, told["quote"])
            return replace(found, root=replace(found.root, line=line), rank=rank, node=node)
    return found


def _tell(found: Diagnosis, files: int, *, empty: bool) -> None:
    from argosy.workflows.diagnosis.remedies import remedy_of

    root = found.root
    if root.line is None:
        said = f"No line of {files} file{'s' * (files != 1)} says what ended the training."
        said += " There is no line at all." * empty
        say(f"{said} A process that vanishes without a word was mostly killed from outside: look at the kernel log, "
            "`kubectl describe pod` and the node.")  # fmt: skip
        return
    where = f" on rank {found.rank}" if found.rank is not None else ""
    where += f", node {found.node}" if found.node else ""
    say(f"{root.cause}{where} (exit code {root.exit_code}, confidence {found.confidence:.2f})")
    say(f"  {root.cause.meaning}")
    if found.by_words:
        say("  No rule knows a line of this log: its words are like those of logs with this cause.")
    say(f"  | {_quoted(root)}")
    say(f"What to do: {remedy_of(root.cause)}")
    if found.runner_up is not None and found.runner_up.line:  # without one it is a guess, for programs that weigh it
        say(f"If not that: {found.runner_up.cause}: {_quoted(found.runner_up)}")
    later = [named for named in found.consequences if named.cause != root.cause]
    if later:
        say("Taken for consequences:")
        for named in later[:_SHOWN_CONSEQUENCES]:
            say(f"  {named.cause}: {_quoted(named)}")


def _quoted(named: Named) -> str:
    line = named.line
    return f"{line.file}:{line.number}: {line.text.strip()[:300]}" if line else ""
