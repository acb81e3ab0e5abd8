"""Files that a script reads beside its checkpoint when it goes on, and that it writes itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.resuming import NUMBERED
from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.values import Values

_READS = re.compile(r"(?i)load|read|open")
_WRITES = re.compile(r"(?i)dump|save|write|open")


def beside(source: Source, values: Values, flag: Flag | None) -> dict[str, str]:
    """Path -> where it is read: only with ``flag``, which may give its number, by a name that is written without it.

    No ``flag``: the script goes on by itself.
    """
    numbered = flag is None or NUMBERED.search(flag.attribute) is not None
    calls = [call for call in source.calls if call in values.machine.calls and isinstance(call.func, ast.expr)]
    read = {
        PurePosixPath(path).name: source.where(call)
        for call in calls
        if _READS.search(last_name(call.func)) and not _is_for_writing(call) and _needs(call, source, values, flag)
        for path in _paths(call, values, numbered)
    }
    written = {
        path
        for call in calls
        if _WRITES.search(last_name(call.func)) and values.machine.needed(call) == ()
        if last_name(call.func) != "open" or _is_for_writing(call)
        for path in _paths(call, values, numbered)
    }
    return {path: read[name] for path in sorted(written) if (name := PurePosixPath(path).name) in read}


def _needs(call: ast.Call, source: Source, values: Values, flag: Flag | None) -> bool:
    needed = values.machine.needed(call)
    if flag is None:  # it goes on by itself
        return last_name(call.func) == "open" and needed == ()
    return needed is not None and (flag in needed or _is_looked_for(call, source))


def _is_looked_for(call: ast.Call, source: Source) -> bool:
    """Whether it is done only where a file is found."""
    tests = (node for each in source.above(call) if isinstance(each, ast.If) for node in ast.walk(each.test))
    return any(isinstance(each, ast.Call) and last_name(each.func) in ("isfile", "is_file") for each in tests)


def _paths(call: ast.Call, values: Values, numbered: bool) -> Iterator[str]:
    """Those of its arguments that name one file, or one of each save."""
    for each in call.args[:2]:
        for path in values.machine.globs(each):
            parent, name = str(PurePosixPath(path).parent), PurePosixPath(path).name
            if "." in name.strip(".") and "\n" not in path and (numbered or not ("*" in parent or "\0" in name)):
                yield str(PurePosixPath(path.replace("\0", "*")))


def _is_for_writing(call: ast.Call) -> bool:
    return last_name(call.func) == "open" and (plain(argument(call, "mode", 1)) or "r")[:1] in ("w", "a", "x")
