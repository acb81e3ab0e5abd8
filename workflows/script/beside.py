"""The files that a script opens: what its restart reads beside its checkpoints has to come back with them."""

from __future__ import annotations

import ast
import re

from argosy.workflows.script.account import LOADERS
from argosy.workflows.script.saves import COPIES
from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.values import Values
from argosy.workflows.script.writers import temporary

_GIVES_BACK = re.compile(r"(?i)^_*(re)?(load|restore|resume|from_)")
"""So is a function called that is handed what to read."""


def opened(source: Source, values: Values) -> tuple[dict[str, str], frozenset[str]]:
    """Path -> where it is read, and the paths that are written, of the calls that a run comes to."""
    reads, writes = dict[str, str](), set[str]()
    for call in (each for each in source.calls if values.machine.needed(each) == ()):
        nodes, writing = _opened(call, source)
        for path in (one for each in nodes for one in values.guesses(each) if not temporary(one)):
            if writing:
                writes.add(path)
            else:
                reads.setdefault(path, source.where(call))
    return reads, frozenset(writes)


def _opened(call: ast.Call, source: Source) -> tuple[list[ast.expr], bool]:
    """What may be the path of a file that it opens, and whether it writes it anew."""
    name, owner = last_name(call.func), [call.func.value] if isinstance(call.func, ast.Attribute) else []
    if name in ("write_text", "read_text", "write_bytes", "read_bytes"):
        return owner, name.startswith("write")
    if name in ("savetxt", "loadtxt"):  # numpy's
        return call.args[:1], name == "savetxt"
    if name in COPIES:
        return call.args[1:2], True
    if name == "open":
        method = bool(owner) and not source.origin(owner[0])  # of a path; ``gzip.open`` is none
        mode, path = plain(argument(call, "mode", 0 if method else 1)) or "r", argument(call, "file", 0)
        nodes = owner if method else [] if path is None else [path]
        return (nodes if mode[:1] in ("r", "w") else []), "w" in mode
    first = 1 if source.origin(call.func).partition(".")[0] in LOADERS else None
    given = [*call.args[:first], *(each.value for each in call.keywords)]
    return (given if _GIVES_BACK.search(name) else []), False
