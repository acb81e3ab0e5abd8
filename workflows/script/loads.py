"""Where a script loads by itself what it saved."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from argosy.workflows.script.saves import SavedAt
from argosy.workflows.script.source import Function, Source, last_name
from argosy.workflows.script.values import Values

_SEARCHES = ("glob", "iglob", "rglob", "listdir", "scandir", "iterdir")
_LOOKS = ("exists", "isfile", "is_file", "isdir", "is_dir")
_TRIES = ("open", "load", "load_state", "read_bytes")
_READS = re.compile(r"(?i)load|restore|resume|read|open$")
_NEWEST = "latest_checkpoint"
_RESTORES = ("restore_checkpoint", "restore_or_initialize", "latest_step", "BackupAndRestore")
_LIBRARIES = frozenset({"flax", "orbax", "keras", "tensorflow"})
_REMOVES = frozenset({"remove", "unlink", "rmtree"})


def loaded(source: Source, values: Values, places: Sequence[SavedAt]) -> str:
    """Where the script loads what it saves without being told to, if it is there; "" for nowhere."""
    for call in (call for call in source.calls if not _is_asked_for(call, source, values)):
        name = last_name(call.func)
        if places and _asks_its_library(call, source, values):
            return source.where(call)
        if name in _SEARCHES and _is_searched(call, values, places) and not _clears_up(call, source):
            return source.where(call)
        asked = [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
        if not (name in _LOOKS and _is_read_then(call, source, values)) and not (
            name in _TRIES and _may_miss(call, source)
        ):
            continue
        for glob in (glob for each in asked for glob in values.guesses(each)):
            path = PurePosixPath(glob)
            if any(str(path.parent) == each.folder and fnmatchcase(path.name, each.pattern) for each in places):
                return source.where(call)
    return ""


def _is_asked_for(call: ast.Call, source: Source, values: Values) -> bool:
    """Whether it is made only when somebody says so: ``if resume: found = sorted(folder.glob("*.pt"))``."""
    if values.conditions.runs(call) is False:
        return True
    tests = [above.test for above in source.above(call) if isinstance(above, ast.If)]
    return any("resume" in ast.unparse(each) and values.conditions.holds(each) is not True for each in tests)


def _is_searched(call: ast.Call, values: Values, places: Sequence[SavedAt]) -> bool:
    """Whether the call lists files of a folder that is saved to."""
    asked = [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    found = [PurePosixPath(text) for each in asked if (text := values.folder(each)) is not None]
    return any(
        str(path) == each.folder or (str(path.parent) == each.folder and _alike(path.name, each.pattern))
        for each in places
        if "/" not in each.pattern
        for path in found
    )


def _asks_its_library(call: ast.Call, source: Source, values: Values) -> bool:
    """``manager.latest_step()``, ``checkpoint.restore(manager.latest_checkpoint)``, a callback that goes on."""
    name = last_name(call.func)
    if any(
        last_name(each) == _NEWEST
        for each in (*call.args, *(one.func for one in call.args if isinstance(one, ast.Call)))
    ):
        return name.startswith(("restore", "load"))
    return name in _RESTORES and bool(source.roots & _LIBRARIES)


def _is_read_then(call: ast.Call, source: Source, values: Values) -> bool:
    """Whether what is there is loaded: where it is asked for, or else in the same function."""
    above = [call, *source.above(call)]
    asked = next((each for each in above if isinstance(each, ast.If | ast.IfExp) and call in ast.walk(each.test)), None)
    around = asked or next((each for each in above if isinstance(each, Function)), above[-1])
    names = {last_name(each.func) for each in ast.walk(around) if isinstance(each, ast.Call)}
    inside = (each for name in names for one in values.bindings.functions.get(name, []) for each in ast.walk(one))
    names |= {last_name(each.func) for each in inside if isinstance(each, ast.Call)}
    return any(_READS.search(name) for name in names)


def _clears_up(call: ast.Call, source: Source) -> bool:
    """Whether the files are listed to remove the old ones."""
    around = next((each for each in source.above(call) if isinstance(each, Function)), None)
    names = {last_name(each.func) for each in ast.walk(around or call) if isinstance(each, ast.Call)}
    return bool(names & _REMOVES) and not any(_READS.search(name) for name in names)


def _alike(one: str, other: str) -> bool:
    one = re.sub(r"[*?]+", "*", one)
    return fnmatchcase(one, other) or fnmatchcase(other, one)


def _may_miss(call: ast.Call, source: Source) -> bool:
    """Whether a file that is not there is no error."""
    handlers = [each for above in source.above(call) if isinstance(above, ast.Try) for each in above.handlers]
    return any("FileNotFoundError" in ast.unparse(each.type) for each in handlers if each.type is not None)
