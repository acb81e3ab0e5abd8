"""The lines that make a script go on which loads nothing of what it saves: around its own loop, with its own names."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

from argosy.workflows.script.bindings import Bindings
from argosy.workflows.script.source import Function, Source, argument, last_name
from argosy.workflows.script.values import Values

_COUNTS = ("range", "trange", "count")
_LEARNS = ("backward", "manual_backward")
_STEPS = ("opt", "solver", "adam", "sgd", "sched")
_DEEPEST = 5


@dataclass(frozen=True)
class Loop:
    """The loop over epochs or steps, and what the script calls its models and optimizers there."""

    where: str
    header: str
    """Its line, with ``start`` for the number that it begins with."""
    first: str
    counter: str
    states: tuple[str, ...]
    ranks: bool
    """Whether several ranks come to it."""
    imports: str
    """What its file does not import, and needs."""

    def lines(self, path: str) -> str:
        """What to write, with the state in ``path``."""
        parts = [f'"{name}": {name}.state_dict()' for name in self.states]
        loads = "".join(f'\n            {name}.load_state_dict(state["{name}"])' for name in self.states)
        save = f'torch.save({{{", ".join(parts)}, "{self.counter}": {self.counter}}}, "{path}")'
        alone = "if torch.distributed.get_rank() == 0:\n            " if self.ranks else ""
        top = f"    at its top:\n        import {self.imports}\n" if self.imports else ""
        folder = os.path.dirname(path)
        made = f'        os.makedirs("{folder}", exist_ok=True)\n' if folder else ""
        return (
            f"{top}    before {self.where}:\n{made}        start = {self.first}\n"
            f'        if os.path.exists("{path}"):\n            state = torch.load("{path}", map_location="cpu", '
            f'weights_only=False){loads}\n            start = state["{self.counter}"] + 1\n'
            f"    instead of {self.where}:\n        {self.header}\n"
            f"    as the last lines of that loop:\n        {alone}{save}"
        )


def loop_of(source: Source, values: Values, distributed: bool) -> Loop | None:
    """The outermost loop that counts and trains; None where it cannot be told."""
    for call in source.calls:
        if last_name(call.func) in _LEARNS and (not values.machine.followed or call in values.machine.calls):
            around = [*_loops(call, source, values.bindings)]
            if around and _counted(around[-1]) is not None:
                return _described(around[-1], source, values, distributed)
    return None


def _loops(node: ast.AST, source: Source, bindings: Bindings, depth: int = _DEEPEST) -> Iterator[ast.For]:
    """The loops that a node stands in, the nearest first, those around the callers of its function, too."""
    for above in source.above(node):
        if isinstance(above, ast.For):
            yield above
        if isinstance(above, Function):
            callers = [call for call in bindings.calls_of(above) if call in source.calls] if depth else []
            if callers:
                yield from _loops(callers[0], source, bindings, depth - 1)
            return


def _counted(loop: ast.For) -> ast.Call | None:
    """The ``range(...)`` of ``for epoch in tqdm(range(...))``."""
    found = (each for each in ast.walk(loop.iter) if isinstance(each, ast.Call) and last_name(each.func) in _COUNTS)
    return next(found, None) if isinstance(loop.target, ast.Name) else None


def _described(loop: ast.For, source: Source, values: Values, distributed: bool) -> Loop | None:
    made = deepcopy(loop)
    counts = _counted(made)
    states = tuple(dict.fromkeys(_states(loop, source, values.bindings)))
    inside = {ast.unparse(each) for each in ast.walk(loop) if isinstance(getattr(each, "ctx", None), ast.Store)}
    # What each turn makes anew, as the folds of a cross-validation, is not there before it.
    if (
        counts is None
        or not states
        or inside & {*states}
        or len(counts.args) > 2
        or any(word.arg != "desc" for word in counts.keywords)
    ):
        return None
    begins = len(counts.args) == 2 or (last_name(counts.func) == "count" and counts.args)
    first = ast.unparse(counts.args[0]) if begins else "0"
    counts.args[:] = [ast.Name("start"), *counts.args[bool(begins) :]]
    head = f"for {ast.unparse(loop.target)} in {ast.unparse(made.iter)}:"
    lacks = [name for name in ("os", "torch") if source.imports.get((source.file(loop), name)) != name]
    return Loop(source.where(loop), head, first, ast.unparse(loop.target), states, distributed, ", ".join(lacks))


def _states(loop: ast.For, source: Source, bindings: Bindings) -> Iterator[str]:
    """What is put into training (``model.train()``), and steps (``optimizer.step()``), by the names at the loop."""
    models, steps, saved = list[str](), list[str](), list[str]()
    # A model may be put into training once, before the loop.
    place = (source.file(loop), source.function_of(loop))
    before: list[tuple[ast.Call, dict[str, ast.expr | None]]]
    before = [(each, {}) for each in source.calls if last_name(each.func) == "train" and each.lineno < loop.lineno
              and (source.file(each), source.function_of(each)) == place]  # fmt: skip
    for call, names in [*before, *_inside(loop, source, bindings, {}, _DEEPEST)]:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        asked = owner
        if last_name(call.func) == "step" and call.args and last_name(call.args[0]):
            asked = call.args[0]  # scaler.step(optimizer)
        name = None if asked is None else _named(asked, names)
        if name is None or asked is None:
            continue
        if last_name(call.func) == "train" and not call.args:
            models.append(name)
        elif last_name(call.func) == "state_dict":
            saved.append(name.removesuffix(".module"))  # of whatever else the script keeps, as an average
        elif last_name(call.func) == "step" and any(word in last_name(asked).lower() for word in _STEPS):
            steps.append(name)
    if models and steps:
        yield from (*models, *steps, *saved)


def _inside(
    node: ast.AST, source: Source, bindings: Bindings, names: dict[str, ast.expr | None], depth: int
) -> Iterator[tuple[ast.Call, dict[str, ast.expr | None]]]:
    """The calls in a node and in the script's functions that it calls; what their parameters are at the loop."""
    for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
        yield call, names
        for function in bindings.functions.get(last_name(call.func), [])[:1] if depth else ():
            method = source.class_of(function) is not None
            if call not in bindings.calls_of(function) or (method and not _is_own(call)):
                continue
            told = [each.arg for each in function.args.args]
            given = {name: argument(call, name, place - method) for place, name in enumerate(told)}
            inner = {name: _renamed(value, names) for name, value in given.items()}
            if method:
                inner["self"] = ast.Name("self")
            yield from _inside(function, source, bindings, inner, depth - 1)


def _is_own(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self"


def _renamed(value: ast.expr | None, names: dict[str, ast.expr | None]) -> ast.expr | None:
    return names.get(value.id, value) if isinstance(value, ast.Name) else value


def _named(node: ast.expr, names: dict[str, ast.expr | None]) -> str | None:
    """A name, or an attribute of one, as the loop has it; None where it has none."""
    if isinstance(node, ast.Attribute):
        owner = _named(node.value, names)
        return None if owner is None else f"{owner}.{node.attr}"
    if not isinstance(node, ast.Name):
        return None
    found = names.get(node.id, node)
    return ast.unparse(found) if isinstance(found, ast.Name | ast.Attribute) else None
