"""What is asked of a fetch, and what comes of it."""

from __future__ import annotations

from typing import NamedTuple

from argosy.steps.store.base import StoreError

WHOLE_BYTES = 32 << 20
"""An object up to this size is one piece: then S3 sends the object's checksum along."""
RANGE_BYTES = 16 << 20
"""A piece of a larger object."""


class Piece(NamedTuple):
    """One GET: ``length`` bytes from ``start`` of an object, to be written at ``start`` of a file.

    ``number`` is the caller's, unique within a pool. ``etag`` and ``version`` pin what is read where they are set.
    ``part`` is the name of a file in the parts folder: created if missing, never truncated. ``checksum`` names an
    algorithm of :mod:`argosy.steps.transfer.crc` to compute beside crc64nvme ("" none). ``mark``: where in the part's
    map (:mod:`argosy.steps.transfer.marks`) the piece's state is kept while it comes; -1 nowhere.
    """

    number: int
    key: str
    object_size: int
    etag: str
    version: str
    start: int
    length: int
    part: str
    checksum: str = ""
    mark: int = -1

    @property
    def whole(self) -> bool:
        """Whether this is the whole object: no range is asked for."""
        return self.start == 0 and self.length == self.object_size


class Arrived(NamedTuple):
    """The piece's bytes are in the file.

    ``crcs`` by algorithm, of exactly these bytes. ``compared``: those that the store keeps of the whole object, which
    were the same; empty for ranges and where the store keeps none.
    """

    number: int
    crcs: dict[str, int]
    compared: tuple[str, ...] = ()


class Failed(NamedTuple):
    """The piece cannot be had, after all retries.

    The error's cause: ``s3_missing`` the object changed or is gone, ``data_corrupt`` wrong bytes came twice,
    ``s3_throttle`` and ``store_unavailable`` the store did not serve it, ``s3_access``, ``disk_full``.
    """

    number: int
    error: StoreError
