"""One page of ListObjectsV2, out of its XML.

The keys are asked for in the form of urls (``encoding-type=url``), because XML has no way to write all letters that a
key may have. A page is somebody else's input: no document type, and so no entity, is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import unquote_plus
from xml.parsers import expat

from argosy.steps.store.base import ObjectInfo

_ABOUT = ("IsTruncated", "NextContinuationToken", "EncodingType")


class BrokenOff(Exception):
    """The page ended in its middle."""


class NoListing(Exception):
    """What came is no page of the listing that was asked for."""


class Hostile(NoListing):
    """It is what no listing needs and an attacker would send."""


@dataclass(frozen=True)
class Page:
    """Objects in the store's order, keys below the prefix; ``token`` asks for the next page, "" behind the last."""

    objects: list[ObjectInfo]
    token: str


class Turns:
    """Sees that a store names its pages in a circle, however long, by one token of them all (Brent's algorithm)."""

    def __init__(self, token: str) -> None:
        self._known, self._left, self._next = token, 1, 2

    def again(self, token: str) -> bool:
        """Whether the page that is named now was named before."""
        if token and token == self._known:
            return True
        self._left -= 1
        if not self._left:
            self._known, self._left, self._next = token, self._next, 2 * self._next
        return False


def parse_page(data: bytes | bytearray, prefix: str) -> Page:
    """The page that ``data`` is; every key in it begins with ``prefix``, which is cut off.

    Raises:
        BrokenOff: its end is missing.
        NoListing: it is something else, or names an object that is not below the prefix.
    """
    rows, about = _told(*_events(data))
    if about.get("EncodingType") != "url":
        # What stands between elements may be told with the text behind it, and only in the form of urls is it no key's.
        rows, about = _told(*_events(data, apart=True))
    token, more = about.get("NextContinuationToken", ""), about.get("IsTruncated", "")
    if more not in ("true", "false"):
        raise NoListing(f"IsTruncated is {more[:60]!r}")
    if more == "true" and not token:
        raise NoListing("it is not the last page, and names no next one")
    return Page(objects_of(rows, prefix, encoded=about.get("EncodingType") == "url"), token if more == "true" else "")


def _events(data: bytes | bytearray, *, apart: bool = False) -> tuple[list[str], dict[str, str]]:
    """Texts, each before the name of the element that it ended with; and all names. ``apart``: "" where one begins.

    Expat gives the same str for the same name, and a new one for each text: that tells them apart, so that both can go
    into one list without a call of Python's for each, which would be half of what a page costs.
    """
    events: list[str] = []
    names: dict[str, str] = {}
    parser = expat.ParserCreate("utf-8", None, names)
    # No text is split: none is longer than this.
    parser.buffer_text, parser.buffer_size = True, 2 * len(data) + 1
    parser.StartDoctypeDeclHandler = _refuse
    if apart:
        parser.StartElementHandler = lambda *_: events.append("")
    parser.CharacterDataHandler = parser.EndElementHandler = events.append
    try:
        parser.Parse(data, False)
    except expat.ExpatError as error:
        raise NoListing(str(error)) from error
    try:
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise BrokenOff(str(error)) from error
    return events, names


def _refuse(*_: object) -> None:
    raise Hostile("it has a document type, which no listing has")


Rows = list[tuple[str, str, str]]
"""(key as it is written, size, ETag)."""


def _told(events: list[str], names: dict[str, str]) -> tuple[Rows, dict[str, str]]:
    """What is said of the objects, and what of the page."""
    key_name, size_name, etag_name, row_name = map(names.get, ("Key", "Size", "ETag", "Contents"))
    known = {id(name) for name in names.values()}
    rows: Rows = []
    before = key = size = etag = ""
    for event in events:
        if event is key_name:
            key = before
        elif event is size_name:
            size = before
        elif event is etag_name:
            etag = before
        elif event is row_name:
            # Where an element is empty, another name stands before its own; of a size that is seen later.
            rows.append(("" if id(key) in known else key, size, "" if id(etag) in known else etag))
            key = size = etag = ""
        before = event
    if before is not names.get("ListBucketResult"):
        raise NoListing(f"its root is {before[:60]!r}")
    return rows, _about(events, row_name, known)


def _about(events: list[str], row_name: str | None, known: set[int]) -> dict[str, str]:
    """What the page says of itself: in front of its objects or behind them."""
    first = next((at for at, event in enumerate(events) if event is row_name), len(events))
    last = next((at for at in reversed(range(len(events))) if events[at] is row_name), len(events))
    outside = events[: first + 1] + events[last:]
    return {
        event: "" if id(before) in known else before.strip()
        for before, event in pairwise(["", *outside])
        if id(event) in known and event in _ABOUT
    }


def _decoded(key: str) -> str:
    # A store that indents its elements puts the indent in front; no letter of a url is a space. A key that is no UTF-8
    # is kept recognizable: whoever takes it for the name of a file refuses it by name.
    key = key.strip()
    return unquote_plus(key, errors="surrogateescape") if "%" in key or "+" in key else key


def objects_of(rows: Rows, prefix: str, *, encoded: bool) -> list[ObjectInfo]:
    """The objects of a page, keys below ``prefix``; ``encoded``: they are written in the form of urls.

    Raises:
        NoListing: one is not below the prefix, or its size is no number.
    """
    decoded = _decoded if encoded else str
    objects: list[ObjectInfo] = []
    cut = len(prefix)
    for written, told_size, etag in rows:
        key, size = decoded(written), told_size.strip()
        if not key.startswith(prefix):
            raise NoListing(f"it names {key[:200]!r}, which is not below {prefix!r}")
        if not (size.isdecimal() and size.isascii()):
            raise NoListing(f"the size of {key[:200]!r} is {size[:60]!r}")
        objects.append(ObjectInfo(key[cut:], int(size), etag.strip()))
    return objects
