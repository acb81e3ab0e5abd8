"""A run.toml under lint: what the run itself refuses and warns of, and its environment, at the lines of the file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.steps.contract.errors import InputError
from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.manifests.folder import files_below
from argosy.workflows.manifests.reading import SourceFile

if TYPE_CHECKING:
    from argosy.workflows.spec.run import TrainingRun

_TABLE = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def find_descriptions(path: Path) -> Iterator[Path]:
    """The run.toml files below a folder; a TOML file named itself is one.

    Raises:
        InputError: what lies there cannot be read.
    """
    if path.is_file():
        if path.suffix == ".toml":
            yield path
        return
    yield from filter(is_run, files_below(path, (".toml",)))


def is_run(path: Path) -> bool:
    """Whether it describes a run: other tools keep their settings in TOML, too."""
    try:
        table = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; make it readable, or name the files beside it") from error
    except (ValueError, RecursionError):
        return False
    return isinstance(table.get("name"), str) and ("script" in table or "module" in table)


def read_description(data: bytes, name: str) -> tuple[SourceFile, list[Finding]]:
    """A file's bytes as lint shows them, and what is found in them."""
    try:
        text = data.decode("utf-8-sig")
        table = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return SourceFile(name, ""), [_finding("RUN001", Level.ERROR, name, line, "not UTF-8; save it as UTF-8")]
    except (ValueError, RecursionError) as error:
        named = re.search(r"at line (\d+)", str(error))
        line = int(named[1]) if named else text.rstrip().count("\n") + 1
        told = f"not TOML: {error}; correct that line"
        return SourceFile(name, text), [_finding("RUN001", Level.ERROR, name, line, told)]
    return SourceFile(name, text), list(_findings(table, name, key_lines(text)))


def _findings(table: dict[str, Any], name: str, lines: dict[str, int]) -> Iterator[Finding]:
    from pydantic import ValidationError

    from argosy.workflows.spec.refusal import sentences
    from argosy.workflows.spec.run import TrainingRun, warnings
    from argosy.workflows.spec.variables import judge_variables

    try:
        run = TrainingRun.model_validate(table)
    except InputError as error:
        yield _finding("RUN001", Level.ERROR, name, 1, str(error))
        return
    except ValidationError as error:
        for field, told in sentences(error, TrainingRun):
            rule = re.search(r"\(((?:NCCL|TORCH)\d{3})\)", told)
            yield _finding(rule[1] if rule else "RUN001", Level.ERROR, name, _line(field, lines), told)
        return
    for field, told in _entries(run, Path(name).parent) if Path(name).is_file() else ():
        yield _finding("RUN001", Level.ERROR, name, _line(field, lines), told)
    for found in judge_variables(run):
        variable = next((each for each in found.variables if each in run.env), found.variables[0])
        told = f"{found.message}; {found.remedy}"
        yield _finding(found.rule, Level.of(found.level), name, _line(f"env.{variable}", lines), told)
    yield from (_warning(told, name, lines) for told in _others(run, warnings(run)))


def _entries(run: TrainingRun, folder: Path) -> Iterator[tuple[str, str]]:
    """The scripts that are not in the code folder: a run of them is refused. Text that is no file has no folder."""
    scripts = {"script": run.script, "evaluation.script": run.evaluation.script if run.evaluation else ""}
    for field, script in scripts.items() if run.code else ():
        if script and not (folder / run.code / script).is_file():
            yield field, f"{field} = {script!r}: no such file; name a script of the code folder, relative to it"


def _others(run: TrainingRun, told: list[str]) -> list[str]:
    from argosy.workflows.spec.variables import variable_warnings

    return [each for each in told if each not in variable_warnings(run)]


def _warning(told: str, name: str, lines: dict[str, int]) -> Finding:
    field = re.match(r"([a-z_.]+) = ", told)
    level = Level.WARNING if field else Level.NOTE
    return _finding("RUN002", level, name, _line(field[1], lines) if field else 1, told)


def _finding(rule: str, level: Level, name: str, line: int, told: str) -> Finding:
    message, _, remedy = told.rpartition("; ")
    return Finding(rule, level, name, line, 1, 2, message or told, remedy if message else "leave it if it is meant so")


def key_lines(text: str) -> dict[str, int]:
    """Line of every key that begins one, by its dotted path; of a table's head, too."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        head, key = _TABLE.match(line), _KEY.match(line)
        if head is not None:
            table = _plain(head[1]) + "."
            found.setdefault(table.rstrip("."), number)
        elif key is not None:
            found.setdefault(table + _plain(key[1]), number)
    return found


def _plain(path: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in path.split("."))


def _line(field: str, lines: dict[str, int]) -> int:
    """Where the field stands, else the nearest table above it."""
    path = re.sub(r"\.\d+(?=\.|$)", "", field)
    while path:
        if path in lines:
            return lines[path]
        path = path.rpartition(".")[0]
    return 1
