"""In which of a training's turns a script saves, and which turns a restart takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from argosy.workflows.script.learned import means
from argosy.workflows.script.lines import LEARNS, chains
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.source import Function, Source, last_name
from argosy.workflows.script.values import Values
from argosy.workflows.script.writers import targets, wrappers_of

_BEST = re.compile(r"(?i)best|lowest|highest|improved|better")
_ADVANCES = re.compile(r"(?i)(^|_)(epoch|step|iter|iteration|turn|time|now)s?$")
_DEEPEST = 2


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
    called = {each.func for each in source.nodes if isinstance(each, ast.Call)}
    handed = any(isinstance(each, ast.Name | ast.Attribute) and last_name(each) == around.name and each not in called
                 and isinstance(each.ctx, ast.Load) for each in source.nodes)  # fmt: skip
    if handed or not callers:
        return not handed and bool(around.decorator_list or around.name == "main")
    return bool(depth) and all(means(each, around, source, values.bindings)
                               and _is_called_here(each, source, values, depth - 1) for each in callers)  # fmt: skip


def only_better(call: ast.Call, source: Source, values: Values, depth: int = _DEEPEST) -> str:
    """The test for what is better than all before, which it is made under, here or where its function is called."""
    if any(word.arg == "save_best_only" and ast.unparse(word.value) == "True" for word in call.keywords):
        return "it is the best so far"  # Keras's
    below: ast.AST = call
    for above in source.above(call):
        if isinstance(above, ast.If) and below in above.body:
            both = isinstance(above.test, ast.BoolOp) and isinstance(above.test.op, ast.And)
            parts = above.test.values if both and isinstance(above.test, ast.BoolOp) else [above.test]
            if any(_is_better(each, above, values) for each in parts):
                return ast.unparse(above.test)
        if isinstance(above, Function):
            callers = [each for each in values.bindings.calls_of(above) if each in source.calls]
            found = [only_better(each, source, values, depth - 1) for each in callers] if depth else []
            return found[0] if found and all(found) else ""
        below = above
    return ""


def _is_better(test: ast.expr, node: ast.If, values: Values) -> bool:
    """``loss < best``, also where it then becomes the best; ``is_best``. What a flag says gets no better, nor does an
    epoch, or the time.
    """
    compares = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    parts = [test.left, test.comparators[0]] if isinstance(test, ast.Compare) and compares else [test]
    sides = [ast.unparse(each) for each in parts]
    ends = [each.removesuffix("()").rpartition(".")[2] for each in sides]
    if any(isinstance(each, ast.Constant) for each in parts) or any(
        _ADVANCES.search(each) or values.flag(each) is not None for each in ends
    ):
        return False
    if not compares:
        return isinstance(test, ast.Name | ast.Attribute) and _BEST.search(ends[0]) is not None
    kept = {(ast.unparse(target), ast.unparse(each.value)) for each in ast.walk(node) if isinstance(each, ast.Assign)
            for target in each.targets}  # fmt: skip
    return any(map(_BEST.search, sides)) or bool(kept & {(sides[0], sides[1]), (sides[1], sides[0])})
