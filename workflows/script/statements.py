"""The statements of a script, each gone through in its order; what only a run could decide is gone both ways."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import partial
from pathlib import PurePosixPath

from argosy.workflows.script.domain import (
    NUMBER,
    Absent,
    ClassValue,
    Frame,
    FunctionValue,
    Instance,
    ModuleValue,
    OneOf,
    Table,
    Unknown,
    Value,
    choices,
    join,
)
from argosy.workflows.script.expressions import Expressions
from argosy.workflows.script.memory import BREAK, LEAVE, RAISE, RETURN
from argosy.workflows.script.source import Function, last_name

_MOST_TURNS = 8
_SMALL = 40
"""A loop whose body has at most so many nodes is gone round for each of many elements."""
_MANY = 400
_MOST_NODES = 8000
"""Of a larger body, in all turns together."""
_OF_FIRST = re.compile(r"^\w*rank\w*(\(\))? == 0$")
_OF_PYTHON = ("property", "staticmethod", "classmethod", "dataclass")


def _turns_over(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether a turn sets a switch that the next asks for first: ``if refining: ...; if good: refining = True``."""
    on = (each for each in ast.walk(loop) if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
          and each.value.value is True)  # fmt: skip
    switches = {ast.unparse(target): each.lineno for each in on for target in each.targets}
    asked = [each for each in ast.walk(loop) if isinstance(each, ast.If)] if switches else []
    return any(each.lineno < switches.get(ast.unparse(each.test), 0) for each in asked)


class Statements(Expressions):
    """Runs blocks; each answers how it ended before its last line, "" if it did not."""

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> str:
        """Go through the statements."""
        for node in body:
            if end := self._statement(node, frame):
                return end
        return ""

    def _statement(self, node: ast.stmt, frame: Frame) -> str:
        self.spend()
        way = getattr(self, f"_{type(node).__name__.lower()}_", None)
        return "" if way is None else way(node, frame) or ""

    def _expr_(self, node: ast.Expr, frame: Frame) -> None:
        self.evaluate(node.value, frame)

    def _assign_(self, node: ast.Assign, frame: Frame) -> None:
        value = self.evaluate(node.value, frame)
        for target in node.targets:
            self.bind(target, value, frame)

    def _annassign_(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluate(node.value, frame), frame)

    def _augassign_(self, node: ast.AugAssign, frame: Frame) -> None:
        old = self.evaluate(node.target, frame)
        more = self.evaluate(node.value, frame)
        if isinstance(old, list) and isinstance(more, list | tuple):
            self.write(old, None, [*old, *more])
        elif isinstance(more, list) and isinstance(old, Unknown | Absent | str):
            self.bind(node.target, more, frame)  # words of the command line, which are asked for as they are
        elif isinstance(old, int | float):
            self.bind(node.target, Unknown(last_name(node.target), NUMBER), frame)
        else:
            self.bind(node.target, self.operate(node.op, old, more), frame)

    def _return_(self, node: ast.Return, frame: Frame) -> str:
        frame.returned.append(None if node.value is None else self.evaluate(node.value, frame))
        return RETURN

    def _raise_(self, node: ast.Raise, frame: Frame) -> str:
        self.raised = node
        return RAISE

    def _break_(self, node: ast.Break, frame: Frame) -> str:
        return BREAK

    def _continue_(self, node: ast.Continue, frame: Frame) -> str:
        return LEAVE

    def _global_(self, node: ast.Global | ast.Nonlocal, frame: Frame) -> None:
        frame.outer.update(node.names)

    _nonlocal_ = _global_

    def _assert_(self, node: ast.Assert, frame: Frame) -> None:
        self.evaluate(node.test, frame)

    def _if_(self, node: ast.If, frame: Frame) -> str:
        holds, flags = self.test(node.test, frame)
        if holds is None and not node.orelse and _OF_FIRST.search(ast.unparse(node.test)):
            return self.block(node.body, frame) and ""  # what is saved is as the first rank has it
        if holds is None:
            return self.either(frame, partial(self.block, node.body, frame), partial(self.block, node.orelse, frame))
        taken, other = (node.body, node.orelse) if holds else (node.orelse, node.body)
        written = self.suppose(frame, flags, partial(self.block, other, frame)) if flags and other else []
        end = self.block(taken, frame)
        for name in (each for each in written if frame.names.get(each, "") is None):
            self.write(frame.names, name, Absent(flags[-1], None))
        return end

    def _for_(self, node: ast.For | ast.AsyncFor, frame: Frame) -> str:
        several = self.evaluate(node.iter, frame)
        elements = self.elements(several)
        size = sum(1 for _ in ast.walk(node))
        most = _MANY if size <= _SMALL else max(_MOST_TURNS, _MOST_NODES // size)
        known = elements is not None and 0 < len(elements) <= most
        one = several if isinstance(several, Unknown) and several.kind == NUMBER else self.any_of(elements)
        for each in elements if known and elements else [one, one] if _turns_over(node) else [one]:
            self.bind(node.target, each, frame)
            if (end := self.block(node.body, frame)) in (RETURN, RAISE):
                return end if known else ""
            if end == BREAK or (end == LEAVE and not known):
                break
        return self.block(node.orelse, frame)

    _asyncfor_ = _for_

    def _while_(self, node: ast.While, frame: Frame) -> str:
        holds, _ = self.test(node.test, frame)
        if holds is not False:
            end = self.block(node.body, frame)
            if end in (RETURN, RAISE) and holds:
                return end
        return self.block(node.orelse, frame)

    def _try_(self, node: ast.Try, frame: Frame) -> str:
        tried = self.block([*node.body, *node.orelse], frame)
        ways = [partial(self._handler, each, frame) for each in node.handlers]
        end = tried
        if ways:
            other = self.either(frame, *ways, *([] if tried == RAISE else [lambda: ""]))
            end = other if tried == RAISE else tried
        return self.block(node.finalbody, frame) or end

    _trystar_ = _try_

    def _handler(self, node: ast.ExceptHandler, frame: Frame) -> str:
        if node.name:
            self.write(frame.names, node.name, Unknown(node.name))
        return self.block(node.body, frame)

    def _with_(self, node: ast.With | ast.AsyncWith, frame: Frame) -> str:
        for item in node.items:
            value = self.evaluate(item.context_expr, frame)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, frame)
        return self.block(node.body, frame)

    _asyncwith_ = _with_

    def _functiondef_(self, node: Function, frame: Frame) -> None:
        kind = next((name for each in node.decorator_list if (name := last_name(each)) in
                     ("property", "cached_property", "staticmethod", "classmethod", "setter")), "")  # fmt: skip
        value: Value = FunctionValue(node, frame, frame.owner, kind=kind)
        if kind != "setter":
            self.write(frame.names, node.name, value)
            self._decorate(node, value, frame)

    _asyncfunctiondef_ = _functiondef_

    def _decorate(self, node: Function | ast.ClassDef, value: Value, frame: Frame) -> None:
        """A register of the script's own learns of what it decorates; the name stands for the thing itself."""
        for each in node.decorator_list:
            if not isinstance(each, ast.Name) or each.id not in _OF_PYTHON:
                made = self.evaluate(each, frame)
                if isinstance(made, FunctionValue):
                    self.apply(made, [value], {}, None)

    def _classdef_(self, node: ast.ClassDef, frame: Frame) -> None:
        bases = [self.evaluate(each, frame) for each in node.bases]
        value = ClassValue(node, frame, bases, {})
        inside = Frame(value.attributes, frame.file, frame, owner=value)
        self.block(node.body, inside)
        self.write(frame.names, node.name, value)
        self._decorate(node, value, frame)

    def _import_(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            whole = self.module(frame.file, 0, alias.name)
            first = alias.name.partition(".")[0]
            if alias.asname:
                self.write(frame.names, alias.asname, whole or self.library(alias.name))
            else:
                self.write(frame.names, first, self.module(frame.file, 0, first) or self.library(first))

    def _importfrom_(self, node: ast.ImportFrom, frame: Frame) -> None:
        base = node.module or ""
        found = self.module(frame.file, node.level, base)
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "*":
                if isinstance(found, ModuleValue):
                    for key, value in [*found.frame.names.items()]:
                        if not key.startswith("_"):  # nor its __name__
                            self.write(frame.names, key, value)
                continue
            value = found.frame.names.get(alias.name) if isinstance(found, ModuleValue) else None
            if value is None:
                value = self.module(frame.file, node.level, f"{base}.{alias.name}".strip("."))
            self.write(frame.names, name, self.library(f"{base}.{alias.name}") if value is None else value)

    def _delete_(self, node: ast.Delete, frame: Frame) -> None:
        return None

    def _match_(self, node: ast.Match, frame: Frame) -> str:
        self.evaluate(node.subject, frame)
        return self.either(frame, *(partial(self.block, case.body, frame) for case in node.cases), lambda: "")

    # Targets.

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Give a name, an attribute, a key or several of them a value."""
        if isinstance(target, ast.Name):
            place = frame
            if target.id in frame.outer and frame.above is not None:
                place = frame.above
                while place.above is not None and target.id not in place.names:
                    place = place.above
            self.write(place.names, target.id, value)
        elif isinstance(target, ast.Attribute):
            for owner in choices(self.evaluate(target.value, frame)):
                self.set_attribute(owner, target.attr, value)
        elif isinstance(target, ast.Subscript):
            key = self.evaluate(target.slice, frame)
            for owner in choices(self.evaluate(target.value, frame)):
                for each in choices(key):
                    self.set_item(owner, each, value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, Unknown(), frame)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = self.parts(value, len(target.elts), any(isinstance(each, ast.Starred) for each in target.elts))
            for each, part in zip(target.elts, parts, strict=True):
                self.bind(each, part, frame)

    def parts(self, value: Value, count: int, starred: bool) -> list[Value]:
        """The values that are unpacked into ``count`` names."""
        if isinstance(value, OneOf):
            found = [self.parts(each, count, starred) for each in value.values if each is not None]
            return [join(column) for column in zip(*found, strict=True)] if found else [Unknown()] * count
        if isinstance(value, list | tuple) and len(value) == count and not starred:
            return [*value]
        if isinstance(value, Unknown):
            return [self.item(value, place) for place in range(count)]
        return [Unknown() for _ in range(count)]

    def set_attribute(self, owner: Value, name: str, value: Value) -> None:
        """``owner.name = value``."""
        if owner is self.settings:
            self.read.add(name)
        if name == "__dict__":
            below = owner.attributes if isinstance(owner, Instance) else owner
            for key, each in [*value.items()] if isinstance(value, dict) and isinstance(below, dict) else ():
                self.write(below, key, each)
        elif isinstance(owner, Unknown | Instance | ClassValue):
            self.write(owner.attributes, name, value)
        elif isinstance(owner, ModuleValue):
            self.write(owner.frame.names, name, value)
        elif isinstance(owner, Table):
            self.write(owner, name, value)

    def set_item(self, owner: Value, key: Value, value: Value) -> None:
        """``owner[key] = value``."""
        if isinstance(owner, Instance):
            if (method := self.method(owner, "__setitem__")) is not None:
                self.apply(method, [key, value], {}, None)
        elif isinstance(owner, Unknown) and isinstance(key, str):
            self.write(owner.attributes, key, value)
        elif isinstance(owner, dict) and isinstance(key, str | int | float | bool | PurePosixPath | None):
            self.write(owner, key, value)
