"""The expressions of a script: constants stay what they are, the rest becomes a text with holes or is not known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from itertools import islice, product
from pathlib import PurePosixPath

from argosy.workflows.script.domain import (
    ANEW,
    FIRST_HOLE,
    LIBRARY,
    NUMBER,
    SETTINGS,
    Absent,
    File,
    Frame,
    FunctionValue,
    ModuleValue,
    OneOf,
    Unknown,
    Untold,
    Value,
    bounded,
    choices,
    join,
)
from argosy.workflows.script.globs import UNKNOWN
from argosy.workflows.script.names import Names

_COMPARES: dict[type[ast.cmpop], Callable[[Value, Value], Value]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: type(a) is type(b) and a == b, ast.IsNot: lambda a, b: type(a) is not type(b) or a != b,
}  # fmt: skip
_NUMBERS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
            ast.FloorDiv: operator.floordiv}  # fmt: skip
_COMBINATIONS = 24
_MOST_ELEMENTS = 8
_PLAIN = str | int | float | bool | None


class Expressions(Names):
    """Evaluates them."""

    # Operations.

    def _list(self, node: ast.List | ast.Tuple, frame: Frame) -> Value:
        found: list[Value] = []
        for each in node.elts:
            value = self.evaluate(each.value if isinstance(each, ast.Starred) else each, frame)
            found += (self.elements(value) or []) if isinstance(each, ast.Starred) else [value]
        return found if isinstance(node, ast.List) else tuple(found)

    _tuple = _list

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        found: dict[Value, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            what = self.evaluate(value, frame)
            name = None if key is None else self.evaluate(key, frame)
            if name == "dirpath":
                self.keep(value, choices(what))
            if key is None:
                found |= self.starred(what)
            elif isinstance(name, _PLAIN):
                found[name] = what
        return found

    @staticmethod
    def starred(value: Value) -> dict[Value, Value]:
        """What ``**value`` puts there: of several dicts each key of any of them."""
        tables = [each for each in choices(value) if isinstance(each, dict)]
        return {key: join(each[key] for each in tables if key in each) for one in tables for key in one}

    def _joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts = []
        for each in node.values:
            value = self.evaluate(each.value if isinstance(each, ast.FormattedValue) else each, frame)
            spec = ast.unparse(each.format_spec) if isinstance(each, ast.FormattedValue) and each.format_spec else ""
            parts.append(Unknown("", NUMBER) if spec[2:-1][-1:] in tuple("dfeg%") else value)
        return self.lifted(lambda *texts: "".join(self.text(each) for each in texts), *parts)

    def _binop(self, node: ast.BinOp, frame: Frame) -> Value:
        return self.operate(node.op, self.evaluate(node.left, frame), self.evaluate(node.right, frame))

    def operate(self, how: ast.operator, left: Value, right: Value) -> Value:
        """``left how right``."""
        return self.lifted(lambda a, b: self._operated(how, a, b), left, right)

    def _operated(self, how: ast.operator, a: Value, b: Value) -> Value:
        if isinstance(how, ast.Mod) and isinstance(a, str):
            return self.filled(a, [*b] if isinstance(b, tuple) else [b])
        if isinstance(how, ast.Div) and (isinstance(a, str | PurePosixPath | File | Absent) or _unclear(a)):
            counted = isinstance(b, Unknown) and b.kind == NUMBER
            if isinstance(a, PurePosixPath) or (isinstance(b, str | PurePosixPath | Unknown) and not counted):
                return PurePosixPath(self.text(a)) / self.text(b)
            return Unknown("", NUMBER)
        if isinstance(how, ast.Add) and (isinstance(a, str) or isinstance(b, str)):
            return self.text(a) + self.text(b)
        if isinstance(how, ast.Add) and isinstance(a, list) and isinstance(b, list):
            return [*a, *b]
        try:
            if isinstance(a, int | float) and isinstance(b, int | float) and type(how) in _NUMBERS:
                return _NUMBERS[type(how)](a, b)
        except (ArithmeticError, ValueError):
            pass
        both = all(
            isinstance(each, int | float) or (isinstance(each, Unknown) and each.kind == NUMBER) for each in (a, b)
        )
        return Unknown("", NUMBER if both else "")

    def _boolop(self, node: ast.BoolOp, frame: Frame) -> Value:
        decides, left = isinstance(node.op, ast.Or), list[Value]()
        for each in node.values:
            value = self.evaluate(each, frame)
            self.keep(each, choices(value))
            truth = self.truth(value)
            if truth is decides or each is node.values[-1]:
                return join([*left, value]) if decides or not left else value if truth is decides else Unknown()
            if truth is None:
                left.append(value)
        return Unknown()

    def _unaryop(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            return Unknown() if truth is None else not truth
        number = isinstance(value, int | float) and isinstance(node.op, ast.USub)
        return -value if number else Unknown("", NUMBER)

    def _ifexp(self, node: ast.IfExp, frame: Frame) -> Value:
        truth, flags = self.test(node.test, frame)
        self.deciding += flags
        ways = [node.body, node.orelse] if truth is None else [node.body if truth else node.orelse]
        value = join(self.evaluate(each, frame) for each in ways)
        return Absent(flags[-1], None) if value is None and flags else value

    def test(self, node: ast.expr, frame: Frame) -> tuple[bool | None, list]:  # type: ignore[type-arg]
        """Whether a test holds, and the flags that are not given and that it asks for."""
        before, self.deciding = self.deciding, []
        holds, flags = self.truth(self.evaluate(node, frame)), self.deciding
        self.deciding = before
        return holds, [*dict.fromkeys(flags)]

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left, right = self.evaluate(node.left, frame), self.evaluate(node.comparators[0], frame)
        if len(node.ops) > 1:
            return Unknown()
        if isinstance(right, Untold) and not right and isinstance(node.ops[0], ast.In):
            return Absent(right.flag, False)
        flags = [each.flag for each in (left, right) if isinstance(each, Absent)]
        found = self.lifted(lambda a, b: self._compared(node.ops[0], a, b), left, right)
        if flags and isinstance(found, bool):
            return Absent(flags[0], found)  # asked for where a name keeps it, too
        self.deciding += flags
        return found

    def _compared(self, how: ast.cmpop, a: Value, b: Value) -> Value:
        a, b = (each.value if isinstance(each, Absent) else each for each in (a, b))
        if isinstance(how, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and (a is None or b is None):
            other = b if a is None else a
            return Unknown() if isinstance(other, Unknown) else (other is None) == isinstance(how, ast.Is | ast.Eq)
        lists = isinstance(how, ast.In | ast.NotIn) and isinstance(b, list | tuple | dict | str)
        within = all(isinstance(each, _PLAIN) for each in b) if lists else isinstance(b, _PLAIN)
        empty = lists and not isinstance(b, str) and not b  # what is filled elsewhere looks empty
        if empty or not isinstance(a, _PLAIN) or not within or self.has_holes(a) or self.has_holes(b):
            return Unknown()
        try:
            return bool(_COMPARES[type(how)](a, b))
        except TypeError:
            return Unknown()

    def _dictcomp(self, node: ast.DictComp, frame: Frame) -> Value:
        several = self.elements(self.evaluate(node.generators[0].iter, frame)) or []
        if len(several) > _MOST_ELEMENTS or any(each.ifs for each in node.generators):
            return {}  # what is put into it later is known
        pairs = self._listcomp(ast.ListComp(ast.Tuple([node.key, node.value], ast.Load()), node.generators), frame)
        return {each[0]: each[1] for each in pairs if isinstance(each[0], _PLAIN)} if isinstance(pairs, list) else {}

    def _namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.evaluate(node.value, frame)
        self.bind(node.target, value, frame)
        return value

    def _starred(self, node: ast.Starred, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _await(self, node: ast.Await, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return FunctionValue(node, frame)

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: Frame) -> Value:
        inside, found = Frame({}, frame.file, frame, owner=frame.owner, own=frame.own), list[Value]()
        first = node.generators[0]
        elements = self.elements(self.evaluate(first.iter, frame))
        for each in islice(elements, _MOST_ELEMENTS) if elements and len(node.generators) == 1 else [Unknown()]:
            self.bind(first.target, each, inside)
            for more in node.generators[1:]:
                self.bind(more.target, Unknown(), inside)
            tests = [self.truth(self.evaluate(test, inside)) for test in first.ifs]
            if False not in tests:
                found.append(self.evaluate(node.elt, inside))
        modules = [each for one in found for each in choices(one) if isinstance(each, ModuleValue)]
        return found if elements and len(node.generators) == 1 else modules or Unknown()

    _generatorexp = _setcomp = _listcomp

    # Texts.

    def lifted(self, function, *values: Value) -> Value:  # type: ignore[no-untyped-def]
        """The function of each combination of what the values may be."""
        if not any(isinstance(each, OneOf) for each in values):
            return bounded(function(*values))
        return join(bounded(function(*each)) for each in islice(product(*map(choices, values)), _COMBINATIONS))

    def hole(self, value: Unknown | Absent) -> str:
        """The character that stands for it."""
        if not value.hole:
            value.hole = chr(FIRST_HOLE + min(len(self.holes), 0xFFFD))
            self.holes.append(value)
        return value.hole

    def hole_of(self, value: Value) -> Unknown | Absent | None:
        """What is not known, where a value is nothing else."""
        text = self.text(value) if isinstance(value, str | PurePosixPath | File) else ""
        each = self.holes[ord(text) - FIRST_HOLE] if len(text) == 1 and ord(text) >= FIRST_HOLE else value
        return each if isinstance(each, Unknown | Absent) else None

    def glob(self, text: str) -> str:
        """A text with holes as a glob."""
        return "".join(self._mark(each) for each in text)

    def _mark(self, character: str) -> str:
        if ord(character) < FIRST_HOLE:
            return character
        hole = self.holes[ord(character) - FIRST_HOLE]
        return "*" if isinstance(hole, Unknown) and hole.kind in (NUMBER, ANEW) else UNKNOWN

    def text(self, value: Value) -> str:
        """The value as a part of a text; a number is a setting or a count, neither is certain."""
        if isinstance(value, File):
            return self.text(value.path)
        if isinstance(value, str | PurePosixPath):
            return str(value)
        if isinstance(value, Absent) and value.value == "":
            return ""
        if isinstance(value, Unknown | Absent):
            return self.hole(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.hole(Unknown("", NUMBER))
        return self.hole(Unknown("", SETTINGS if value is None else ""))

    def filled(self, text: str, values: list[Value]) -> str:
        """``text % values``."""
        raise NotImplementedError


def _unclear(value: Value) -> bool:
    return isinstance(value, Unknown) and value.kind not in (NUMBER, LIBRARY)
