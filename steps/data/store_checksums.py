"""What the store knows of the bytes of large objects, asked before they are frozen into a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from argosy.steps.data.keys import broken_rule
from argosy.steps.data.manifest import DataObject
from argosy.steps.transfer.piece import WHOLE_BYTES

_BATCH = 1 << 14
_OF_WHOLE_OBJECTS = ("crc64nvme:", "crc32c:", "crc32:")


def with_checksums(uri: str, objects: Iterable[DataObject]) -> Iterator[DataObject]:
    """The same objects in the same order; large ones without a checksum get the one their store has, if any.

    Smaller ones are fetched by one request, whose answer carries the checksum: they are not asked for.

    Raises:
        StepError: ``s3_missing``: an object changed while the dataset was being frozen; or what the store reported.
    """
    source = iter(objects)
    while batch := list(islice(source, _BATCH)):
        large = [(one.key, one.etag) for one in batch if _is_asked_for(one)]
        found = _asked(uri, large) if large else {}
        for one in batch:
            checksum = found.get(one.key, "")
            yield replace(one, checksum=checksum) if checksum.startswith(_OF_WHOLE_OBJECTS) else one


def _asked(uri: str, large: list[tuple[str, str]]) -> dict[str, str]:
    # Imported here: a dataset of small objects starts without the wire and its native checksums.
    from argosy.steps.transfer.checksums import stored_checksums

    return dict(stored_checksums(uri, large))


def _is_asked_for(one: DataObject) -> bool:
    # A version that somebody names need not be the one that is current, which a HEAD without it would tell of.
    return one.size > WHOLE_BYTES and not one.checksum and not one.version and not broken_rule(one.key)
