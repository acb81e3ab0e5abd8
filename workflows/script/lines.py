"""The lines that make a script go on which loads nothing of what it saves: around its own loop, with its own names."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import takewhile

from argosy.workflows.script.end import last_turn
from argosy.workflows.script.learned import again, counted_within, is_number, learned, means
from argosy.workflows.script.source import Function, Source, counted, last_name
from argosy.workflows.script.values import Values

_COUNTS = ("range", "trange", "count")
LEARNS = ("backward", "manual_backward")
LONG = re.compile(r"(?i)epoch|episode|round|(?<![a-z])era|session|fold")
"""So is a counter called whose turns are long enough to save after each."""
_EVERY = 1000
"""Turns between two saves of a counter of steps, at most."""
Turning = ast.For | ast.While
FOLDER = "FOLDER"
"""Stands in a library's lines for the folder."""


@dataclass(frozen=True)
class Loop:
    """The loop over epochs or steps, and what the script calls its models and optimizers there."""

    where: str
    header: str
    """Its line, or that of the ``with`` that counts, with ``start`` for the number that it begins with; "" of a
    ``while``, whose own counters go on.
    """
    start: str
    first: str
    counter: str
    states: tuple[str, ...]
    counts: tuple[str, ...]
    """Other numbers that it counts on."""
    ranks: bool
    """Whether several ranks come to it."""
    imports: str
    """What its file does not import, and needs."""
    anew: bool = False
    """Whether it takes all its turns from the first one on, whatever was loaded."""
    end: int | None = None
    """Its last turn, where the script says it."""
    turn: str = ""
    """The loop inside in which the counter is counted on; "" where that is the loop itself."""
    told: str = ""
    """The lines, with FOLDER for the folder, where the loop is a library's."""

    def lines(self, path: str, end: int | None) -> str:
        """What to write, with the state in ``path``; ``end``: its last step, where that is known."""
        if self.told:
            return self.told.replace(FOLDER, os.path.dirname(path) or ".")
        counted = dict.fromkeys((*((self.counter,) if self.header else ()), *self.counts))
        parts = [f'"{name}": {name}.state_dict()' for name in self.states] + [f'"{name}": {name}' for name in counted]
        loads = [f'{name}.load_state_dict(state["{name}"])' for name in self.states]
        loads += [f'{name} = state["{name}"]' for name in self.counts]
        loads += [f'{self.start} = state["{self.counter}"] + 1'] if self.header else []
        told = "".join(f"\n            {line}" for line in loads)
        save = f'torch.save({{{", ".join(parts)}}}, "{path}")'
        alone = "not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0"
        turns = LONG.search(f"{self.counter} {self.header}")
        tests = [alone if turns else f"({alone})"] if self.ranks else []
        tests += [] if turns else [f"{self.counter} % {_every(end or self.end)} == 0"]
        cost = "" if turns else "  # so many steps a kill may cost"
        alone = f"if {' and '.join(tests)}:{cost}\n            " if tests else ""
        file = self.where.rpartition(":")[0]
        top = (
            f"    at {f'the top of {file}' if file else 'its top'}:\n        import {self.imports}\n"
            if self.imports
            else ""
        )
        folder = os.path.dirname(path)
        made = f'        os.makedirs("{folder}", exist_ok=True)\n' if folder else ""
        made += f"        {self.start} = {self.first}\n" if self.header else ""
        instead = f"    instead of {self.where}:\n        {self.header}\n" if self.header else ""
        return (
            f'{top}    before {self.where}:\n{made}        if os.path.exists("{path}"):\n            state = '
            f'torch.load("{path}", map_location="cpu", weights_only=False){told}\n{instead}'
            f"    as the last lines of {self.turn or ('that' if self.header else 'its')} loop:\n        {alone}{save}"
        )


def _every(end: int | None) -> int:
    return _EVERY if end is None else max(1, min(_EVERY, end // 10))


def loop_of(source: Source, values: Values, distributed: bool, bare: bool = False) -> Loop | None:
    """The outermost loop that counts and trains; None where it cannot be told. ``bare``: whatever it trains."""
    for call in source.calls:
        if last_name(call.func) in LEARNS and values.machine.comes_to(call):
            around = max(chains(call, source, values), key=len, default=[])
            for some in ([each for each in around if not _is_once(each, source, values)], around):
                if some and (found := _described(some[-1], source, values, distributed, bare)) is not None:
                    return found
    return None


def _is_once(loop: Turning, source: Source, values: Values) -> bool:
    """Whether it takes one turn, as the flags are: ``for _ in range(args.runs)``."""
    held = turns(loop, source, values) if isinstance(loop, ast.For) else None
    return held is not None and len(held[1].args) == 1 and last_turn(held[1], values) == 1


def chains(
    node: ast.AST, source: Source, values: Values, entered: frozenset[ast.AST] = frozenset()
) -> Iterator[list[Turning]]:
    """The loops that a node stands in, the nearest first, those around each caller of its function, too."""
    inside = list[Turning]()
    for above in source.above(node):
        if isinstance(above, Turning):
            inside.append(above)
        if isinstance(above, Function):
            within = entered | {above}
            known = [call for call in values.bindings.calls_of(above) if call in source.calls
                     and values.machine.comes_to(call) and means(call, above, source, values.bindings)]  # fmt: skip
            onward = [more for call in known if source.function_of(call) not in within
                      for more in chains(call, source, values, within)]  # fmt: skip
            yield from ([*inside, *more] for more in onward)
            if known and not onward:
                return  # it only leads back, as m.train() does, which is another's method
            break
    yield inside


def turns(loop: ast.For, source: Source, values: Values) -> tuple[ast.stmt, ast.Call] | None:
    """What holds the ``range(...)`` of ``for epoch in tqdm(range(...))``, of ``with trange(...) as steps``, and of
    ``epochs = tqdm(range(...))``.
    """
    if not isinstance(loop.target, ast.Name | ast.Attribute):
        return None
    if (call := _range(loop.iter)) is not None:
        return loop, call
    bound = [*dict.fromkeys(values.bindings.bound(loop.iter))] if isinstance(loop.iter, ast.Name) else []
    if len(bound) == 1 and (call := _range(bound[0])) is not None:
        made = next(source.above(bound[0]))
        return (made, call) if isinstance(made, ast.Assign) and made.lineno < loop.lineno else None
    for above in source.above(loop) if isinstance(loop.iter, ast.Name) else ():
        for item in above.items if isinstance(above, ast.With) else ():
            named = isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == last_name(loop.iter)
            if named and isinstance(above, ast.With) and (call := _range(item.context_expr)) is not None:
                return above, call
    return None


def _range(node: ast.expr) -> ast.Call | None:
    found = (each for each in ast.walk(node) if isinstance(each, ast.Call) and last_name(each.func) in _COUNTS)
    return next(found, None)


def _described(loop: Turning, source: Source, values: Values, distributed: bool, bare: bool) -> Loop | None:
    states = () if again(loop, source, values) else (*dict.fromkeys(learned(loop, source, values)),)
    itself = {target for node in ast.walk(loop) if isinstance(node, ast.Assign) for target in node.targets
             if ast.unparse(node.value).startswith(f"{ast.unparse(target)}.")}  # fmt: skip  # net = net.train()
    inside = {ast.unparse(each) for each in ast.walk(loop)
              if isinstance(getattr(each, "ctx", None), ast.Store) and each not in itself}  # fmt: skip
    # What each turn makes anew, as the folds of a cross-validation, is not there before it.
    if not bare and (not states or any(name == one or name.startswith(f"{one}.") for one in inside for name in states)):
        return None
    zero = (call for call in source.calls if last_name(call.func) == "ZeroRedundancyOptimizer")
    if any(map(values.machine.calls.get, zero)):
        return None
    within = (each for each in counted_within(loop, source, values)
              if not any(each.startswith(f"{one}.") for one in inside - {"self"})
              and _has_each_rank(each.rpartition(".")[0], loop, source))  # fmt: skip
    counts = (*dict.fromkeys((*_counters(loop, source), *_carried(loop, source), *within)),)
    counts = (*(each for each in counts if not _may_lack(each, loop, source)),)
    lacks = [name for name in ("os", "torch") if (source.file(loop), name) not in source.top]
    if isinstance(loop, ast.While):
        asked = {ast.unparse(each) for each in ast.walk(loop.test) if isinstance(each, ast.expr)}
        counter = next((name for name in counts if name in asked), counts[0] if counts else "")
        made = Loop(source.where(loop), "", "", "", counter, states, counts, distributed, ", ".join(lacks),
                    end=_bound(loop.test, counter, values), turn=_turn_of(counter, loop, source))  # fmt: skip
        return made if counter else None
    holder = turns(loop, source, values)
    if holder is None or len(holder[1].args) > 2 or any(word.arg in ("start", "step") for word in holder[1].keywords):
        return None
    named = {each.id for each in source.nodes if isinstance(each, ast.Name) and source.file(each) == source.file(loop)}
    start = next(name for name in ("start", "start_at", "_start") if name not in named)
    header, first = _begun_at(*holder, start)
    left = any(isinstance(each, ast.Continue | ast.Break | ast.Return) for each in ast.walk(loop))
    set_too = ast.unparse(loop.target) in {ast.unparse(one) for each in ast.walk(loop) if isinstance(each, ast.Assign)
                                           for one in each.targets}  # fmt: skip
    anew = first.isdecimal() and last_turn(holder[1], values) is not None and not left and not set_too
    return Loop(source.where(holder[0]), header, start, first, ast.unparse(loop.target), states, counts, distributed,
                ", ".join(lacks), anew, last_turn(holder[1], values))  # fmt: skip


def _may_lack(name: str, loop: Turning, source: Source) -> bool:
    """Whether a name is set before the loop only where a branch is taken: ``if args.wandb: log_step = 0``."""
    made = [each for each in source.nodes if isinstance(each, ast.Assign) and each.lineno < loop.lineno
            and source.file(each) == source.file(loop) and source.function_of(each) is source.function_of(loop)
            and any(ast.unparse(target) == name for target, _ in _set(each))]  # fmt: skip
    around = [each for one in made for each in source.above(one) if isinstance(each, ast.If)]
    return len(made) == 1 and any(loop not in ast.walk(each) for each in around)


def _has_each_rank(owner: str, loop: Turning, source: Source) -> bool:
    """Whether an object is made whatever the rank is: not as ``if rank == 0: logger = Logger()``, or None else."""
    made = [each for each in source.nodes if isinstance(each, ast.Assign) and owner in map(ast.unparse, each.targets)]
    some = any(isinstance(each, ast.If) and loop not in ast.walk(each) for one in made for each in source.above(one))
    return not some and not any(isinstance(each.value, ast.IfExp | ast.Constant) for each in made)


def _bound(test: ast.expr, counter: str, values: Values) -> int | None:
    """Of ``while step < 100``."""
    if not isinstance(test, ast.Compare) or ast.unparse(test.left) != counter or len(test.ops) > 1:
        return None
    end = test.comparators[0]
    known = [*{*values.bindings.bound(end)}] if isinstance(end, ast.Name) else [end]
    value = known[0].value if len(known) == 1 and isinstance(known[0], ast.Constant) else None
    return value if type(value) is int and isinstance(test.ops[0], ast.Lt | ast.LtE) else None


def _turn_of(counter: str, loop: Turning, source: Source) -> str:
    """The loop that a step is a turn of, where that lies inside: what stands below it is come to once in an epoch."""
    adds = (node for node in ast.walk(loop) if (target := counted(node)) is not None and ast.unparse(target) == counter)
    inner = next((each for node in adds for each in source.above(node) if isinstance(each, Turning)), loop)
    line = ast.unparse(inner).partition("\n")[0]
    return "" if inner is loop else f"the `{line}` of {source.where(inner)}, in that"


def _begun_at(holder: ast.stmt, call: ast.Call, start: str) -> tuple[str, str]:
    """The first line of a loop, or of a ``with``, that counts from ``start``, and what it counted from."""
    begins = len(call.args) == 2 or (last_name(call.func) == "count" and call.args)
    first = ast.unparse(call.args[0]) if begins else "0"
    made, text = deepcopy(holder), ast.unparse(call)
    again = next(each for each in ast.walk(made) if isinstance(each, ast.Call) and ast.unparse(each) == text)
    again.args[:] = [ast.Name(start), *again.args[bool(begins) :]]
    return ast.unparse(made).partition("\n")[0], first


def _counters(loop: Turning, source: Source) -> tuple[str, ...]:
    """Names that the loop adds to, and sets nowhere else: they go on with it."""
    own, before = _own(loop, source), _numbers_before(loop, source)
    named = [(each, target) for each in own if isinstance(target := counted(each), ast.Name | ast.Attribute)]
    told = [ast.unparse(target) for each, target in named
            if not isinstance(each, ast.AugAssign) or isinstance(each.value, ast.Constant)
            or (ast.unparse(target) in before and _is_amount(each.value))]  # fmt: skip
    others = {ast.unparse(each) for node in own if isinstance(node, ast.Assign) and counted(node) is None
              for target in node.targets for each in ast.walk(target) if isinstance(each, ast.expr)}  # fmt: skip
    return tuple(name for name in dict.fromkeys(told) if name not in others)


def _carried(loop: Turning, source: Source) -> tuple[str, ...]:
    """Names that the loop sets only by what they were: ``if loss < best: best = loss``, ``mean = 0.9 * mean + x``."""
    before, found = _numbers_before(loop, source), dict[str, bool]()
    for node in _own(loop, source):
        if not isinstance(node, ast.Assign):
            continue
        around = next((each for each in source.above(node) if isinstance(each, ast.If)), None)
        asked = [node.value, *([around.test] if around is not None and node in around.body else [])]
        names = {each.id for one in asked for each in ast.walk(one) if isinstance(each, ast.Name)}
        for name in (ast.unparse(target) for target, _ in _set(node)):
            found[name] = found.get(name, name in before) and name in names
    return tuple(name for name, kept in found.items() if kept)


def loops_around(node: ast.AST, source: Source) -> Iterator[Turning]:
    """The loops that it stands in, the nearest first, but for those around its function."""
    inside = takewhile(lambda each: not isinstance(each, Function), source.above(node))
    return (each for each in inside if isinstance(each, Turning))


def _own(loop: Turning, source: Source) -> list[ast.AST]:
    """What stands in the loop, but in no function that is defined there."""
    around = source.function_of(loop)
    return [each for each in ast.walk(loop) if source.function_of(each) is around]


def _numbers_before(loop: Turning, source: Source) -> set[str]:
    """Names that are set to a number above the loop: ``best = float("inf")``."""
    around = source.function_of(loop)
    made = (node for node in source.nodes if isinstance(node, ast.Assign) and source.function_of(node) is around
            and source.file(node) == source.file(loop) and node.lineno < loop.lineno)  # fmt: skip
    return {each.id for node in made for each, value in _set(node) if is_number(value) and isinstance(each, ast.Name)}


def _set(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is given a value, and the value: of ``loss, step = 0, 0`` each its own, of what a call answers all of it."""
    for target in node.targets:
        several = target.elts if isinstance(target, ast.Tuple) else [target]
        each = node.value.elts if isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(several) else None
        yield from zip(several, each or [node.value] * len(several), strict=True)


def _is_amount(node: ast.expr) -> bool:
    """Whether it is a number of things, as ``args.num_envs``, ``len(batch)``: no loss, which may be a tensor."""
    calls = [last_name(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)]
    return all(name in ("len", "int", "size", "numel") for name in calls) and not re.search(
        r"(?i)loss|err|acc|score", ast.unparse(node)
    )
