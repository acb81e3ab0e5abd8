"""What a script does with its checkpoints, in its own words, for whoever has to say the rest."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.globs import key_of
from argosy.workflows.script.resuming import OTHERS
from argosy.workflows.script.source import Function, Source, last_name
from argosy.workflows.script.values import Values
from argosy.workflows.script.writers import targets, wrappers_of

LOADERS = ("torch", "pickle", "joblib", "safetensors", "jax", "np", "numpy")
_DEEPEST = 3
_LONGEST = 120
_SAVES = re.compile(r"^save_(checkpoint|ckpt|state)")
_PLACE = re.compile(r"dir|path|file|folder|name|root|out|prefix")
"""So are the arguments called that may be one."""
_SAVER = re.compile(r"(?i)(saver|checkpoint(er|callback)?|snapshot(ter)?)$")


@dataclass(frozen=True)
class Seen:
    """A call that saves or loads: its place, the path as the script writes it, and what it is done under."""

    where: str
    path: str
    glob: str
    """The same as far as it is known; "" for nothing of the file's name."""
    tests: tuple[str, ...]
    flags: tuple[Flag, ...]
    """What the tests ask for, then what the path is made of, as far as the command line does not give it."""
    file: Flag | None = None
    """The flag that is all of the path, where that is a file's."""

    def told(self, does: str) -> str:
        """One line of it."""
        shown = self.path if len(self.path) <= _LONGEST else f"{self.path[:_LONGEST]}..."
        only = f", only if {' and '.join(self.tests)}" if self.tests else ""
        now = ", ".join(f"{each.name} is {said(each)}" for each in self.flags)
        return f"{self.where} {does} {shown}{only}{f' ({now})' if now else ''}"


def said(flag: Flag) -> str:
    """What it is by default."""
    return flag.default or (
        "True" if flag.computed and flag.node is None else "not given" if flag.node is None else ast.unparse(flag.node)
    )


def saved_by(source: Source, values: Values, places: Container[str]) -> tuple[Seen, ...]:
    """The calls that stand in these places."""
    wrappers = wrappers_of(source)
    calls = (call for call in source.calls if source.where(call) in places)
    told = ((call, *each) for call in calls for each in [*targets(call, source, wrappers, values)][:1])
    found = tuple(_below(_seen(call, target, source, values), ending) if ending else
                  replace(_seen(call, target, source, values), file=_file_of(target, values))
                  for call, target, ending in told)  # fmt: skip
    return found or tuple(_by_its_name(source, values))


def _below(seen: Seen, ending: str) -> Seen:
    """With what a library writes into the folder."""
    return replace(seen, glob=f"{seen.glob}{ending}") if seen.glob and ending[:1] == "/" else seen


def _file_of(target: ast.expr, values: Values) -> Flag | None:
    named = next(values.flags_alone(target), None)
    usual = [each for each in values.bindings.origins(target) if isinstance(each, ast.BoolOp)]
    if named is None and usual:
        return values.flag(key_of(usual[0].values[0]))  # args.path or where it saves without
    return values.flag(key_of(target)) if named is None and isinstance(target, ast.Attribute) else named


def _by_its_name(source: Source, values: Values) -> Iterator[Seen]:
    """What a library of which nothing is known is given, where its class is called a saver."""
    for call in (each for each in source.calls if (_SAVER.search(last_name(each.func)) and source.origin(each.func))
                 or _SAVES.search(last_name(each.func))):  # fmt: skip
        words = (word.value for word in call.keywords
                 if not isinstance(word.value, ast.Constant) or _PLACE.search(word.arg or ""))  # fmt: skip
        given = [each for each in (*call.args, *words)
                 if not isinstance(each, ast.Constant) or isinstance(each.value, str)]  # fmt: skip
        shown = (each for each in given if values.guesses(each) or _is_named(_shape(each, values)))
        place = next((each for each in shown if not isinstance(each, ast.JoinedStr)), None)
        if place is not None:
            seen = _seen(call, place, source, values)
            yield replace(seen, glob=f"{seen.glob}*")  # it says how the name goes on


def loaded_by(source: Source, values: Values) -> tuple[Seen, ...]:
    """The calls that read files of a library's making, those first near which an optimizer is given its state."""
    calls = [call for call in source.calls if last_name(call.func) in ("load", "load_file") and call.args
             and isinstance(call.func, ast.Attribute)]  # fmt: skip
    known = [call for call in calls if any(_flags(call.args[0], values))
             or source.origin(call.func.value).partition(".")[0] in LOADERS]  # type: ignore[attr-defined]  # fmt: skip
    first = sorted(known, key=lambda call: not _near_optimizer(call, source))
    seen = (_seen(call, call.args[0], source, values) for call in first)
    return tuple(each for each in seen if not any(OTHERS.search(test) for test in each.tests))


def _near_optimizer(call: ast.Call, source: Source) -> bool:
    around = source.function_of(call)
    text = ast.unparse(around) if around is not None else ""
    return "optim" in text and "load_state_dict" in text


def _seen(call: ast.Call, target: ast.expr, source: Source, values: Values) -> Seen:
    if isinstance(target, ast.Call) and last_name(target.func) == "open":
        target = target.func.value if isinstance(target.func, ast.Attribute) else target.args[0]
    origins = [each for each in values.bindings.origins(target) if not isinstance(each, ast.Constant)]
    named = (each for each in (*origins, target) if _is_named(_shape(each, values)))
    shown = next(named, origins[0] if origins else target)
    kind = source.class_of(call)
    made = next((one for one in source.calls if kind is not None and last_name(one.func) == kind.name), None)
    tests = [each for one in (call, made) if one is not None for each in flag_tests(one, source, values)]
    asked = [flag for each in (*tests, target, shown) for flag in _flags(each, values)]
    words = tuple(dict.fromkeys(ast.unparse(each) for each in tests))
    glob = next((each for each in values.guesses(target)), "") or re.sub(r"\*+", "*", _shape(shown, values))
    glob = glob if _is_named(glob) else ""
    path = ast.unparse(shown)
    for each in ast.walk(shown) if glob[:1] in ("", "*") else ():
        stands = [*map(ast.unparse, values.bindings.origins(each))] if isinstance(each, ast.Name) else []
        if len(stands) == 1 and len(path) + len(stands[0]) < _LONGEST:
            path = f"{path} with {ast.unparse(each)} = {stands[0]}"
    return Seen(source.where(call), path, glob, words, tuple(dict.fromkeys(asked)))


def _is_named(glob: str) -> bool:
    return bool(glob.rpartition("/")[2].strip("*."))


def _shape(node: ast.expr, values: Values, depth: int = _DEEPEST) -> str:
    """A path as it is written down, with ``*`` for what is not."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[-+0-9.]*[a-z]|\{[^{}]*\}", "*", node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_shape(each, values, depth) for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
        between = "/" if isinstance(node.op, ast.Div) else ""
        return f"{_shape(node.left, values, depth)}{between}{_shape(node.right, values, depth)}"
    if isinstance(node, ast.BinOp):
        return _shape(node.left, values, depth)
    if isinstance(node, ast.Call) and last_name(node.func) in ("join", "joinpath"):
        above = [node.func.value] if last_name(node.func) == "joinpath" and isinstance(node.func, ast.Attribute) else []
        return "/".join(_shape(each, values, depth) for each in (*above, *node.args))
    if isinstance(node, ast.Call) and last_name(node.func) == "format" and isinstance(node.func, ast.Attribute):
        return _shape(node.func.value, values, depth)
    if isinstance(node, ast.Call) and last_name(node.func) in ("str", "Path") and node.args:
        return _shape(node.args[0], values, depth)
    if isinstance(node, ast.Name) and depth:
        made = {each for each in values.bindings.origins(node) if not isinstance(each, ast.Constant)}
        return _shape(made.pop(), values, depth - 1) if len(made) == 1 else "*"
    return (values.conditions.flag(key_of(node)) or "*") if isinstance(node, ast.Attribute) else "*"


def flag_tests(node: ast.AST, source: Source, values: Values, depth: int = _DEEPEST) -> Iterator[ast.expr]:
    """What must be true for it to be run and names a flag, where its function is called, too."""
    below: ast.AST = node
    for above in source.above(node):
        if isinstance(above, ast.If) and below is not above.test:
            test = _spelled(above.test, source, values)
            if any(_flags(test, values)):
                yield test if below in above.body else ast.UnaryOp(ast.Not(), test)
        if isinstance(above, Function | ast.For | ast.While) and below in above.body:
            leaves = ast.Return | ast.Raise | ast.Continue | ast.Break
            left = (each.test for each in above.body[: above.body.index(below)] if isinstance(each, ast.If)
                    and isinstance(each.body[-1], leaves))  # fmt: skip
            held = (test for test in left if values.conditions.holds(test) is not False)
            yield from (_turned(test) for test in held if any(_flags(test, values)))
        if isinstance(above, Function):
            callers = [call for call in values.bindings.calls_of(above) if call in source.calls]
            yield from flag_tests(callers[0], source, values, depth - 1) if callers and depth else ()
            return
        below = above


def _turned(test: ast.expr) -> ast.expr:
    """The test for the opposite."""
    turned = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    return test.operand if turned and isinstance(test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), test)


def ended_by(source: Source, values: Values) -> tuple[str, Flag] | None:
    """Where the script raises before it saves anything, and the flag that this asks for; None for nowhere."""
    node = None if values.machine.followed else values.machine.ended
    tests = [] if node is None else [*flag_tests(node, source, values)]
    asked = [flag for each in tests for flag in _flags(each, values)]
    if node is None or not asked:
        return None
    told = " and ".join(dict.fromkeys(map(ast.unparse, tests)))
    return f"{source.where(node)} raises as the flags are ({told})", max(asked, key=lambda flag: flag.takes_value)


def set_off(source: Source, values: Values, places: Container[str]) -> tuple[str, str] | None:
    """Where a field, or a name, keeps the script from its saves in these places, and what stands there: ``save: bool =
    False``; None where no single line does.
    """
    for call in (each for each in source.calls if source.where(each) in places and each not in values.machine.calls):
        inside = zip([call, *source.above(call)], source.above(call), strict=False)
        for above in (each for below, each in inside if isinstance(each, ast.If) and below in each.body):
            turned = {one for each in ast.walk(above.test) if isinstance(each, ast.UnaryOp) for one in ast.walk(each)}
            names = {last_name(each) for each in ast.walk(above.test) if isinstance(each, ast.Attribute | ast.Name)
                     and each not in turned}  # fmt: skip
            found = [node for node in source.nodes if isinstance(node, ast.AnnAssign | ast.Assign)
                     and isinstance(node.value, ast.Constant) and node.value.value is False
                     and any(last_name(each) in names for each in _given(node))]  # fmt: skip
            if len(found) == 1:
                return source.where(found[0]), ast.unparse(found[0])
    return None


def _given(node: ast.AnnAssign | ast.Assign) -> list[ast.expr]:
    return [node.target] if isinstance(node, ast.AnnAssign) else node.targets


def _spelled(node: ast.expr, source: Source, values: Values) -> ast.expr:
    """A test, or the one that its name stands for."""
    found = next(values.bindings.bound(node), None) if isinstance(node, ast.Name) else None
    if isinstance(found, ast.BoolOp | ast.Compare):
        return found
    if isinstance(node, ast.Attribute) and values.flag(node.attr) is None:
        near = (each for _, each in values.bindings.attributes.get(node.attr, [])
                if source.class_of(each) is source.class_of(node) and any(_flags(each, values)))  # fmt: skip
        kept = next(near, node)  # what the object keeps of a flag
        missing = isinstance(kept, ast.IfExp) and isinstance(kept.body, ast.Constant) and not kept.body.value
        return ast.UnaryOp(ast.Not(), kept.test) if missing and isinstance(kept, ast.IfExp) else kept
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(node.op, [_spelled(each, source, values) for each in node.values])
    return node


def _flags(node: ast.expr, values: Values) -> Iterator[Flag]:
    """The flags that an expression names, and that have their defaults."""
    for each in ast.walk(node):
        named = isinstance(each, ast.Attribute | ast.Subscript) and not values.source.origin(each)  # torch.distributed
        flag = values.flag(key_of(each)) if named and isinstance(each, ast.expr) else None
        if flag is not None and values.conditions.flag(flag.attribute) == flag.default:
            yield flag
