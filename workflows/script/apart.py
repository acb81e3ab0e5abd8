"""A model and its optimizer that a script saves in files of their own, and loads by flags of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.resuming import OTHERS
from argosy.workflows.script.source import Source, last_name
from argosy.workflows.script.values import Values

_OPTIMIZES = re.compile(r"(?i)opt|sched|scaler|amp")
_OF_MODEL = re.compile(r"(^|_)(check_?point|ckpt|restore|load|weights|pretrained|model|net\w*|resume|start)(_|$)")


def model_beside(source: Source, values: Values, flag: Flag | None, places: Sequence[SavedAt]) -> Flag | None:
    """The flag with the path of the model, where an optimizer alone gets its state of what ``flag`` names."""
    if len({each.whole for each in places}) == 1:
        return None
    calls = [call for call in source.calls if last_name(call.func) == "load" and call.args]
    own = [call for call in calls if flag is not None and flag in values.flags_alone(call.args[0])]
    given = {name for call in own for name in _given(call, source)}
    if not any("opt" in name.lower() for name in given) or not all(map(_OPTIMIZES.search, given)):
        return None
    others = (other for call in calls if call not in own for other in _named(call.args[0], values))
    return next((each for each in others if each != flag and each is not None and _OF_MODEL.search(each.attribute)
                 and not OTHERS.search(each.attribute)), None)  # fmt: skip


def _given(call: ast.Call, source: Source) -> Iterator[str]:
    """What gets its state of what a call loads, in the function around it."""
    made = next(source.above(call), None)
    name = made.targets[0].id if isinstance(made, ast.Assign) and isinstance(made.targets[0], ast.Name) else ""
    for each in source.calls:
        near = source.function_of(each) is source.function_of(call)
        if near and last_name(each.func) == "load_state_dict" and isinstance(each.func, ast.Attribute):
            told = {one.id for arg in each.args for one in ast.walk(arg) if isinstance(one, ast.Name)}
            if name in told or any(one is call for arg in each.args for one in ast.walk(arg)):
                yield ast.unparse(each.func.value)


def _named(path: ast.expr, values: Values) -> Iterator[Flag]:
    """The flags that it is, those that the command line gives, too."""
    yield from values.flags_alone(path)
    said = {*values.machine.globs(path)}
    yield from (
        flag for flag in values.flags if flag.takes_value and values.conditions.given.get(flag.attribute) in said
    )
