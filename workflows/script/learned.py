"""What a loop trains: the models and optimizers, by the names that they have at the loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from argosy.workflows.script.bindings import Bindings
from argosy.workflows.script.source import Function, Source, argument, counted, last_name
from argosy.workflows.script.values import Values

_STEPS = ("opt", "solver", "adam", "sgd", "sched")
_TAKEN = {"closure", "epoch", "metric", "metrics"}
"""So torch and timm call what a step is given; what takes something else may have no state_dict."""
_OPTIMIZERS = ("Adam", "SGD", "RMSprop", "Optimizer", "Adagrad", "LARS", "Lion")
_OF_DATA = re.compile(r"(?i)data|load|^accelerator$|(^|_)dl(_|$)")
Names = Mapping[str, ast.expr | None]
"""What the names of a function are at the loop; None: nothing that it has a name for."""


def learned(loop: ast.For | ast.While, source: Source, values: Values) -> Iterator[str]:
    """What is put into training (``model.train()``), what optimizers are made of, and what steps (``opt.step()``)."""
    models, steps, saved = list[str](), list[str](), list[str]()
    entered = {*source.above(loop)}
    for call, names in (one for each in (*_before(loop, source), loop)
                        for one in _inside(each, source, values, {}, entered)):  # fmt: skip
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        asked = owner
        if last_name(call.func) == "step" and call.args and _is_stepped(call.args[0], values):
            asked = call.args[0]  # scaler.step(optimizer)
        if last_name(call.func) in ("train", "parameters") and isinstance(owner, ast.Subscript):
            return  # one of several, of which no name tells how many
        name = None if asked is None else _named(asked, names)
        if name is None or asked is None:
            continue
        if last_name(call.func) in ("train", "parameters") and not call.args and name != "self":
            models += [] if _is_plain(call, source, values.bindings) else [name]
        elif last_name(call.func) in ("state_dict", "load_state_dict"):
            saved.append(name.removesuffix(".module"))  # of whatever else the script keeps, as an average
            if not _has_each_rank(asked, source, values):
                return
        elif last_name(call.func) == "step" and _is_stepped(asked, values):
            steps += [name] if {word.arg for word in call.keywords} <= _TAKEN else []
    models += [name for name in _handed(loop, source, values) if name not in models]
    for name in _prepared(loop, source):
        (steps if any(word in name.lower() for word in _STEPS) else models).append(name)
    anew = {ast.unparse(each) for node in ast.walk(loop) if isinstance(node, ast.Assign) for each in node.targets}
    saved = [name for name in saved if name not in anew]  # as what is made for each evaluation is
    if (models or {*saved} - {*steps}) and steps:
        models, saved = ([name for name in kind if not any(name.startswith(f"{other}.") for other in kind)]
                         for kind in (models, saved))  # fmt: skip
        yield from (*models, *steps, *saved)


def counted_within(loop: ast.For | ast.While, source: Source, values: Values) -> Iterator[str]:
    """What the methods that it calls count on in their objects, from a number that these begin with, and that nothing
    sets back: ``trainer.step``.
    """
    for call, names in _inside(loop, source, values, {}, {*source.above(loop)}):
        around, kind, own = source.function_of(call), source.class_of(call), names.get("self")
        if around is None or kind is None or own is None:
            continue
        made = [(target, node) for node in ast.walk(kind) if isinstance(node, ast.Assign) for target in node.targets]
        turns = (node for node in ast.walk(around) if not isinstance(node, ast.AugAssign) or is_number(node.value))
        for name in (ast.unparse(target) for node in turns if (target := counted(node)) is not None):
            given = [node for target, node in made if ast.unparse(target) == name and is_number(node.value)]
            begun = [getattr(source.function_of(each), "name", "") == "__init__" for each in given]
            if name[:5] == "self." and begun and all(begun):
                yield f"{ast.unparse(own)}{name[4:]}"


def _handed(loop: ast.For | ast.While, source: Source, values: Values) -> Iterator[str]:
    """The parameters of the loop's function that are given what its caller made an optimizer of."""
    around = source.function_of(loop)
    used = {each.id: each for each in ast.walk(around or loop) if isinstance(each, ast.Name)}
    made = {(source.function_of(each), ast.unparse(each.func)) for call in source.calls
            for each in _given_to_optimizer(call)}  # fmt: skip
    for word in around.args.args if around is not None else ():
        given = [*values.bindings.passed(used[word.arg])] if word.arg in used else []
        if any((source.function_of(each), f"{ast.unparse(each)}.parameters") in made for each in given):
            yield word.arg


def again(loop: ast.For | ast.While, source: Source, values: Values) -> bool:
    """Whether it is gone through for one model after another: what one has saved is no state of the next."""
    around, kind = source.function_of(loop), source.class_of(loop)
    if around is None:
        return False
    # A trainer that calls train() of what it holds means its model's.
    own = f"self.{around.name}"
    calls = [each for each in values.machine.sure.intersection(values.bindings.calls_of(around))
             if kind is None or source.class_of(each) is not kind or ast.unparse(each.func) == own]  # fmt: skip
    return sum(means(each, around, source, values.bindings) and not _is_instead(each, source) for each in calls) > 1


def _is_instead(call: ast.Call, source: Source) -> bool:
    """Whether it stands in an ``else`` or behind an ``except``, in place of what stands before."""
    near = [call, *source.above(call)]
    return any(isinstance(above, ast.ExceptHandler) or (isinstance(above, ast.If) and below in above.orelse)
               for below, above in pairwise(near))  # fmt: skip


def _is_stepped(asked: ast.expr, values: Values) -> bool:
    """Whether it is an optimizer, or a schedule of one: by its name, else by what it is bound to."""
    made = values.bindings.bound(asked) if isinstance(asked, ast.Name) else []
    kinds = [last_name(each.func) for each in made if isinstance(each, ast.Call)]
    named = any(word in kind for kind in kinds for word in _OPTIMIZERS)
    return named or any(word in last_name(asked).lower() for word in _STEPS)


def _has_each_rank(asked: ast.expr, source: Source, values: Values) -> bool:
    """Whether it is not made only where ``is_main_process`` is true: the others have nothing to save of it."""
    some = {each for node in source.nodes if isinstance(node, ast.If) and "is_main" in ast.unparse(node.test)
            for each in ast.walk(node)}  # fmt: skip
    made = {each for _, each in values.bindings.attributes.get(last_name(asked), [])}
    return not made or not made <= some


def _prepared(loop: ast.For | ast.While, source: Source) -> Iterator[str]:
    """What ``net, optimizer, loader = accelerator.prepare(...)`` gives names above the loop, but for its data."""
    around = source.function_of(loop)
    made = [node for node in source.nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            and last_name(node.value.func) == "prepare" and node.lineno < loop.lineno
            and around is not None and source.function_of(node) is around]  # fmt: skip
    names = (each.id for node in made for one in node.targets for each in ast.walk(one) if isinstance(each, ast.Name))
    yield from (name for name in names if not _OF_DATA.search(name))


def _before(loop: ast.For | ast.While, source: Source) -> Iterator[ast.Call]:
    """What stands above the loop, in its function, and what makes the object that it is a method of: a model may be put
    into training once, and never be named but where its optimizer is made.
    """
    around, kind = source.function_of(loop), source.class_of(loop)
    for each in source.calls:
        place = source.function_of(each)
        near = place in (around, None) and source.file(each) == source.file(loop) and each.lineno < loop.lineno
        makes = kind is not None and place is not None and place in kind.body and place.name == "__init__"
        if (last_name(each.func) == "train" and near) or (last_name(each.func) == "state_dict" and place is around):
            yield each
        if near or makes:
            yield from (one for one in _given_to_optimizer(each) if near or ast.unparse(one.func)[:5] == "self.")


def _given_to_optimizer(call: ast.Call) -> Iterator[ast.Call]:
    """``model.parameters()`` in ``Adam(model.parameters())``, where no comprehension names the model."""
    if any(word in last_name(call.func) for word in _OPTIMIZERS):
        loops = {each.id for node in ast.walk(call) if isinstance(node, ast.comprehension)
                 for each in ast.walk(node.target) if isinstance(each, ast.Name)}  # fmt: skip
        made = (each for each in ast.walk(call) if isinstance(each, ast.Call) and last_name(each.func) == "parameters")
        yield from (one for one in made if not loops & {getattr(each, "id", "") for each in ast.walk(one.func)})


def _inside(
    node: ast.AST, source: Source, values: Values, names: Names, entered: set[ast.AST]
) -> Iterator[tuple[ast.Call, Names]]:
    """The calls in a node and in the script's functions that it calls; what their parameters are at the loop."""
    for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
        if values.machine.followed and values.machine.needed(call) != ():
            continue  # nor what only a flag makes
        yield call, names
        named = values.bindings.functions.get(last_name(call.func), []) or values.bindings.object_of(call)
        known = [each for each in named if each not in entered]
        for function in [each for each in known if means(call, each, source, values.bindings)][:1]:
            method = source.class_of(function) is not None
            told = [each.arg for each in function.args.args]
            given = {name: argument(call, name, place - method) for place, name in enumerate(told)}
            inner: dict[str, ast.expr | None] = {name: _renamed(value, names) for name, value in given.items()}
            if method:
                inner["self"] = _renamed(call.func.value, names) if isinstance(call.func, ast.Attribute) else None
            for each in ast.walk(function):
                turned = ast.walk(each.target) if isinstance(each, ast.For | ast.comprehension) else ()
                inner |= {one.id: None for one in turned if isinstance(one, ast.Name)}  # one of several
                if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                    shown = _named(each.value, inner) if isinstance(each.value, ast.Name | ast.Attribute) else None
                    inner.setdefault(each.targets[0].id, None if shown is None else _parsed(shown))
            yield from _inside(function, source, values, inner, {*entered, function})


def means(call: ast.Call, function: Function, source: Source, bindings: Bindings) -> bool:
    """Whether a call is of that function: of an object by what made it, or by the one class that trains something."""
    kind = source.class_of(function)
    if call not in bindings.calls_of(function):
        return False
    if not isinstance(call.func, ast.Attribute):
        return kind is None or function.name in ("__init__", "__call__")
    if kind is None:
        return bool(source.origin(call.func))
    owner = call.func.value
    if ast.unparse(owner) in ("self", "super()"):
        own = source.class_of(call)
        return own is None or kind in _lineage(own, bindings) or own in _lineage(kind, bindings)
    if isinstance(owner, ast.Attribute):
        made = [value for _, value in bindings.attributes.get(owner.attr, [])]
    else:
        made = [*bindings.bound(owner)] if isinstance(owner, ast.Name) else []
    names = [last_name(each.func) for each in made if isinstance(each, ast.Call)]
    if known := [one for name in names for one in bindings.classes.get(name, [])]:
        return any(kind in _lineage(one, bindings) for one in known)
    if source.origin(owner):
        return False  # ``np.load`` is no method
    if function.name in ("state_dict", "load_state_dict", "parameters"):
        return False  # every model and optimizer has them
    alike = (source.class_of(each) for each in bindings.functions[function.name])
    return [each for each in alike if each is not None and _trains(each)] == [kind]


def _is_plain(call: ast.Call, source: Source, bindings: Bindings) -> bool:
    """Whether ``agent.train()`` is a method of a class of the script's own that is no module."""
    known = (source.class_of(each) for each in bindings.functions.get(last_name(call.func), [])
             if means(call, each, source, bindings))  # fmt: skip
    kind = next(known, None)
    return kind is not None and not any(source.origin(base) for each in _lineage(kind, bindings) for base in each.bases)


def _lineage(kind: ast.ClassDef, bindings: Bindings, depth: int = 4) -> Iterator[ast.ClassDef]:
    yield kind
    for base in kind.bases if depth else ():
        for each in bindings.classes.get(last_name(base), []):
            yield from _lineage(each, bindings, depth - 1)


def _trains(kind: ast.ClassDef) -> bool:
    return any(isinstance(each, ast.Call) and last_name(each.func) == "backward" for each in ast.walk(kind))


def _parsed(name: str) -> ast.expr:
    return ast.parse(name, mode="eval").body


def _renamed(value: ast.expr | None, names: Names) -> ast.expr | None:
    named = None if value is None else _named(value, names)
    return None if named is None else _parsed(named)


def _named(node: ast.expr, names: Names) -> str | None:
    """A name, or an attribute of one, as the loop has it; None where it has none."""
    if isinstance(node, ast.Attribute):
        owner = _named(node.value, names)
        return None if owner is None else f"{owner}.{node.attr}"
    if not isinstance(node, ast.Name):
        return None
    found = names.get(node.id, node)
    return ast.unparse(found) if isinstance(found, ast.Name | ast.Attribute) else None


def is_number(node: ast.expr) -> bool:
    """Whether a number is written there."""
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(value, ast.Call):
        return last_name(value.func) == "float"
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float)
    return last_name(value) in ("inf", "Inf", "infty")
