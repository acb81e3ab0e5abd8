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
    return parse_run(_read(path, "write one with: argosy init train.py"), str(path), path.parent)


def parse_run(text: str, source: str = "run.toml", folder: Path | None = None) -> TrainingRun:
    """The run described by TOML text; ``source`` is the name used in messages.

    ``folder`` is where a fabric profile of the user's own is looked for; None: such a path is refused.

    Raises:
        InputError: as :func:`load_run`.
    """
    table = _parse(text, source)
    gang = table.get("gang")
    if folder is not None and isinstance(gang, dict) and str(gang.get("fabric", "")).endswith(".toml"):
        table["gang"] = _with_own_fabric(gang, source, folder)
    try:
        return TrainingRun.model_validate(table)
    except ValidationError as error:
        raise as_input_error(error, TrainingRun, source) from None


def _with_own_fabric(gang: dict[str, Any], source: str, folder: Path) -> dict[str, Any]:
    """The content of the profile in place of its path: it travels with the run."""
    if "fabric_profile" in gang:
        raise InputError(
            f"{source}: gang.fabric = {gang['fabric']!r}: stands beside fabric_profile; give one of the two"
        )
    path = folder / str(gang["fabric"])
    profile = _parse(_read(path, f"gang.fabric in {source} names it, relative to that file"), str(path))
    return {**{name: value for name, value in gang.items() if name != "fabric"}, "fabric_profile": profile}


def _parse(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source}: not TOML: {error}{_line_of(text, error)}; correct that line") from None
    except ValueError as error:  # an integer with more digits than Python reads
        raise InputError(f"{source}: not TOML: {error.args[0].split(';')[0]}; write a smaller number") from None
    except RecursionError:
        raise InputError(f"{source}: not TOML that can be read: nested too deeply; write tables as [table]") from None


def _read(path: Path, remedy: str) -> str:
    try:
        # TOML counts \r\n as one line end; a byte order mark is no part of TOML but editors write it.
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {remedy}") from None
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
