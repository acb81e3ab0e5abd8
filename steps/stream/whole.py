"""Is an object that came in pieces the one that its store keeps a checksum of?"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.data.manifest import DataObject
from argosy.steps.stream.catalogue import Catalogue
from argosy.steps.transfer.checksums import stored_checksums
from argosy.steps.transfer.crc import BYTES, combine, crc, text


def stored_of(catalogue: Catalogue) -> Iterator[str]:
    """The checksum that the store keeps of each object, as the manifest says or the store when it is asked; or ""."""
    asked = stored_checksums(catalogue.uri, ((one.key, one.etag) for one in catalogue if _is_asked_for(one)))
    for one in catalogue:
        yield next(asked)[1] if _is_asked_for(one) else one.checksum


def _is_asked_for(one: DataObject) -> bool:
    # A version that a listing names need not be the current one, of which a HEAD tells.
    return one.size > 0 and not one.checksum and not one.version


class Whole:
    """Joins the CRCs of an object's pieces, which come in any order."""

    def __init__(self, number: int, stored: str, count: int, *, last: bool) -> None:
        """``number`` of the object, of ``count`` pieces; ``stored``: what the store keeps; ``last``: no third try."""
        self.number, self.stored, self.last = number, stored, last
        self.suspect = False
        """Something was wrong with it in this try."""
        self._left = count
        self._algorithm = stored.partition(":")[0]
        self._parts: list[tuple[int, int, int]] = []

    def flaw(self, start: int, data: memoryview) -> str:
        """Take a piece; once all are there: what is wrong with them, or ""."""
        if self._algorithm not in BYTES:
            return ""
        self._parts.append((start, crc(self._algorithm, data), len(data)))
        self._left -= 1
        if self._left:
            return ""
        value = 0
        for _, part, length in sorted(self._parts):
            value = combine(self._algorithm, value, part, length)
        found = text(self._algorithm, value)
        return "" if found == self.stored else f"its bytes have {found}, the store keeps {self.stored}"
