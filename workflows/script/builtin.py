"""Functions that Python has without an import."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

from argosy.workflows.script.domain import (
    ANEW,
    NUMBER,
    Absent,
    ClassValue,
    Frame,
    FunctionValue,
    Instance,
    Method,
    ModuleValue,
    Table,
    Unknown,
    Value,
    choices,
    join,
)
from argosy.workflows.script.methods import Methods

_COMMANDS = (".CLI", ".auto_cli", ".Fire")
"""Make commands of functions."""


class Builtins(Methods):
    """Each as ``_fn_NAME``: its arguments, by place and by name, and what stands before its name."""

    frame: Frame
    """Where the call stands."""

    def forget(self, told: ast.expr) -> None:
        """A text that was evaluated stands at no line."""
        raise NotImplementedError

    def commanded(self, name: str, args: list[Value]) -> list[Value]:
        """What a library calls that is given no function: the script's main, or of several the command that is told."""
        if name.endswith("app.run") and not args and (main := self.frame.names.get("main")) is not None:
            return [main]  # absl's and TensorFlow's
        if name.endswith(_COMMANDS) and args and isinstance(args[0], dict):
            return [each for key, each in args[0].items() if key in self.arguments][:1]
        return args

    def _fn_eval(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        known = isinstance(args[0], str) and not self.has_holes(args[0])
        if not known:
            return Unknown()
        told = ast.parse(args[0], mode="eval").body
        value = self.evaluate(told, self.frame)
        self.forget(told)
        return value

    def _fn_literal_eval(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return args[0]  # a text stays one

    def _fn_hasattr(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        if isinstance(args[0], Absent) and args[0].value is None:
            return Absent(args[0].flag, False)
        if isinstance(args[0], str | list | tuple) and isinstance(args[1], str):  # a number may be a word
            return hasattr(args[0], args[1])
        if isinstance(args[0], dict) and isinstance(args[1], str) and hasattr(dict, args[1]):
            return True
        found = self.attribute(args[0], args[1]) if isinstance(args[1], str) else Unknown()
        return Unknown() if isinstance(found, Unknown | Method) else True

    def _fn_getattr(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        names = [each for each in choices(args[1]) if isinstance(each, str) and not self.has_holes(each)]
        if not names:
            return self._among(args[0])
        # Of a module of the script all names are known.
        lacks = [isinstance(each, ModuleValue) and name not in each.frame.names
                 for each in choices(args[0]) for name in names]  # fmt: skip
        if len(args) > 2 and all(lacks):
            return args[2]
        found = join(self.attribute(each, name) for each in choices(args[0]) for name in names)
        if len(args) > 2 and isinstance(found, Method):
            return args[2]
        return join([args[2], found]) if len(args) > 2 and isinstance(found, Unknown) else found

    def _among(self, owner: Value) -> Value:
        """One of a module's classes and functions, by a name that only a run knows."""
        names = owner.frame.names if isinstance(owner, ModuleValue) else {}
        found = [each for each in names.values() if isinstance(each, FunctionValue | ClassValue)]
        return join(found) if 0 < len(found) < 8 else Unknown()

    def _fn_setattr(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        if len(args) == 3 and isinstance(args[1], str):
            for each in choices(args[0]):
                if isinstance(each, Unknown | Instance | ClassValue):
                    self.write(each.attributes, args[1], args[2])
                elif isinstance(each, Table):
                    self.write(each, args[1], args[2])
        return None

    def _fn_vars(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        value = args[0] if args else Unknown()
        return value.attributes if isinstance(value, Instance) else value

    _fn_asdict = _fn_vars

    def _fn_isinstance(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        if isinstance(args[0], Absent) and args[0].value is None:
            return Absent(args[0].flag, False)
        kinds = args[1] if isinstance(args[1], tuple) else (args[1],)
        names = {each.name.rpartition(".")[2] for each in kinds if isinstance(each, Unknown)}
        plain = isinstance(args[0], str | int | float | list | dict | tuple | bool | None)
        return type(args[0]).__name__.replace("Table", "dict") in names if plain and names else Unknown()

    def _fn_type(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        path = self.library("pathlib.Path") if isinstance(args[0], PurePosixPath) else Unknown("type()")
        return args[0].kind if isinstance(args[0], Instance) else path

    def _fn_len(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return len(args[0]) if isinstance(args[0], list | tuple | dict) and args[0] else Unknown("", NUMBER)

    def _fn_int(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        value = args[0] if args else 0
        anew = isinstance(value, Unknown) and value.kind == ANEW
        return value if isinstance(value, int | float) or anew else Unknown("", NUMBER)

    _fn_float = _fn_round = _fn_abs = _fn_int

    def _fn_range(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return Unknown("", NUMBER)

    _fn_trange = _fn_range

    def _fn_bool(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        truth = self.truth(args[0]) if args else False
        return Unknown() if truth is None else truth

    def _fn_dict(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        found = next((each for each in args if isinstance(each, dict | Unknown | list | tuple)), {})
        if isinstance(found, Unknown):
            return found
        return {**dict(found), **{key: each for key, each in named.items() if key != "**"}}

    _fn_OrderedDict = _fn_dict

    def _fn_list(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        found = self.elements(args[0]) if args else []
        return Unknown() if found is None else [*found]

    _fn_sorted = _fn_reversed = _fn_tuple = _fn_set = _fn_list

    def _fn_enumerate(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        found = self.elements(args[0]) if args else None
        return [(place, each) for place, each in enumerate(found)] if found else [(Unknown("", NUMBER), Unknown())]

    def _fn_zip(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        found = [self.elements(each) for each in args]
        return [*zip(*found, strict=False)] if all(each is not None for each in found) else Unknown()
