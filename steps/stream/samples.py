"""What a sample is: an object, a record of fixed size, or a line. (Members of tar archives: ``archives.py``.)"""

from __future__ import annotations

import hashlib
import json
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.numbers import whole
from argosy.steps.stream.blocks import sealed, unsealed
from argosy.steps.stream.catalogue import Catalogue
from argosy.steps.stream.extents import Extent

Read = Callable[[Sequence[Extent]], list[bytes]]
"""Bytes of each extent, verified."""
LINES = "argosy-lines-1"
_WINDOW = 8 << 20


class SampleIndex(Protocol):
    """Where samples lie, and what is made of their bytes."""

    def __len__(self) -> int:
        """Number of samples."""

    def extents(self, number: int) -> list[Extent]:
        """What sample ``number`` is made of."""

    def sample(self, number: int, parts: list[bytes]) -> Any:
        """The sample, of the bytes of its extents."""


class Samples(Protocol):
    """A kind of samples; what it computes from a dataset is kept under :attr:`recipe` where that is not empty."""

    @property
    def recipe(self) -> str:
        """Names what :meth:`scan` computes; empty: the sizes of the objects say everything."""

    def scan(self, catalogue: Catalogue, read: Read) -> bytes:
        """Find the samples."""

    def index(self, catalogue: Catalogue, scanned: bytes) -> SampleIndex:
        """The index, of what :meth:`scan` found."""


def check_samples(samples: Any) -> None:
    """Raise InputError for what says nothing of samples, as a class in place of one of it."""
    if isinstance(samples, type) or not hasattr(samples, "recipe"):
        shown = samples.__name__ if isinstance(samples, type) else repr(samples)
        remedy = "write ObjectSamples(), LineSamples(), RecordSamples(record_bytes) or ArchiveSamples()"
        raise InputError(f"samples = {shown}: does not say what a sample is; {remedy}")


def recipe_hash(recipe: str, match: str) -> str:
    """Names an index of samples among those of the same dataset."""
    return hashlib.sha256(json.dumps([recipe, match]).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ObjectSamples:
    """One object is one sample: ``{"__key__": its key, "data": its bytes}``."""

    recipe: str = field(default="", init=False)

    def scan(self, catalogue: Catalogue, read: Read) -> bytes:
        """Nothing to find."""
        return b""

    def index(self, catalogue: Catalogue, scanned: bytes) -> SampleIndex:
        """Sample i is object i."""
        return _ObjectIndex(catalogue)


class _ObjectIndex:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def __len__(self) -> int:
        return len(self._catalogue)

    def extents(self, number: int) -> list[Extent]:
        return [Extent(number, 0, self._catalogue.sizes[number])]

    def sample(self, number: int, parts: list[bytes]) -> Any:
        return {"__key__": self._catalogue[number].key, "data": parts[0]}


@dataclass(frozen=True)
class RecordSamples:
    """Records of ``record_bytes`` one after the other in each object: a sample is the bytes of one."""

    record_bytes: int
    header_bytes: int = 0
    """Bytes of each object before its first record."""
    drop_partial: bool = False
    """Leave out what is over at an object's end; else that is an error."""
    recipe: str = field(default="", init=False)

    def __post_init__(self) -> None:
        whole("record_bytes", self.record_bytes, 1)
        whole("header_bytes", self.header_bytes, 0)

    def scan(self, catalogue: Catalogue, read: Read) -> bytes:
        """Nothing to find."""
        return b""

    def index(self, catalogue: Catalogue, scanned: bytes) -> SampleIndex:
        """Counts by the objects' sizes.

        Raises:
            InputError: an object ends within a record, and ``drop_partial`` is not set.
        """
        counts = []
        for number, size in enumerate(catalogue.sizes):
            count, over = divmod(max(0, size - self.header_bytes), self.record_bytes)
            if size < self.header_bytes or (over and not self.drop_partial):
                key = catalogue[number].key
                raise InputError(f"record_bytes = {self.record_bytes}: object {key!r} of {size} bytes ends within a "
                                 "record; correct it, choose objects by match=, or set drop_partial")  # fmt: skip
            counts.append(count)
        return _RecordIndex(self, counts)


class _RecordIndex:
    def __init__(self, kind: RecordSamples, counts: list[int]) -> None:
        self._kind = kind
        self._firsts = _running_sum(counts)

    def __len__(self) -> int:
        return self._firsts[-1]

    def extents(self, number: int) -> list[Extent]:
        one = bisect_right(self._firsts, number) - 1
        start = self._kind.header_bytes + (number - self._firsts[one]) * self._kind.record_bytes
        return [Extent(one, start, self._kind.record_bytes)]

    def sample(self, number: int, parts: list[bytes]) -> Any:
        return parts[0]


@dataclass(frozen=True)
class LineSamples:
    """Lines of text, as in JSON Lines: a sample is the bytes of one, without its end; blank lines are left out."""

    recipe: str = field(default="lines", init=False)

    def scan(self, catalogue: Catalogue, read: Read) -> bytes:
        """Read every object once for the ends of its lines."""
        counts, spans = array("Q"), array("Q")
        for number, size in enumerate(catalogue.sizes):
            found = _spans(number, size, read)
            counts.append(len(found) // 2)
            spans.extend(found)
        return sealed(LINES, {"objects": len(counts)}, _bytes_of(counts) + _bytes_of(spans))

    def index(self, catalogue: Catalogue, scanned: bytes) -> SampleIndex:
        """The index made of the (start, length) pairs that were found."""
        head, body = unsealed(LINES, scanned)
        numbers = array("Q")
        numbers.frombytes(body)
        if head.get("objects") != len(catalogue):
            raise ValueError(f"an index of {head.get('objects')} objects, not of {len(catalogue)}")
        return _LineIndex(numbers[: len(catalogue)], numbers[len(catalogue) :])


class _LineIndex:
    def __init__(self, counts: array[int], spans: array[int]) -> None:
        self._firsts = _running_sum(counts)
        self._spans = spans

    def __len__(self) -> int:
        return len(self._spans) // 2

    def extents(self, number: int) -> list[Extent]:
        one = bisect_right(self._firsts, number) - 1
        return [Extent(one, self._spans[2 * number], self._spans[2 * number + 1])]

    def sample(self, number: int, parts: list[bytes]) -> Any:
        return parts[0]


def _spans(number: int, size: int, read: Read) -> array[int]:
    spans = array("Q")
    begin, blank = 0, True

    def end(at: int, text: bytes) -> None:
        nonlocal begin, blank
        if not blank or text.strip():
            spans.extend((begin, at - begin))
        begin, blank = at + 1, True

    for start in range(0, size, _WINDOW):
        (window,) = read([Extent(number, start, min(_WINDOW, size - start))])
        at = 0
        while (found := window.find(b"\n", at)) >= 0:
            end(start + found, window[at:found])
            at = found + 1
        blank = blank and not window[at:].strip()
    end(size, b"")
    return spans


def _running_sum(counts: Sequence[int]) -> array[int]:
    firsts = array("Q", [0])
    for count in counts:
        firsts.append(firsts[-1] + count)
    return firsts


def _bytes_of(numbers: array[int]) -> bytes:
    return numbers.tobytes()
