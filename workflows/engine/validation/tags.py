"""``{{…}}`` in the texts of a template, cut and replaced as Argo does it: in the JSON, simple tags only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.workflows.engine.gotext import breaks_json
from argosy.workflows.engine.validation.refusal import PLACEHOLDER, Refused


class Placeholders:
    """Stand-ins for values that are known only when the workflow runs; each is another."""

    def __init__(self) -> None:
        self._next = 0

    def next(self) -> str:
        """One that was not there before."""
        self._next += 1
        return f"{PLACEHOLDER}{self._next}"


def texts_of(value: Any) -> Iterator[str]:
    """Every text of a tree, keys too, that may hold a tag."""
    if isinstance(value, str):
        if "{{" in value:
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if "{{" in key:
                yield key
            yield from texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)


def simple_tags(text: str) -> Iterator[str]:
    """What stands between ``{{`` and ``}}``, where it is no expression; one that is not closed goes to the end."""
    for piece, kind in _pieces(_escaped(text)):
        if kind != "text" and not piece.startswith("="):
            yield piece


def replaced(value: Any, names: Mapping[str, str]) -> Any:
    """The tree with every tag of ``names`` replaced; other tags stay as they are.

    Raises:
        Refused: a value has a control character, of which Argo makes invalid JSON.
    """
    if isinstance(value, str):
        return _replaced_text(value, names) if "{{" in value else value
    if isinstance(value, Mapping):
        return {_replaced_text(key, names): replaced(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, names) for item in value]
    return value


def _replaced_text(text: str, names: Mapping[str, str]) -> str:
    if "{{" not in text:
        return text
    return str(json.loads('"' + "".join(_replaced_pieces(_escaped(text), names)) + '"'))


def _replaced_pieces(text: str, names: Mapping[str, str]) -> Iterator[str]:
    for piece, kind in _pieces(text):
        if kind == "text":
            yield piece
        elif kind == "open":
            yield "{{" + piece
        elif piece.startswith("="):
            yield "{{" + piece + "}}"
        elif piece.strip() in names:
            yield _written(names[piece.strip()], piece)
        else:
            outer, nested, inner = piece.rpartition("{{")
            if nested and outer and inner in names:
                yield "{{" + outer + _written(names[inner], inner)
            else:
                yield "{{" + piece + "}}"


def _written(value: str, tag: str) -> str:
    if breaks_json(value):
        raise Refused(
            f"{{{{{tag.strip()}}}}}: its value has a control character; the result was invalid JSON; take it out"
        )
    return _escaped(value)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """(piece, "text" | "tag" | "open"): a tag without its braces; an open one is never closed."""
    position = 0
    while (start := text.find("{{", position)) >= 0:
        yield text[position:start], "text"
        end = text.find("}}", start + 2)
        if end < 0:
            # In Argo's JSON the tag goes on to the next braces that close something.
            yield text[start + 2 :], "open"
            return
        yield text[start + 2 : end], "tag"
        position = end + 2
    yield text[position:], "text"
