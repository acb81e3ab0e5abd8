"""In which of a training's turns a script saves, and which turns a restart takes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from argosy.workflows.script.learned import means
from argosy.workflows.script.lines import LEARNS, chains
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.source import Function, Source, last_name
from argosy.workflows.script.values import Values
from argosy.workflows.script.writers import targets, wrappers_of


def at_end(source: Source, values: Values, places: Sequence[SavedAt]) -> str:
    """Where it saves, if all that it saves comes behind the loops that train; "" where that is not certain."""
    at, wrappers = {each.where for each in places}, wrappers_of(source)
    saving = [call for call in source.calls if source.where(call) in at
              and next(targets(call, source, wrappers, values), None) is not None]  # fmt: skip
    training = {loop for chain in _trained(source, values) for loop in chain}
    # What makes an object has methods that may be called anywhere.
    sure = all(last_name(call.func)[:1].islower() and _is_called_here(call, source, values) for call in saving)
    around = {loop for call in saving if sure for chain in chains(call, source, values) for loop in chain}
    return source.where(saving[0]) if sure and saving and training and not around & training else ""


def _trained(source: Source, values: Values) -> list[list[ast.For | ast.While]]:
    """The loops around each step of a training, the nearest first."""
    learns = (call for call in source.calls if last_name(call.func) in LEARNS and values.machine.comes_to(call))
    return [chain for call in learns for chain in chains(call, source, values) if chain]


def _is_called_here(call: ast.AST, source: Source, values: Values, depth: int = 4) -> bool:
    """Whether all that leads to it is seen: no function on the way is handed on as a value, or called of who knows what
    object.
    """
    around = next((each for each in source.above(call) if isinstance(each, Function | ast.Lambda)), None)
    if around is None:
        return True
    if isinstance(around, ast.Lambda) or not all(
        source.origin(each.func if isinstance(each, ast.Call) else each) for each in around.decorator_list
    ):
        return False
    callers = values.bindings.calls_of(around)
    if source.class_of(around) is None:  # else of any object
        callers = [each for each in callers if means(each, around, source, values.bindings)]
    called = {each.func for each in source.nodes if isinstance(each, ast.Call)}
    handed = any(isinstance(each, ast.Name | ast.Attribute) and last_name(each) == around.name and each not in called
                 and isinstance(each.ctx, ast.Load) for each in source.nodes)  # fmt: skip
    if handed or not callers:
        return not handed and bool(around.decorator_list or around.name == "main")
    return bool(depth) and all(means(each, around, source, values.bindings)
                               and _is_called_here(each, source, values, depth - 1) for each in callers)  # fmt: skip
