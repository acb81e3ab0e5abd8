"""Models and optimizers that a script saves in files of their own, and loads by a flag for each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.resuming import OTHERS
from argosy.workflows.script.source import Source, last_name, written_out
from argosy.workflows.script.values import Values

_OLD = re.compile(r"(?i)best|final|init")
Parts = tuple[tuple[Flag, SavedAt | None], ...]


def parts(source: Source, values: Values, flag: Flag | None, places: Sequence[SavedAt]) -> Parts:
    """The flags that each name the file of a part of what is saved, ``flag`` among them, and where each is saved; None
    where several files have it. () where one file has all that is loaded.

    Which part it is says what gets its state: the same is asked for its state in a save.
    """
    given: dict[Flag, set[str]] = {}
    for call in source.calls:
        if last_name(call.func) in ("load", "load_file") and call.args and values.machine.needed(call) is not None:
            for each in [*dict.fromkeys(_named(call.args[0], values))][:1]:
                given.setdefault(each, set()).update(_given(call, source))
    saved = {each: _saved(source, values, each) for each in places}
    whole = {name for names in saved.values() for name in names}
    given = {each: names for each, names in given.items() if names and names <= whole
             and (each == flag or not OTHERS.search(each.attribute))}  # fmt: skip
    alone = {each: names for each, names in given.items() if not any(names < more for more in given.values())}
    if flag not in alone or len(alone) < 2 or sum(map(len, alone.values())) > len(set().union(*alone.values())):
        return ()
    files = [[each for each, names in saved.items() if wanted <= names] for wanted in alone.values()]
    if any({*one} & {*other} for one in files for other in files if one is not other):
        return ()
    kept = [[each for each in one if not _OLD.search(each.pattern)] or one for one in files]
    return tuple((each, one[0] if len(one) == 1 else None) for each, one in zip(alone, kept, strict=True))


def _given(call: ast.Call, source: Source) -> Iterator[str]:
    """What gets its state of what a call loads, in the function around it."""
    made = next(source.above(call), None)
    name = made.targets[0].id if isinstance(made, ast.Assign) and isinstance(made.targets[0], ast.Name) else ""
    bound = _bound(name, source, call)
    for each in source.calls:
        near = source.function_of(each) is source.function_of(call)
        if near and last_name(each.func) == "load_state_dict" and isinstance(each.func, ast.Attribute):
            told = {one.id for arg in each.args for one in ast.walk(arg) if isinstance(one, ast.Name)}
            again = [one for one in bound if one.lineno < each.lineno]
            if (name in told and max(again, key=lambda one: one.lineno, default=None) is made) or any(
                one is call for arg in each.args for one in ast.walk(arg)
            ):
                yield _bare(each.func.value)


def _bound(name: str, source: Source, near: ast.Call) -> list[ast.Assign]:
    """Where the name is given a value in the same function: a second file may go by it, too."""
    return [node for node in source.nodes if isinstance(node, ast.Assign) and name in map(last_name, node.targets)
            and isinstance(node.value, ast.Call) and source.function_of(node) is source.function_of(near)]  # fmt: skip


def _saved(source: Source, values: Values, place: SavedAt) -> set[str]:
    """What is asked for its state in a save."""
    calls = [call for call in source.calls if source.where(call) == place.where]
    shown = [one for call in calls for each in call.args for one in (each, *values.bindings.origins(each))]
    inside = [node for each in shown for node in ast.walk(each)]
    # A state that was asked for before has its name of the key.
    return {key for node in inside for key, value in written_out(node) if isinstance(value, ast.Name)} | {
        _bare(node.func.value) for node in inside if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"}  # fmt: skip


def _bare(node: ast.expr) -> str:
    """``model`` of ``self.model.module``."""
    return ast.unparse(node).removesuffix(".module").rpartition(".")[2]


def _named(path: ast.expr, values: Values) -> Iterator[Flag]:
    """The flags that it is, those that the command line gives, too."""
    yield from values.flags_alone(path)
    said = {*values.machine.globs(path)}
    yield from (
        flag for flag in values.flags if flag.takes_value and values.conditions.given.get(flag.attribute) in said
    )
