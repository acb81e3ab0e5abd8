"""Where a script makes its folder outside the one that it runs in, and the line that puts it inside."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import PurePath
from posixpath import normpath

from argosy.workflows.script.globs import UNKNOWN
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.source import Source, last_name
from argosy.workflows.script.values import OUTSIDE, Values

_MAKES = re.compile(
    r"(?i)mkdir|makedir|(make|create|ensure|prepare|setup|init)\w*(dir|folder|path)|copytree|Writer|save_"
)


def put_inside(source: Source, values: Values, places: Sequence[SavedAt]) -> tuple[str, str] | None:
    """``path = 'out'`` and the last line that names the folder, where ``makedirs(path)`` makes it and all that is saved
    lies below; None where no name says so.
    """
    folders = [each.folder for each in places]
    made = list[tuple[int, str, str, bool]]()
    calls = source.calls if folders and all(each.startswith(OUTSIDE) for each in folders) else []
    # Where nothing makes it, what it is put together of.
    some = [call for call in calls if last_name(call.func) in ("makedirs", "mkdir")]
    rest = [each for each in calls if each not in some and each.args and isinstance(each.args[0], ast.Attribute)]
    for call in (*some, *(each for each in calls if last_name(each.func) == "join"), *rest):
        name = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(name, ast.Name | ast.Attribute) or (made and call not in some):
            continue
        begins = [normpath(re.sub(rf"[*{UNKNOWN}]+", "*", each)) for each in values.machine.globs(name)]
        last = _last_named(call, name, source)
        if last is not None and any(len(each) > 2 and all(one.startswith(each) for one in folders) for each in begins):
            path = any(isinstance(each, PurePath) for each in values.machine.seen.get(name, []))
            text = ast.unparse(name)
            kind = "Path" if (source.file(call), "Path") in source.imports else f"type({text})"
            line = f"{text} = {kind}('out')" if path else f"{text} = 'out'"
            behind = re.sub(r"\d+$", str(last.end_lineno), source.where(last))
            made.append((max(map(len, begins)), line, behind, call in some))
    return (min(made) if made[0][3] else max(made))[1:3] if made else None


def folder_lacks(source: Source, values: Values, places: Sequence[SavedAt]) -> bool:
    """Whether ``torch.save`` is called, which makes no folder, and nothing that is called reads as if it made one; what
    is known to make another, as a writer of logs does its own, makes none of these.
    """
    saved = any(source.origin(call.func) == "torch.save" for call in source.calls)
    makes = (call for call in source.calls if _MAKES.search(last_name(call.func)))
    known = ([*values.folders(call.args[0])] if call.args else [] for call in makes)
    return saved and not any(not each or any(_is_near(one, each) for one in places) for each in known)


def _is_near(place: SavedAt, folders: Sequence[str]) -> bool:
    """Whether one of the folders is that, lies in it or above it, as far as it is known."""
    known = [f"{each.partition('*')[0]}/" for each in folders]
    return any(each.startswith(("/", f"{place.folder}/")) or f"{place.folder}/".startswith(each) for each in known)


def _last_named(call: ast.Call, name: ast.expr, source: Source) -> ast.stmt | None:
    """The last statement above the call, in its function, that gives the name a value."""
    around, given = source.function_of(call), re.compile(rf"{re.escape(ast.unparse(name))} \S?= ")
    found = [node for node in source.nodes if isinstance(node, ast.Assign | ast.AugAssign) and node.lineno < call.lineno
             and source.file(node) == source.file(call) and source.function_of(node) is around
             and given.match(ast.unparse(node))]  # fmt: skip
    anywhere = [node for node in source.nodes if isinstance(node, ast.Assign) and isinstance(name, ast.Attribute)
                and ast.unparse(node.targets[0]) == ast.unparse(name)]  # fmt: skip
    return max(found or anywhere[:1] * (len(anywhere) == 1), key=lambda node: node.lineno, default=None)
