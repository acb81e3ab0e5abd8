"""Files that a script writes beside its checkpoints and reads again: copies of a state, which one is the newest."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from argosy.workflows.script.account import LOADERS
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.resuming import LOADS, resume_flag
from argosy.workflows.script.saves import COPIES
from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.values import Values
from argosy.workflows.script.writers import temporary


def beside(source: Source, values: Values, places: Sequence[SavedAt]) -> dict[str, str]:
    """Path -> where it is read, of those in a folder that is saved into."""
    folders, whole = (
        {each.folder for each in places},
        [str(PurePosixPath(each.folder, each.pattern)) for each in places],
    )
    files = [(call, *_opened(call, source)) for call in source.calls]
    # What a switch makes it read the run before has written, in whatever way.
    switch = resume_flag(values.flags)
    asked = [] if switch is None or switch.takes_value else [(switch,)]
    written = {path for call, node, writes in files if values.machine.needed(call) in ([()] if writes else asked)
               for path in _paths(node, values)
               if not temporary(path) and not any(fnmatchcase(path, each) for each in whole)}  # fmt: skip
    return {path: source.where(call) for path in sorted(written) if str(PurePosixPath(path).parent) in folders
            for call, node, writes in files
            if node is not None and not writes and _is(node, path, source, values)}  # fmt: skip


def _is(node: ast.expr, path: str, source: Source, values: Values) -> bool:
    """Whether it is that file, as far as is known: where nothing calls its function yet, by its name alone."""
    shown = (one for each in (node, *values.bindings.origins(node)) for one in ast.walk(each)
             if source.function_of(one) is source.function_of(node))  # fmt: skip
    known = [*_paths(node, values)]
    return path in known or (not known and any(PurePosixPath(path).name == plain(one) for one in shown
                                               if isinstance(one, ast.Constant)))  # fmt: skip


def _opened(call: ast.Call, source: Source) -> tuple[ast.expr | None, bool]:
    """The path of a file that it opens, and whether it writes it anew."""
    name, method = last_name(call.func), isinstance(call.func, ast.Attribute)
    if name in ("write_text", "read_text", "write_bytes", "read_bytes") and isinstance(call.func, ast.Attribute):
        return call.func.value, name.startswith("write")
    if name in ("savetxt", "loadtxt") and call.args:  # numpy's
        return call.args[0], name == "savetxt"
    if name in COPIES and len(call.args) == 2:
        return call.args[1], True
    if name in LOADS and call.args and source.origin(call.func).partition(".")[0] in LOADERS:
        return call.args[0], False
    if name != "open":
        return None, False
    mode = plain(argument(call, "mode", 0 if method else 1)) or "r"
    path = call.func.value if isinstance(call.func, ast.Attribute) else argument(call, "file", 0)
    return (path, "w" in mode) if mode[:1] in ("r", "w") else (None, False)


def _paths(node: ast.expr | None, values: Values) -> Iterator[str]:
    known = [] if node is None else values.guesses(node)
    yield from (str(PurePosixPath(each)) for each in known if "*" not in each and PurePosixPath(each).suffix)
