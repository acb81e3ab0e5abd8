"""The calls of a script: its own functions are gone into, of a library's the usual ones are known."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from argosy.workflows.script.domain import (
    LIBRARY,
    ClassValue,
    Frame,
    FunctionValue,
    Instance,
    Method,
    Unknown,
    Value,
    choices,
    join,
)
from argosy.workflows.script.library import Library
from argosy.workflows.script.memory import RAISE
from argosy.workflows.script.source import default_of, last_name
from argosy.workflows.script.statements import Statements

_DEEPEST = 30
_MOST_ENTRIES = 400  # of one function
_OF_ITSELF = 6
"""So deep a function calls itself that goes down a table of settings."""
_KNOWN = (dict, list, str, int, float, type(None))
_SAME_NAME = 3
"""Classes that have a method of a name, at most, for an object of which nothing is known to be one of theirs."""
_AT_EVENTS = re.compile(r"on_|after_|\w+_end$")
"""So are methods called that a library comes to."""
_WRAPS = re.compile(r"Parallel|DDP$|FSDP$")
"""So is a class called that keeps a model as its ``module``."""
_USUAL = frozenset({
    "forward", "train", "eval", "step", "update", "to", "cuda", "items", "keys", "values", "get", "append",
    "backward", "zero_grad", "add", "format", "state_dict", "load_state_dict", "parameters", "join", "split",
    "close", "write", "read", "log", "pop", "extend",
})  # fmt: skip


class Calls(Statements, Library):
    """Goes into functions as deep as their calls are, each a limited number of times."""

    def __init__(self) -> None:
        super().__init__()
        self._entered: dict[ast.AST, int] = {}
        self._stack: list[ast.AST] = []
        self.classes: dict[str, list[ClassValue]] = {}
        self.handed: list[Instance] = []
        """What libraries were given that may call it."""
        self.frame = Frame({}, "")

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        function = self._super(node, frame) or self.evaluate(node.func, frame)
        args, named = self._given(node, frame)
        self.frame = frame
        self.keep(node.func, [each for each in choices(function) if isinstance(each, Unknown)])
        self.saw(node, args, named)
        if isinstance(node.func, ast.Attribute):
            self.keep(node.func.value, [each.of for each in choices(function) if isinstance(each, Method)])
        return join(self.apply(each, args, named, node) for each in choices(function))

    def saw(self, node: ast.Call, args: list[Value], named: dict[str, Value]) -> None:
        """A call was come to."""
        raise NotImplementedError

    def _given(self, node: ast.Call, frame: Frame) -> tuple[list[Value], dict[str, Value]]:
        args: list[Value] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                args += self.elements(self.evaluate(each.value, frame)) or []
            else:
                args.append(self.evaluate(each, frame))
        named: dict[str, Value] = {}
        for word in node.keywords:
            value = self.evaluate(word.value, frame)
            if word.arg is not None:
                named[word.arg] = value
            elif isinstance(value, Unknown):
                named.setdefault("**", value)
            else:
                named |= {key: each for key, each in self.starred(value).items() if isinstance(key, str)}
        return args, named

    def _super(self, node: ast.Call, frame: Frame) -> Value:
        """``super().method``: of the first base that has it."""
        func = node.func
        if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call)):
            return None
        if last_name(func.value.func) != "super" or frame.owner is None:
            return None
        for base in frame.owner.bases:
            found = self.inherited(base, func.attr) if isinstance(base, ClassValue) else None
            if isinstance(found, FunctionValue):
                return FunctionValue(found.node, found.frame, found.owner, (frame.own,))
        return Unknown(func.attr, LIBRARY)

    def apply(self, function: Value, args: list[Value], named: dict[str, Value], node: ast.Call | None) -> Value:
        """What a call gives."""
        if isinstance(function, FunctionValue):
            return self._enter(function, args, named)
        if isinstance(function, ClassValue):
            return self._made(function, args, named)
        if isinstance(function, Instance):
            called = self.method(function, "__call__")
            return Unknown() if called is None else self._enter(called, args, named)
        if isinstance(function, Method):
            return self.of_python(function, args, named)
        if not isinstance(function, Unknown):
            return Unknown()
        args = self.commanded(function.name, args)
        known = self.of_library(function, args, named)
        if known is not None:
            return known.value
        if not function.name.startswith("functools."):  # that names a function only
            self._call_back(args, named)
        if function.kind != LIBRARY and isinstance(node and node.func, ast.Attribute):
            return self._by_name(function.name.rpartition(".")[2], args, named)
        made = Unknown(f"{function.name}()", LIBRARY if function.kind == LIBRARY else "")
        if args and isinstance(args[0], Instance) and _WRAPS.search(function.name):
            made.attributes["module"] = args[0]
        return made

    def _call_back(self, args: list[Value], named: dict[str, Value]) -> None:
        """Functions that a library is given are called: ``spawn(main, args=(1,))``, ``run(main)``. An object of a class
        that inherits of one is kept for later: ``Trainer(callbacks=[Saver(args)])``.
        """
        for value in (one for each in (*args, *named.values()) for one in (each if isinstance(each, list) else [each])):
            self.handed += [each for each in choices(value) if isinstance(each, Instance) and each not in self.handed
                            and self._libraries_of(each.kind)]  # fmt: skip
        more = named.get("args")
        for each in [*args, *named.values()]:
            if isinstance(each, FunctionValue) and not isinstance(each.node, ast.Lambda):
                needed = len(each.node.args.args) - len(each.node.args.defaults) - len(each.given)
                told = [*more] if isinstance(more, tuple | list) else []
                self._enter(each, [Unknown() for _ in range(needed - len(told))] * bool(told) + told, {}, entry=True)

    def called_back(self) -> None:
        """Go through the methods of those objects that libraries call at their events."""
        for each, name in (
            (one, name) for one in self.handed for name in one.kind.attributes if _AT_EVENTS.match(name)
        ):
            method = self.method(each, name)
            if method is not None and method.node not in self._entered:
                self._enter(method, [Unknown() for _ in method.node.args.args[1:]], {})

    def _by_name(self, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        """A method of an object of which nothing is known: of the classes that have one of the name."""
        found = [each for known in self.classes.values() for each in known if name in each.attributes]
        found = found[:_SAME_NAME] if name == "save" else found  # all do the same to their models
        if name in _USUAL or name.startswith("__") or not 0 < len(found) <= _SAME_NAME:
            told = self.told(args[0]) if name == "get" and args and isinstance(args[0], str) else None  # of settings
            return Unknown(f"{name}()") if told is None else told
        methods = [(each, each.attributes[name]) for each in found]
        return join(
            self._enter(FunctionValue(one.node, one.frame, one.owner, (self._any_object(each),)), args, named)
            for each, one in methods
            if isinstance(one, FunctionValue)
        )

    def _any_object(self, kind: ClassValue) -> Instance:
        """An object of the class, however it was made."""
        made = kind.attributes.get("<any>")
        if not isinstance(made, Instance):
            made = Instance(kind)
            kind.attributes["<any>"] = made
            if (start := self.method(made, "__init__")) is not None:
                self._enter(start, [], {}, entry=True)
        return made

    def _enter(self, function: FunctionValue, args: list[Value], named: dict[str, Value], entry: bool = False) -> Value:
        """Go through a function; ``entry``: whoever calls it is told by the script's settings."""
        node = function.node
        entered = self._entered.get(node, 0)
        entry = entry or bool(not args and not named and getattr(node, "decorator_list", None))
        again = _OF_ITSELF if args and all(isinstance(each, _KNOWN) for each in args) else 1
        if len(self._stack) >= _DEEPEST or self._stack.count(node) > again or entered >= _MOST_ENTRIES:
            return Unknown()
        self._entered[node] = entered + 1
        owner = function.given[0] if function.owner is not None and function.given else None
        inside = Frame({}, function.frame.file, self._closure(function.frame), owner=function.owner, own=owner)
        self._fill(function, inside, [*function.given, *args], {**function.named, **named}, entry)
        self._stack.append(node)
        try:
            if isinstance(node, ast.Lambda):
                return self.evaluate(node.body, inside)
            self.body(node.body, inside)
        finally:
            self._stack.pop()
        return join(inside.returned)

    def body(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Go through all of a module, or of a function."""
        if self.block(body, frame) == RAISE and len(self._stack) <= 1:
            self.ended = self.ended or self.raised

    def _closure(self, frame: Frame) -> Frame:
        """A method does not see the names of its class."""
        above = frame.above
        return above if frame.owner is not None and frame.names is frame.owner.attributes and above else frame

    def _fill(
        self, function: FunctionValue, inside: Frame, args: list[Value], named: dict[str, Value], entry: bool
    ) -> None:
        told = function.node.args
        names = [each.arg for each in (*told.posonlyargs, *told.args)]
        defaults = dict(zip(reversed(names), reversed(told.defaults), strict=False))
        defaults |= {each.arg: value for each, value in zip(told.kwonlyargs, told.kw_defaults, strict=True) if value}
        defaults = {name: default_of(value) for name, value in defaults.items()}
        more = named.pop("**", None)
        for place, name in enumerate([*names, *(each.arg for each in told.kwonlyargs)]):
            if place < min(len(args), len(names)):
                value = args[place]
            elif name in named:
                value = named.pop(name)
            elif entry and (kind := self.configures(function, name)) is not None:
                value = self.of_dataclass(kind)
            else:
                value = self._untold(name, defaults.get(name), more, function.frame, entry)
            inside.names[name] = value
        if told.vararg is not None:
            inside.names[told.vararg.arg] = tuple(args[len(names) :])
        if told.kwarg is not None:
            left = {key: value for key, value in named.items() if key not in inside.names}
            inside.names[told.kwarg.arg] = more if more is not None and not left else (
                self.told_by_name() if entry and not left else left)  # fmt: skip

    def configures(self, function: FunctionValue, name: str) -> Value:
        """The class of the settings that a command is given; None where its parameter is anything else."""
        raise NotImplementedError

    def asked(self, name: str, default: ast.expr | None) -> Value:
        """What the command line makes of a parameter whose function is a command; None where its default counts."""
        raise NotImplementedError

    def _untold(self, name: str, default: ast.expr | None, more: Value, frame: Frame, entry: bool) -> Value:
        if isinstance(more, Unknown):
            return self.attribute(more, name)
        if entry and (known := self.asked(name, default)) is not None:
            return known
        return self.setting(name, name) if default is None else self.evaluate(default, frame)

    def _made(self, kind: ClassValue, args: list[Value], named: dict[str, Value]) -> Value:
        """An object of a class of the script."""
        bases = [each.name.rpartition(".")[2] for each in self._libraries_of(kind)]
        if "dict" in bases or "CfgNode" in bases:
            given = next((each for each in args if isinstance(each, dict | Unknown)), {})
            table = self.table(given) if isinstance(given, Unknown) else self.table({**given, **named})
            if isinstance(start := self.inherited(kind, "__init__"), FunctionValue):
                self._enter(FunctionValue(start.node, start.frame, start.owner, (table,)), args, named)
            return table
        if any(each in ("Enum", "IntEnum", "StrEnum") for each in bases):
            return Unknown()
        made = Instance(kind)
        kind.attributes.setdefault("<any>", made)
        start = self.method(made, "__init__")
        if start is None:
            self._fields(kind, made, args, named)
        elif "Module" not in bases or self.saves(kind):
            self._enter(start, args, named)
        if (after := self.method(made, "__post_init__")) is not None:
            self._enter(after, [], {})
        return made

    def saves(self, kind: ClassValue) -> bool:
        """Whether a class of layers is of interest: what its methods are called says so."""
        bases = (one for base in kind.bases for one in choices(base) if isinstance(one, ClassValue))
        own = any("save" in each or "load" in each or "checkpoint" in each for each in kind.attributes)
        return own or any(map(self.saves, bases))

    def _libraries_of(self, kind: ClassValue) -> list[Unknown]:
        found = []
        for base in kind.bases:
            for each in choices(base):
                found += self._libraries_of(each) if isinstance(each, ClassValue) else []
                found += [each] if isinstance(each, Unknown) else []
        return found

    def _fields(self, kind: ClassValue, made: Instance, args: list[Value], named: dict[str, Value]) -> None:
        """A dataclass's."""
        whole = self.whole(kind)
        given = {**dict(zip(whole, args, strict=False)), **named}
        for name, value in {**whole, **given}.items():
            if value is not ...:
                made.attributes[name] = [*value] if isinstance(value, list) and name not in given else value

    def whole(self, kind: ClassValue) -> dict[str, Value]:
        """The fields of a class, and what they are by default; ``...`` for none."""
        bases = [one for base in kind.bases for one in choices(base) if isinstance(one, ClassValue)]
        above = {name: value for each in bases for name, value in self.whole(each).items()}
        names = [each.target.id for each in kind.node.body
                 if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]  # fmt: skip
        return above | {name: kind.attributes.get(name, ...) for name in names}
