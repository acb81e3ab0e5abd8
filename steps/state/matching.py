"""Which stored tensor goes into which tensor of a given state, and the values that come along.

Both sides are trees of :mod:`argosy.steps.state.tree`. Nothing is matched by luck: what is missing or left over is
named, and refused unless it was asked otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.steps.state.stored import StoredState

_SHOWN = 5
_REMEDY = (
    "build `into` as the checkpoint was saved (the state of an optimizer that has not stepped is empty: "
    "torch.distributed.checkpoint.state_dict.get_state_dict() fills it), or give strict=False"
)


@dataclass
class Match:
    """``tensors``: name in ``into`` -> stored name; ``tree``: the state to return (values from the checkpoint)."""

    tree: Any = None
    tensors: dict[str, str] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)
    """Stored names that come back as new NumPy arrays."""
    missing: list[str] = field(default_factory=list)
    """Paths of ``into`` that the checkpoint lacks: left as they are."""
    unexpected: list[str] = field(default_factory=list)
    """Paths of tensors of the checkpoint for which ``into`` has no tensor: not read."""
    twins: list[tuple[str, str, str]] = field(default_factory=list)
    """(Path, name in ``into``, stored name) of one tensor of ``into`` that is several in the checkpoint (torch DCP
    stores tied tensors apart): the stored ones must be equal."""


def match(stored: StoredState, into: Any, tensors: Mapping[str, Any], *, strict: bool) -> Match:
    """``into``, ``tensors``: what encode() gives of the state to fill.

    Raises:
        InputError: names that one side lacks (with ``strict``), or tensors of another shape or type.
    """
    found = Match()
    found.tree = _Merge(found).merged(into, stored.tree, ())
    if strict and (found.missing or found.unexpected):
        raise InputError(f"the checkpoint of step {stored.step} does not fit: {_words(found)}; {_REMEDY}")
    pairs = [*found.tensors.items(), *((name, other) for _, name, other in found.twins)]
    wrong = [
        f"{name!r}: {theirs.dtype} {list(theirs.shape)} in the checkpoint, "
        f"{str(mine.dtype).removeprefix('torch.')} {list(mine.shape)} here"
        for name, mine, theirs in ((name, tensors[name], stored.tensors[other]) for name, other in pairs)
        if tuple(mine.shape) != theirs.shape or str(mine.dtype).removeprefix("torch.") != theirs.dtype
    ]
    if wrong:
        raise InputError(
            f"the checkpoint of step {stored.step} does not fit: {_listed(wrong)}; build the model as it was "
            "saved, and convert after the restore"
        )
    return found


def _words(found: Match) -> str:
    kinds = (
        (found.missing, "missing in the checkpoint"),
        (found.unexpected, "not in the given state"),
    )
    return "; ".join(f"{words}: {_listed(names)}" for names, words in kinds if names)


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


def in_place(name: str) -> tuple[str, str]:
    """Stands in :attr:`Match.tree` for the tensor ``name`` of the given state: no stored name is a tuple."""
    return ("into", name)


class _Merge:
    def __init__(self, found: Match) -> None:
        self._found = found

    def merged(self, into: Any, stored: Any, path: tuple[Any, ...]) -> Any:
        if _is(into, "$tensor"):
            return self._tensor(into, stored, path)
        if (mine := _pairs(into)) is not None and (theirs := _pairs(stored)) is not None:
            return self._mapping(mine, theirs, path)
        if (items := _items(into)) is not None and (others := _items(stored)) is not None and _holds(into):
            return self._sequence(into, items, others, path)
        if _holds(stored):
            self._found.unexpected += list(_places(stored, path))
        if _holds(into):
            self._found.missing += list(_places(into, path))
        return _left(into) if _holds(stored) or _holds(into) else self._value(stored)

    def _tensor(self, into: Any, stored: Any, path: tuple[Any, ...]) -> Any:
        name = into["$tensor"]
        if _is(stored, "$tensor") or _is(stored, "$ndarray"):
            source = next(iter(stored.values()))
            if self._found.tensors.setdefault(name, source) != source:
                self._found.twins.append((_shown(path), name, source))
        else:
            self._found.missing.append(_shown(path))
            self._found.unexpected += list(_places(stored, path))
        return {"$tensor": in_place(name)}

    def _mapping(self, mine: dict[str, Any], theirs: dict[str, Any], path: tuple[Any, ...]) -> Any:
        pairs = []
        for text, (key, value) in mine.items():
            # torch DCP writes the key 0 as "0".
            other = text if text in theirs else json.dumps(str(key)) if type(key) is int else text
            if other in theirs:
                pairs.append([key, self.merged(value, theirs.pop(other)[1], (*path, key))])
            else:
                self._found.missing += list(_places(value, (*path, key))) or [_shown((*path, key))]
                pairs.append([key, _left(value)])
        for key, value in theirs.values():
            if _holds(value):
                self._found.unexpected += list(_places(value, (*path, key)))
            else:
                pairs.append([key, self._value(value)])
        return {"$dict": pairs}

    def _sequence(self, into: Any, items: list[Any], others: list[Any], path: tuple[Any, ...]) -> Any:
        merged = [self.merged(a, b, (*path, n)) for n, (a, b) in enumerate(zip(items, others, strict=False))]
        for n, item in list(enumerate(items))[len(others) :]:
            self._found.missing += list(_places(item, (*path, n))) or [_shown((*path, n))]
            merged.append(_left(item))
        for n, item in list(enumerate(others))[len(items) :]:
            self._found.unexpected += list(_places(item, (*path, n)))
        return {"$tuple": merged} if _is(into, "$tuple") else merged

    def _value(self, stored: Any) -> Any:
        self._found.arrays.update(_arrays(stored))
        return stored


def _is(node: Any, tag: str) -> bool:
    return isinstance(node, dict) and len(node) == 1 and tag in node


def _tagged(node: Any) -> bool:
    return isinstance(node, dict) and len(node) == 1 and next(iter(node)).startswith("$")


def _pairs(node: Any) -> dict[str, Any] | None:
    """Text of the key -> (key, value) of a mapping."""
    if _is(node, "$dict"):
        return {json.dumps(key): (key, value) for key, value in node["$dict"]}
    return {json.dumps(key): (key, value) for key, value in node.items()} if _plain(node) else None


def _plain(node: Any) -> bool:
    return isinstance(node, dict) and not _tagged(node)


def _items(node: Any) -> list[Any] | None:
    return node if isinstance(node, list) else node["$tuple"] if _is(node, "$tuple") else None


def _children(node: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if (pairs := _pairs(node)) is not None:
        yield from (((*path, key), value) for key, value in pairs.values())
    elif (items := _items(node)) is not None:
        yield from (((*path, n), item) for n, item in enumerate(items))


def _places(node: Any, path: tuple[Any, ...]) -> Iterator[str]:
    """Paths of the tensors below."""
    if _is(node, "$tensor"):
        yield _shown(path)
    for at, child in _children(node, path):
        yield from _places(child, at)


def _holds(node: Any) -> bool:
    return next(_places(node, ()), None) is not None


def _arrays(node: Any) -> Iterator[str]:
    if _is(node, "$ndarray"):
        yield node["$ndarray"]
    for _, child in _children(node, ()):
        yield from _arrays(child)


def _left(node: Any) -> Any:
    """The same tree, its tensors marked as those of the given state."""
    for tag in ("$tensor", "$ndarray"):
        if _is(node, tag):
            return {tag: in_place(node[tag])}
    if (pairs := _pairs(node)) is not None:
        return {"$dict": [[key, _left(value)] for key, value in pairs.values()]}
    if (items := _items(node)) is not None:
        left = [_left(item) for item in items]
        return {"$tuple": left} if _is(node, "$tuple") else left
    return node


def _shown(path: tuple[Any, ...]) -> str:
    return "state" + "".join(f"[{key!r}]" for key in path)
