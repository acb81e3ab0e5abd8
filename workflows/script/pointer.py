"""A small file of the script's own that says which of its checkpoints is the newest: it goes on by it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.resuming import LOADS
from argosy.workflows.script.source import Function, Scope, Source, argument, last_name, plain
from argosy.workflows.script.values import Values
from argosy.workflows.script.writers import MOVES

_WRITES = ("write_text", "write_bytes")
_READS = ("read_text", "read_bytes", "open")
_ROUNDS = 4
"""So often a name may be handed on between the file and what is loaded."""


def pointers(source: Source, values: Values, places: Sequence[SavedAt]) -> dict[str, ast.Call]:
    """Path -> the call that reads it, of those in a folder that is saved into, or the one above."""
    folders = {each.folder for each in places}
    folders |= {str(PurePosixPath(each).parent) for each in folders if "/" in each}
    written = {path for call in source.calls if call in values.machine.calls for path in _written(call, values)}
    found = dict[str, ast.Call]()
    for call in (call for call in source.calls if last_name(call.func) in _READS and not _is_for_writing(call)):
        for path in written.intersection(_paths(_path_of(call), values)):
            if str(PurePosixPath(path).parent) in folders and _leads_to_a_load(call, source, values):
                found.setdefault(path, call)
    return found


def _written(call: ast.Call, values: Values) -> Iterator[str]:
    name = last_name(call.func)
    if name in _WRITES or (name == "open" and _is_for_writing(call)):
        yield from _paths(_path_of(call), values)
    elif name in MOVES and call.args:
        yield from _paths(call.args[-1], values)


def _path_of(call: ast.Call) -> ast.expr | None:
    """``open(path)``, ``path.open()``, ``path.read_text()``."""
    if isinstance(call.func, ast.Attribute) and last_name(call.func.value) not in ("io", "gzip", "codecs", "fs"):
        return call.func.value
    return argument(call, "file", 0)


def _is_for_writing(call: ast.Call) -> bool:
    place = 0 if isinstance(call.func, ast.Attribute) else 1
    return last_name(call.func) == "open" and (plain(argument(call, "mode", place)) or "r")[:1] in ("w", "a", "x")


def _paths(node: ast.expr | None, values: Values) -> list[str]:
    """The files that it may be, those of one name."""
    globs = [] if node is None else values.guesses(node)
    return [str(PurePosixPath(each)) for each in globs if "*" not in each and PurePosixPath(each).name]


def _leads_to_a_load(call: ast.Call, source: Source, values: Values) -> bool:
    """Whether what is read of it becomes the path of what is loaded, through names, functions and what they return."""
    known: set[ast.AST] = {call}
    names, returned = set[tuple[Scope, str]](), set[str]()

    def holds(node: ast.AST) -> bool:
        return any(
            each in known
            or (isinstance(each, ast.Name) and any((scope, each.id) in names for scope in source.scopes(each)))
            or (isinstance(each, ast.Call) and last_name(each.func) in returned)
            for each in ast.walk(node)
        )

    for _ in range(_ROUNDS):
        for node in source.nodes:
            if isinstance(node, ast.Return) and node.value is not None and holds(node.value):
                around = source.function_of(node)
                returned |= set() if around is None else {around.name}
            for target, value in _bound(node):
                if holds(value):
                    names |= {(next(source.scopes(each)), each.id) for each in ast.walk(target)
                              if isinstance(each, ast.Name)}  # fmt: skip
            names |= {(function, name) for function, name, value in _given(node, values) if holds(value)}
    loads = (each for each in source.calls if last_name(each.func) in LOADS and each.args and not _is_text(each))
    return any(holds(each.args[0]) for each in loads)


def _bound(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr


def _given(node: ast.AST, values: Values) -> Iterator[tuple[Function, str, ast.expr]]:
    """The functions of the script that a call may mean, and what it gives their parameters."""
    for function in values.bindings.functions.get(last_name(node.func), []) if isinstance(node, ast.Call) else ():
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        for place, name in enumerate(names[names[:1] in (["self"], ["cls"]) :]):
            if isinstance(node, ast.Call) and (value := argument(node, name, place)) is not None:
                yield function, name, value


def _is_text(call: ast.Call) -> bool:
    """Whether it is the pointer that is read: ``json.load(file)``."""
    of = last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return of in ("json", "yaml", "toml", "tomllib", "pickle")
