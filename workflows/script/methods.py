"""Methods of what Python itself has: lists, dicts, paths and open files; tables of settings among them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import PurePosixPath

from argosy.workflows.script.domain import (
    SETTINGS,
    ClassValue,
    File,
    Instance,
    Method,
    OneOf,
    Table,
    Unknown,
    Value,
    bounded,
    choices,
    join,
)
from argosy.workflows.script.settings import parsed, typed
from argosy.workflows.script.texts import Texts

WRONG = (SyntaxError, TypeError, IndexError, ValueError, KeyError, AttributeError)
"""What Python says of a call that is wrong, or that this reader takes for another."""


class Methods(Texts):
    """What they give, and what they write."""

    def told(self, name: str) -> Value:
        """What the command line, or a file of settings, gives a name; None for nothing."""
        raise NotImplementedError

    def read_file(self, path: str) -> object:
        """What a file of settings holds; None where it cannot be read."""
        raise NotImplementedError

    def of_python(self, method: Method, args: list[Value], named: dict[str, Value]) -> Value:
        """What a method of Python's own gives."""
        of, name = method.of, method.name
        try:
            return self._method(of, name, args, named)
        except WRONG:
            return Unknown(name)

    def _method(self, of: Value, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(of, OneOf):
            return join(self.of_python(Method(each, name), args, named) for each in of.values)
        if isinstance(of, str):
            return self.lifted(lambda *given: self._str_method(of, name, [*given], named), *args)
        if isinstance(of, PurePosixPath):
            return self.lifted(lambda *given: self._path_method(of, name, [*given]), *args)
        if isinstance(of, ClassValue):
            return of
        if isinstance(of, Instance):
            if name == "__setattr__":
                self.write(of.attributes, *args)
            return of
        if isinstance(of, File):
            lines = self.lines(of) if name in ("read", "readlines") else None
            if lines is not None:
                return [*lines] if name == "readlines" else "".join(lines)
            return Unknown() if name in ("write", "close") else of
        if isinstance(of, dict):
            return self._dict_method(of, name, args, named)
        return self._list_method(of, name, args) if isinstance(of, list) else Unknown(name)

    def _path_method(self, of: PurePosixPath, name: str, args: list[Value]) -> Value:
        if name in ("joinpath", "with_suffix", "with_name", "with_stem"):
            try:
                return getattr(of, name)(*map(self.text, args))
            except ValueError:
                return PurePosixPath(self.text(of.parent)) / self.hole(Unknown())
        if name == "read_text":
            return self._method(File(of), "read", [], {})
        if name in ("open", "read_bytes"):
            return File(of)
        same = ("resolve", "absolute", "expanduser", "as_posix", "__str__")
        return of if name in same else Unknown(name)

    def _dict_method(self, of: dict[Value, Value], name: str, args: list[Value], named: dict[str, Value]) -> Value:
        if name in ("get", "pop", "setdefault") and args:
            if isinstance(args[0], str | int | None) and args[0] in of:
                return of[args[0]]
            return args[1] if len(args) > 1 else None
        if name in ("items", "keys", "values"):
            return [*map(tuple, of.items())] if name == "items" else [*getattr(of, name)()]
        if name in ("update", "merge_from_other_cfg"):
            for each in (*args, named):
                each = self.told_by_name() if each is self.settings else each
                self.merge(of, each) if isinstance(each, dict) else None
        elif name == "merge_from_file" and args:
            self._merge_file(of, args[0])
        elif name == "merge_from_list":
            self._merge_words(of)
        elif name in ("clone", "copy", "deepcopy"):
            return self.table(of) if isinstance(of, Table) else dict(of)
        elif name == "__dict__":
            return of
        elif name in ("__getitem__", "__getattr__") and args:
            return self.item(of, args[0])
        return None if name in ("update", "freeze", "defrost", "merge_from_file", "merge_from_list") else Unknown(name)

    def _merge_file(self, of: dict[Value, Value], path: Value) -> None:
        more = self._loaded(path)
        if isinstance(more, dict):
            self.merge(of, more)
        else:
            self._loosen(of)

    def _loosen(self, of: dict[Value, Value]) -> None:
        """A file of which nothing is known may change each of them."""
        self.spend()
        for key, value in [*of.items()]:
            if isinstance(value, dict):
                self._loosen(value)
            else:
                self.write(of, key, self.setting(str(key), str(key)))

    def _merge_words(self, of: dict[Value, Value], above: str = "") -> None:
        """yacs' ``OUTPUT_DIR out`` on the command line, ``MODEL.NAME x`` for that one only."""
        self.spend()
        for key, value in [*of.items()]:
            whole = f"{above}{key}"
            if isinstance(value, dict):
                self._merge_words(value, f"{whole}.")
            else:
                told = [value for word, value in pairwise(self.arguments) if word == whole]
                if told:  # what another is given may be called as it is
                    self.write(of, key, typed(told[-1]))

    def _list_method(self, of: list[Value], name: str, args: list[Value]) -> Value:
        if name in ("append", "extend") and args:
            longer = bounded([*of, *([args[0]] if name == "append" else self.elements(args[0]) or [])])
            self.write(of, None, longer if isinstance(longer, list) else of)
        elif name in ("pop", "index", "copy"):
            return [*of] if name == "copy" else self.any_of(of)
        return None

    def table(self, value: Value, made: dict[int, Value] | None = None) -> Value:
        """A dict, and those in it, each once, with keys as attributes."""
        self.spend()
        made = {} if made is None else made
        if isinstance(value, Instance):
            return value
        if not isinstance(value, dict):
            return value if value is not None else Table()
        if id(value) not in made:
            below = {key: self.table(each, made) if isinstance(each, dict) else each for key, each in value.items()}
            made[id(value)] = Table(below)
        return made[id(value)]

    def merge(self, table: Value, more: Value) -> None:
        """Put the keys of one into the other, level by level."""
        self.spend()
        for key, value in more.items():
            below = table.get(key)
            if isinstance(value, dict) and isinstance(below, dict | Instance):
                self.merge(below.attributes if isinstance(below, Instance) else below, value)
            else:
                self.write(table, key, None if value is None else self.table(value))

    def _loaded(self, value: Value) -> Value:
        texts = [self.text(each) for each in choices(value) if isinstance(each, File | str | PurePosixPath)]
        found = [parsed(text) if "\n" in text else self.read_file(text)
                 for text in texts if text and not self.has_holes(text)]  # fmt: skip
        tables = ([*map(self.table, each)] if isinstance(each, list) else self.table(each) for each in found)
        return join(tables) if found and None not in found else Unknown("", SETTINGS)
