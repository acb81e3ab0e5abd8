"""The names of a script, and what its objects and tables have below them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from argosy.workflows.script.domain import (
    ANEW,
    FIRST_HOLE,
    LIBRARY,
    NUMBER,
    SETTINGS,
    Absent,
    ClassValue,
    File,
    Frame,
    FunctionValue,
    Instance,
    Method,
    ModuleValue,
    Table,
    Unknown,
    Value,
    bounded,
    choices,
    join,
)
from argosy.workflows.script.globs import folder_of, nameless
from argosy.workflows.script.memory import Memory

_OF_PATHS = frozenset({"joinpath", "parent", "stem", "with_suffix", "with_name", "mkdir", "exists", "is_dir", "is_file",
                       "glob", "rglob", "iterdir", "open"})  # fmt: skip
_OF_LAYERS = frozenset({"to", "cuda", "cpu", "half", "float", "bfloat16", "train", "eval", "requires_grad_"})
"""What layers have of torch gives them back."""
_CONSTANTS: dict[str, Value] = {"pardir": "..", "curdir": ".", "sep": "/"}


class Names(Memory):
    """Looks them up; what calls do, and where settings and modules come from, its heirs say."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = Unknown("", SETTINGS)
        self.read: set[str] = set()
        """The names of settings that were asked for, or set by the script itself."""
        self.holes: list[Unknown | Absent] = []
        self.counted: set[str] = set()
        """Names that something is added to somewhere: a number in them is none that is certain."""

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """What the expression stands for."""
        self.spend()
        way = getattr(self, f"_{type(node).__name__.lower()}", None)
        return Unknown() if way is None else bounded(way(node, frame))

    # What the heirs say.

    environ: Mapping[str, str]
    arguments: Sequence[str] = ()
    """The command line."""

    def spend(self) -> None:
        """Count what is looked at: it must have an end."""
        raise NotImplementedError

    def setting(self, name: str, path: str) -> Value:
        """A flag, or a key of a file of settings; an Unknown where nothing is known of it."""
        raise NotImplementedError

    def module(self, file: str, level: int, name: str) -> ModuleValue | None:
        """A module of the script, None where it is a library's."""
        raise NotImplementedError

    def apply(self, function: Value, args: list[Value], named: dict[str, Value], node: ast.Call | None) -> Value:
        """What a call gives."""
        raise NotImplementedError

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> str:
        """Go through statements."""
        raise NotImplementedError

    def keep(self, node: ast.expr, values: Sequence[Value]) -> None:
        """An expression was found to be these."""
        raise NotImplementedError

    def lines(self, file: File) -> list[str] | None:
        """Those of a file of settings, which a script may take apart before it reads them; None of any other."""
        raise NotImplementedError

    def told_by_name(self) -> Value:
        """What the command line gives a function with ``**options``."""
        raise NotImplementedError

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Give a name a value."""
        raise NotImplementedError

    # Names and attributes.

    def library(self, path: str) -> Unknown:
        """What a library has by that name."""
        return Unknown(path, LIBRARY)

    def _constant(self, node: ast.Constant, frame: Frame) -> Value:
        return node.value

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        place: Frame | None = frame
        while place is not None:
            if node.id in place.names:
                return self._certain(place.names[node.id], node.id)
            last, place = place, place.above
        if hasattr(builtins, node.id):
            return self.library(f"builtins.{node.id}")
        value = self.setting(node.id, node.id)
        of_flag = type(getattr(value, "value", value)) in (int, float)  # none that a name is sure to be
        return last.names.setdefault(node.id, Unknown(node.id, NUMBER) if of_flag else value)

    def _certain(self, value: Value, name: str) -> Value:
        counted = name in self.counted and isinstance(value, int | float) and not isinstance(value, bool)
        return Unknown(name, NUMBER) if counted else value

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        owner = self.evaluate(node.value, frame)
        return join(self.attribute(each, node.attr) for each in choices(owner) if each is not None or owner is None)

    def attribute(self, owner: Value, name: str) -> Value:
        """``owner.name``."""
        if isinstance(owner, Unknown):
            return self._unknown_attribute(owner, name)
        if isinstance(owner, Instance):
            return self._instance_attribute(owner, name)
        if isinstance(owner, ModuleValue):
            return owner.frame.names.get(name, Unknown(name))
        if isinstance(owner, ClassValue):
            found = owner.node.name if name == "__name__" else self.inherited(owner, name)
            if isinstance(found, FunctionValue) and found.kind == "classmethod":
                return FunctionValue(found.node, found.frame, found.owner, (owner,))
            of_ray = {"remote": owner, "options": Method(owner, name)}  # its actors'
            return of_ray.get(name, Unknown(name)) if found is None else found
        if isinstance(owner, FunctionValue) and name == "remote":
            return owner
        if isinstance(owner, FunctionValue) and name == "__name__":
            return getattr(owner.node, "name", "")
        if isinstance(owner, Table) and name in owner:
            return owner[name]
        if isinstance(owner, str) and name in _OF_PATHS:
            owner = PurePosixPath(owner)  # a flag of that type
        if isinstance(owner, PurePosixPath) and name in ("parent", "name", "stem", "suffix", "parts", "parents"):
            if name in ("name", "stem") and nameless(str(owner)):
                return Unknown(name)
            above = [owner]
            for _ in (*owner.parts, "..", "../.."):
                above.append(PurePosixPath(folder_of(str(above[-1]))))
            return above[1] if name == "parent" else above[1:] if name == "parents" else getattr(owner, name)
        return Method(owner, name)

    def _unknown_attribute(self, owner: Unknown, name: str) -> Value:
        if name not in owner.attributes:
            path = f"{owner.name}.{name}" if owner.name else name
            if owner.kind == LIBRARY and name == "FLAGS":
                return self.settings
            if owner.kind == LIBRARY:
                if path == "sys.argv" and self.arguments:
                    return [Unknown(path), *self.arguments]
                return _CONSTANTS.get(name, Unknown(path, LIBRARY))
            if owner.kind == ANEW:
                return Unknown(path, ANEW)
            owner.attributes[name] = self.setting(name, path)
        return self._certain(owner.attributes[name], name)

    def _instance_attribute(self, owner: Instance, name: str) -> Value:
        if name in owner.attributes:
            return self._certain(owner.attributes[name], name)
        if name == "__dict__":
            return owner.attributes
        found = self.inherited(owner.kind, name)
        if isinstance(found, FunctionValue):
            if found.kind == "property":
                return self.apply(FunctionValue(found.node, found.frame, found.owner, (owner,)), [], {}, None)
            given = () if found.kind == "staticmethod" else (owner.kind if found.kind == "classmethod" else owner,)
            return FunctionValue(found.node, found.frame, found.owner, given)
        if found is not None:
            return self._certain(found, name)
        if (getter := self.method(owner, "__getattr__")) is not None:
            return self.apply(getter, [name], {}, None)
        if name == "__setattr__" or (name in _OF_LAYERS and self._has_layers(owner.kind)):
            return Method(owner, name)
        owner.attributes[name] = self.setting(name, f"self.{name}")
        return owner.attributes[name]

    def _has_layers(self, kind: ClassValue) -> bool:
        bases = [each for base in kind.bases for each in choices(base)]
        known = (each.name.endswith("Module") if isinstance(each, Unknown) else
                 isinstance(each, ClassValue) and self._has_layers(each) for each in bases)  # fmt: skip
        return any(known)

    def inherited(self, kind: ClassValue, name: str, depth: int = 12) -> Value:
        """What the class, or one that it inherits from, has by that name; None for nothing."""
        if name in kind.attributes:
            return kind.attributes[name]
        known = (each for base in kind.bases for each in choices(base) if isinstance(each, ClassValue) and depth)
        return next((found for each in known if (found := self.inherited(each, name, depth - 1)) is not None), None)

    def method(self, owner: Instance, name: str) -> FunctionValue | None:
        """A method of the script's own."""
        found = self.inherited(owner.kind, name)
        if not isinstance(found, FunctionValue):
            return None
        return FunctionValue(found.node, found.frame, found.owner, (owner,))

    # Keys.

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        owner = self.evaluate(node.value, frame)
        if isinstance(node.slice, ast.Slice):
            bounds = [None if each is None else self.evaluate(each, frame)
                      for each in (node.slice.lower, node.slice.upper, node.slice.step)]  # fmt: skip
            return join(self._sliced(each, bounds) for each in choices(owner))
        key = self.evaluate(node.slice, frame)
        return join(self.item(each, one) for each in choices(owner) for one in choices(key))

    def _sliced(self, value: Value, bounds: list[Value]) -> Value:
        whole = all(each is None or isinstance(each, int) for each in bounds)
        if isinstance(value, list | tuple | str) and whole and not (isinstance(value, str) and self.has_holes(value)):
            return value[slice(*bounds)]
        return Unknown() if isinstance(value, str) else value

    def item(self, owner: Value, key: Value) -> Value:
        """``owner[key]``."""
        if isinstance(owner, Instance):
            getter = self.method(owner, "__getitem__")
            return Unknown() if getter is None else self.apply(getter, [key], {}, None)
        if isinstance(owner, Unknown):
            name = key if isinstance(key, str) and not self.has_holes(key) else None
            if owner.kind == LIBRARY and owner.name.endswith("environ"):
                return self.environ.get(name or "") or self.setting("", f"${name}")
            if name is not None and owner.kind != LIBRARY:
                dashed = name.startswith("--")  # as docopt's keys are
                return self._unknown_attribute(owner, name[2:].replace("-", "_") if dashed else name)
            return Unknown(owner.name, owner.kind)
        try:
            if isinstance(owner, dict):
                return self._certain(owner[key], str(key)) if key in owner else Unknown(str(key))
            if isinstance(owner, str) and key == 0:
                return owner  # the first of a flag that may have several
            if isinstance(owner, list | tuple) and isinstance(key, int):
                return owner[key]
        except (TypeError, IndexError):
            pass
        return self.any_of(owner if isinstance(owner, list | tuple) else None)

    def elements(self, value: Value) -> Sequence[Value] | None:
        """What a loop goes through; None where only a run could tell."""
        if isinstance(value, dict):
            return list(value)
        if isinstance(value, str):
            return [value] if value else []  # a flag that may have several
        if isinstance(value, File):
            return self.lines(value)
        return value if isinstance(value, list | tuple) else None

    def any_of(self, values: Sequence[Value] | None) -> Value:
        """One of them."""
        return join(values) if values else Unknown()

    def has_holes(self, value: Value) -> bool:
        """Whether part of a text is not known."""
        return isinstance(value, str) and any(ord(each) >= FIRST_HOLE for each in value)
