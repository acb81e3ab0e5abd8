"""What a script has written to its names and objects, branch by branch."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from argosy.workflows.script.domain import FIRST_HOLE, Absent, Frame, OneOf, Unknown, Value, join
from argosy.workflows.script.flags import Flag

_NONE = object()
RETURN, RAISE, LEAVE, BREAK = "return", "raise", "leave", "break"
"""How a block may end before its last line; LEAVE: continue, or one of several ways that is not certain."""
Way = Callable[[], str]
_MOST_NEEDS = 3


class Memory:
    """Writes can be taken back, so that both ways of a branch are tried from the same state."""

    def __init__(self) -> None:
        self._log: list[tuple[Any, Any, Any]] = []
        self.needs: tuple[Flag, ...] = ()
        """The flags without which what is looked at now is not run."""
        self.deciding: list[Flag] = []
        """The flags that are not given, and that tests have asked for."""
        self.sure: set[ast.Call] = set()  # what is come to from the first line
        self.raised: ast.Raise | None = None
        self.ended: ast.Raise | None = None
        """Where the script raises as its flags are, whatever a run finds."""

    def write(self, place: Any, key: Any, value: Value) -> None:
        """Set a key of a dict, or the content of a list."""
        if isinstance(place, list):
            self._log.append((place, None, list(place)))
            place[:] = value
        else:
            self._log.append((place, key, place.get(key, _NONE)))
            place[key] = value

    def _undo(self, start: int) -> dict[tuple[int, Any], tuple[Any, Any, Any]]:
        """Take back the writes since; what they had made of each place."""
        made: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        for place, key, old in reversed(self._log[start:]):
            now = list(place) if isinstance(place, list) else place.get(key, _NONE)
            made.setdefault((id(place), key), (place, key, now))
            if isinstance(place, list):
                place[:] = old
            elif old is _NONE:
                place.pop(key, None)
            else:
                place[key] = old
        del self._log[start:]
        return made

    def either(self, frame: Frame, *ways: Way) -> str:
        """Go each of the ways; what they write is one of several afterwards."""
        start, kept, ends = len(self._log), [], []
        for way in ways:
            ends.append(way())
            made = self._undo(start)
            if ends[-1] == RETURN:
                made = {at: each for at, each in made.items() if each[0] is not frame.names}
            if ends[-1] != RAISE:
                kept.append((ends[-1], made))
        live = [made for end, made in kept if end != RETURN] or [made for _, made in kept]
        for at in dict.fromkeys(at for _, made in kept for at in made):
            self._merge(at, [made for _, made in kept], [*live])
        if all(ends):
            certain = {*ends} - {RAISE}
            first = next((end for end in ends if end != RAISE), RAISE)
            return LEAVE if first == BREAK and len(certain) > 1 else first
        return ""

    def _merge(self, at: tuple[int, Any], ways: list[Any], live: list[Any]) -> None:
        place, key, _ = next(made[at] for made in ways if at in made)
        if isinstance(place, list):
            self.write(place, None, max((made[at][2] for made in ways if at in made), key=len))
            return
        mine = [made for made in ways if at in made or made in live]
        values = [made[at][2] if at in made else place.get(key, _NONE) for made in mine]
        self.write(place, key, join(each for each in values if each is not _NONE))

    def suppose(self, frame: Frame, flags: list[Flag], way: Way) -> list[str]:
        """Go a way that is taken only with ``flags``, and forget what it wrote; the names to which it did."""
        if len(self.needs) + len(flags) > _MOST_NEEDS:
            return []
        before, returned, start = self.needs, len(frame.returned), len(self._log)
        self.needs = tuple(dict.fromkeys((*before, *flags)))
        way()
        made = self._undo(start)
        del frame.returned[returned:]
        self.needs = before
        return [key for place, key, _ in made.values() if place is frame.names]

    def truth(self, value: Value) -> bool | None:
        """Whether it counts as true; None: only a run could tell."""
        if isinstance(value, OneOf):
            said = {self.truth(each) for each in value.values}
            return said.pop() if len(said) == 1 else None
        if isinstance(value, Absent):
            self.deciding.append(value.flag)
            return bool(value.value)
        if isinstance(value, Unknown):
            return None
        if isinstance(value, list | dict | tuple | set):
            return True if value else None  # what is filled elsewhere looks empty
        if isinstance(value, str) and value and all(ord(each) >= FIRST_HOLE for each in value):
            return None
        return bool(value) if isinstance(value, str | int | float | bool | None) else True
