"""What a machine has come to, and what is asked of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from argosy.workflows.script.configured import Configured
from argosy.workflows.script.domain import FIRST_HOLE, LIBRARY, Absent, File, Unknown, Value, choices
from argosy.workflows.script.flags import Flag

_MOST_SEEN = 60
_SAVES = re.compile(r"^(?!numpy|PIL|matplotlib|cv2).*(\.save\w*$|Checkpoint|Trainer\(\)\.(train|fit)$)")


class Answers(Configured):
    """Keeps what each call was given."""

    def __init__(self) -> None:
        super().__init__()
        self._saved = False
        self.seen: dict[ast.expr, list[Value]] = {}
        """What the arguments of calls were."""
        self.calls: dict[ast.Call, list[tuple[Flag, ...]]] = {}
        """The calls that were come to, and the flags that this needed, each time."""
        self.declared: list[tuple[ast.Call, list[Value], dict[str, Value]]] = []  # flags whose names are made
        self.unpacked: dict[ast.Call, dict[str, Value]] = {}  # what calls were given by name, in ``**more`` too

    def saw(self, node: ast.Call, args: list[Value], named: dict[str, Value]) -> None:
        """A call was come to."""
        self.calls.setdefault(node, []).append(self.needs)
        self._saved = self._saved or _SAVES.search(self.named(node.func)) is not None
        said = any(isinstance(each, ast.Constant) for each in node.args)
        if not said and getattr(node.func, "attr", "") == "add_argument":
            self.declared.append((node, args, named))
        starred = any(isinstance(each, ast.Starred) for each in node.args)
        given = {} if starred else dict(zip(node.args, args, strict=False))
        given |= {word.value: named[word.arg] for word in node.keywords if word.arg in named}
        self.unpacked[node] = named
        for each, value in given.items():
            self.keep(each, choices(value))

    def forget(self, told: ast.expr) -> None:
        """A text that was evaluated stands at no line."""
        inside = {*ast.walk(told)}
        self.calls = {call: needs for call, needs in self.calls.items() if call not in inside}
        self.declared = [each for each in self.declared if each[0] not in inside]

    def keep(self, node: ast.expr, values: Sequence[Value]) -> None:
        """An expression was found to be these."""
        kept = self.seen.setdefault(node, [])
        if len(kept) < _MOST_SEEN:
            kept += [each for each in values if not any(each is other for other in kept)]

    def needed(self, call: ast.Call) -> tuple[Flag, ...] | None:
        """The flags without which a call is not come to; None where it never is."""
        return min(self.calls[call], key=len) if call in self.calls else None

    def named(self, node: ast.expr) -> str:
        """What a library calls the function that stands there; "" for none of a library's."""
        found = (each for each in self.seen.get(node, []) if isinstance(each, Unknown) and each.kind == LIBRARY)
        return next((each.name for each in found), "")

    def globs(self, node: ast.expr) -> list[str]:
        """The paths that an argument was, with ``*`` and UNKNOWN for their holes."""
        found = dict.fromkeys(
            self.glob(self.text(each)) for each in self.seen.get(node, [])
            if isinstance(each, str | Path | File | Unknown | Absent) or hasattr(each, "parent")
        )  # fmt: skip
        return list(found)

    def flags_in(self, node: ast.expr) -> Iterator[Flag]:
        """The flags without a value that a path is made of, the first first."""
        for value in self.seen.get(node, []):
            yield from self.flags_of(self.text(value) if not isinstance(value, dict | list) else "")

    def flags_of(self, text: str) -> Iterator[Flag]:
        """Those of a text with holes."""
        for each in (one for one in text if ord(one) >= FIRST_HOLE):
            if (flag := self.holes[ord(each) - FIRST_HOLE].flag) is not None:
                yield flag
