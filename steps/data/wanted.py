"""What one call of staging brings to a folder: objects by key, counted, with a digest that names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from argosy.steps.data.manifest import DataObject, DatasetManifest, Objects
from argosy.steps.data.plan import Share, share_digest

HELD = 1 << 16
"""As many objects are kept after they were read once; more are read again each time."""


class Wanted:
    """Iterating gives the objects by key, as often as it is asked for; ``digest`` names them in their versions."""

    def __init__(self, objects: Objects, digest: str, count: int, total_bytes: int) -> None:
        self._objects: Iterable[DataObject] = objects
        self.digest, self.count, self.total_bytes = digest, count, total_bytes

    def __iter__(self) -> Iterator[DataObject]:
        if self.count <= HELD and not isinstance(self._objects, list):
            self._objects = list(self._objects)
        return iter(self._objects)


def wanted_of(objects: Objects) -> Wanted:
    """These objects; a sequence may have any order."""
    if isinstance(objects, DatasetManifest | Share):
        return Wanted(objects, objects.digest, objects.count, objects.total_bytes)
    ordered = sorted(objects, key=lambda one: one.key)
    return Wanted(ordered, share_digest(ordered), len(ordered), sum(one.size for one in ordered))
