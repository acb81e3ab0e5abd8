"""A path expression of a script as a glob: what is only known at run time becomes ``*``."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DEPTH = 12
"""Names that stand for names, at most: an expression that refers to itself has an end."""


@dataclass(frozen=True)
class Names:
    """Expressions that names and ``args.NAME`` stand for."""

    assigned: Mapping[str, ast.expr]
    flags: Mapping[str, str | None]

    @classmethod
    def of(cls, nodes: Sequence[ast.AST], flags: Mapping[str, str | None]) -> Names:
        """Names that are assigned once; one that changes stands for nothing certain."""
        assigned: dict[str, ast.expr] = {}
        twice: set[str] = set()
        for node in nodes:
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign):
                targets = [node.target]
            value = getattr(node, "value", None)
            for target in targets:
                name = target.id if isinstance(target, ast.Name) else None
                if name is not None and isinstance(value, ast.expr):
                    twice |= {name} & assigned.keys()
                    assigned[name] = value
        return cls({name: value for name, value in assigned.items() if name not in twice}, flags)


def guess(node: ast.expr, names: Names) -> str | None:
    """The glob, normalised; None when nothing of the file's name is known."""
    found = _read(node, names, DEPTH)
    if found is None:
        return None
    glob = posixpath.normpath(re.sub(r"\*+", "*", found))
    return None if posixpath.basename(glob) in ("*", "", ".", "..") else glob


def _read(node: ast.expr, names: Names, depth: int) -> str | None:
    if depth == 0:
        return None
    if isinstance(node, ast.Constant):
        return str(node.value) if isinstance(node.value, str | int) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(part, names, depth) for part in node.values)
    if isinstance(node, ast.Name):
        return _read(names.assigned[node.id], names, depth - 1) if node.id in names.assigned else None
    if isinstance(node, ast.Attribute):
        return names.flags.get(node.attr)
    if isinstance(node, ast.BinOp):
        return _operation(node, names, depth)
    return _call(node, names, depth) if isinstance(node, ast.Call) else None


def _piece(part: ast.expr, names: Names, depth: int) -> str:
    if isinstance(part, ast.FormattedValue):
        return _read(part.value, names, depth - 1) or "*"
    return _read(part, names, depth - 1) or "*"


def _operation(node: ast.BinOp, names: Names, depth: int) -> str | None:
    left = _read(node.left, names, depth - 1)
    if isinstance(node.op, ast.Mod):
        return None if left is None else re.sub(r"%[-0-9.]*[a-zA-Z]", "*", left)
    right = _read(node.right, names, depth - 1) or "*"
    if isinstance(node.op, ast.Div):
        return None if left is None else f"{left}/{right}"
    return f"{left or '*'}{right}" if isinstance(node.op, ast.Add) else None


def _call(node: ast.Call, names: Names, depth: int) -> str | None:
    """``os.path.join(a, b)``, ``Path(a)``, ``str(p)``, ``p.joinpath(b)``, ``"x{}".format(i)``."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    parts = [_read(part, names, depth - 1) for part in node.args]
    if name == "format" and isinstance(node.func, ast.Attribute):
        text = _read(node.func.value, names, depth - 1)
        return None if text is None else re.sub(r"\{[^}]*\}", "*", text)
    if name == "joinpath" and isinstance(node.func, ast.Attribute):
        parts = [_read(node.func.value, names, depth - 1), *parts]
    elif name not in ("join", "Path", "PurePath", "str", "fspath"):
        return None
    if not parts or parts[0] is None:
        return None
    return "/".join(part or "*" for part in parts)
