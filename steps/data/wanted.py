"""What one call of staging brings to a folder: objects by key, counted, with a digest that names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from argosy.steps.data.manifest import DataObject, DatasetManifest, Objects
from argosy.steps.data.plan import Share, share_digest


@dataclass(frozen=True)
class Wanted:
    """Iterating gives the objects by key, as often as it is asked for."""

    objects: Iterable[DataObject]
    digest: str
    count: int
    total_bytes: int

    def __iter__(self) -> Iterator[DataObject]:
        return iter(self.objects)


def wanted_of(objects: Objects) -> Wanted:
    """These objects; a sequence may have any order."""
    if isinstance(objects, DatasetManifest | Share):
        return Wanted(objects, objects.digest, objects.count, objects.total_bytes)
    ordered = sorted(objects, key=lambda one: one.key)
    return Wanted(ordered, share_digest(ordered), len(ordered), sum(one.size for one in ordered))
