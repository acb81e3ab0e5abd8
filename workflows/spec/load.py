"""Read a run from TOML."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from argosy.steps.contract.errors import InputError
from argosy.workflows.spec.refusal import as_input_error
from argosy.workflows.spec.run import TrainingRun


def load_run(path: str | Path) -> TrainingRun:
    """The run described by the file.

    Raises:
        InputError: no such file, no TOML (with the line), or a wrong value (with field, value, rule, remedy).
    """
    path = Path(path)
    return parse_run(_read(path), str(path))


def parse_run(text: str, source: str = "run.toml") -> TrainingRun:
    """The run described by TOML text; ``source`` is the name used in messages.

    Raises:
        InputError: as :func:`load_run`.
    """
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source}: not TOML: {error}{_line_of(text, error)}; correct that line") from None
    except ValueError as error:  # an integer with more digits than Python reads
        raise InputError(f"{source}: not TOML: {error.args[0].split(';')[0]}; write a smaller number") from None
    except RecursionError:
        raise InputError(f"{source}: not TOML that can be read: nested too deeply; write tables as [table]") from None
    try:
        return TrainingRun.model_validate(table)
    except ValidationError as error:
        raise as_input_error(error, TrainingRun, source) from None


def _read(path: Path) -> str:
    try:
        # TOML counts \r\n as one line end; a byte order mark is no part of TOML but editors write it.
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; write one with: argosy init train.py") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name the TOML file in it, for example {path / 'run.toml'}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r}: cannot be read ({error}); check its name and permissions") from None


def _line_of(text: str, error: tomllib.TOMLDecodeError) -> str:
    """The offending line, quoted: the parser names it in words, or says that it was the last."""
    lines = text.splitlines()
    named = re.search(r"at line (\d+)", str(error))
    number = int(named[1]) if named else len(lines)
    if not 1 <= number <= len(lines):
        return ""
    return f"{'' if named else f', line {number}'}: {lines[number - 1].strip()[:60]!r}"
