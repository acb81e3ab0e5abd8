"""What one call of staging brings to a folder: objects by key, counted, with a digest that names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.plan import share_digest


@runtime_checkable
class Counted(Protocol):
    """Objects by key that can be read again and again, and say of themselves what they are."""

    @property
    def digest(self) -> str:
        """Names the objects in their versions."""

    @property
    def count(self) -> int:
        """How many."""

    @property
    def total_bytes(self) -> int:
        """Sum of the sizes."""

    def __iter__(self) -> Iterator[DataObject]:
        """By key."""


@dataclass(frozen=True)
class Share:
    """Iterating gives the objects by key, as often as it is asked for."""

    objects: Iterable[DataObject]
    digest: str
    count: int
    total_bytes: int

    def __iter__(self) -> Iterator[DataObject]:
        return iter(self.objects)


def share_of(objects: DatasetManifest | Counted | Sequence[DataObject]) -> Share:
    """The share that consists of these objects; a sequence may have any order."""
    if isinstance(objects, Sequence):
        ordered = sorted(objects, key=lambda one: one.key)
        return Share(ordered, share_digest(ordered), len(ordered), sum(one.size for one in ordered))
    return Share(objects, objects.digest, objects.count, objects.total_bytes)
