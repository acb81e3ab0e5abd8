"""Methods of texts: Python's own, with holes that stay where they are."""

from __future__ import annotations

import re
from string import Formatter

from argosy.workflows.script.domain import (
    NUMBER,
    Unknown,
    Value,
    join,
)
from argosy.workflows.script.expressions import Expressions
from argosy.workflows.script.globs import nameless

_NUMBER = re.compile(r"%[-+ 0-9.]*[dfeg]")
_PLACE = re.compile(r"%(?:\((\w+)\))?[-+ 0-9.*]*[a-zA-Z%]")
_TEXTS = frozenset({
    "lower", "upper", "strip", "lstrip", "rstrip", "replace", "title", "capitalize", "split", "rsplit",
    "partition", "rpartition", "removesuffix", "removeprefix", "encode", "decode", "zfill", "expandtabs",
    "splitlines",
})  # fmt: skip
_WIDEST = 100
"""Of zfill and expandtabs."""
_TESTS = frozenset({
    "startswith", "endswith", "isdigit", "isnumeric", "find", "rfind", "index", "rindex",
})  # fmt: skip


class Texts(Expressions):
    """What is not known of a text's method is an Unknown."""

    def _str_method(self, of: str, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        if name == "format":
            return self._formatted(of, args, named)
        if name == "join":
            parts = self.elements(args[0]) if args else None
            return of.join(map(self.text, parts)) if parts is not None else self.hole(Unknown())
        if name in ("split", "rsplit") and nameless(of):  # what the folder of a start is called only a run knows
            return [Unknown()]
        wide = any(isinstance(each, int) and each > _WIDEST for each in args)
        if name in _TEXTS and not wide and all(isinstance(each, str | int | None) for each in args):
            return getattr(of, name)(*args)
        if name in _TESTS and not self.has_holes(of) and all(isinstance(each, str | tuple) for each in args):
            return getattr(of, name)(*args)
        return Unknown()

    def _formatted(self, of: str, args: list[Value], named: dict[str, Value]) -> str:
        found, place = "", 0
        try:
            for text, key, spec, _ in Formatter().parse(of):
                found += text
                if key is None:
                    continue
                first = re.split(r"[.\[]", key)[0]
                index = int(first) if first.isdecimal() else place if not first else -1
                place += not first
                value = args[index] if 0 <= index < len(args) else named.get(first, Unknown(first))
                value = value if first == key else Unknown(key)
                found += self.text(Unknown("", NUMBER) if (spec or "")[-1:] in tuple("dfeg") else value)
        except ValueError:
            return self.hole(Unknown())
        return found

    def filled(self, text: str, values: list[Value]) -> str:
        """``text % values``."""
        left = iter(values)
        by_name = values[0] if len(values) == 1 and isinstance(values[0], dict) else {}

        def value(found: re.Match[str]) -> str:
            if found[0].endswith("%"):
                return "%"
            given = by_name.get(found[1], Unknown(found[1])) if found[1] else next(left, Unknown())
            return self.text(Unknown("", NUMBER) if _NUMBER.fullmatch(found[0]) else join([given]))

        return _PLACE.sub(value, text)
