"""Files in flight: ``parts/<name>``, and a map of how far its pieces have come for those that are worth resuming.

A name is made from what the bytes are (dataset's uri, key, size, ETag, version): a staging that goes on knows its
parts again, and bytes of another version are never taken for these.
"""

from __future__ import annotations

import hashlib
import os

from argosy.steps.data.manifest import DataObject
from argosy.steps.data.state_files import remove_file
from argosy.steps.transfer.piece import WHOLE_BYTES

RESUMED_BYTES = 4 << 20
"""Objects up to this size are fetched again instead of being resumed inside."""
SUFFIX = ".map"


class Parts:
    """The folder of parts behind ``handle``; what an earlier staging left and nobody claims can be swept."""

    def __init__(self, handle: int, uri: str) -> None:
        """``uri`` of the dataset."""
        self.handle = handle
        self._uri = hashlib.blake2b(uri.encode() + b"\n", digest_size=16)
        self.left = {name for name in os.listdir(handle) if "." not in name}
        """Parts that an earlier staging left."""
        self._claimed: dict[str, DataObject] = {}

    def name(self, one: DataObject) -> str:
        """The part of an object."""
        running = self._uri.copy()
        running.update(f"{one.key}\n{one.size}\n{one.etag}\n{one.version}".encode(errors="surrogateescape"))
        return running.hexdigest()

    def claim(self, one: DataObject) -> None:
        """Keep the object's part, if an earlier staging left one and it can be resumed.

        An answer with the whole object carries its checksum, one with the rest does not: then somebody else must
        know it. The manifest does, or the store is asked, which it cannot be by version. And of an object of which
        nothing but its size is known, the rest may be another version's.
        """
        if not (one.etag or one.version or one.checksum):
            return
        if one.size <= RESUMED_BYTES or (one.size <= WHOLE_BYTES and one.version and not one.checksum):
            return
        if self.left and (name := self.name(one)) in self.left:
            self._claimed[name] = one

    def unproven(self) -> list[DataObject]:
        """Claimed objects of which the store must be asked what the whole should be."""
        return [one for one in self._claimed.values() if one.size <= WHOLE_BYTES and not one.checksum]

    def claimed(self, name: str) -> bool:
        """Whether an earlier staging left this part, and somebody claimed it."""
        return name in self._claimed

    def sweep(self) -> None:
        """Remove what nobody claimed.

        Raises:
            OSError: the disk refused.
        """
        for name in os.listdir(self.handle):
            if name.removesuffix(SUFFIX) not in self._claimed:
                remove_file(self.handle, name)
        self.left.clear()

    def sweep_unmarked(self) -> None:
        """Remove what cannot be resumed inside.

        Raises:
            OSError: the disk refused.
        """
        names = set(os.listdir(self.handle))
        for name in names:
            if name + SUFFIX not in names and not name.endswith(SUFFIX):
                remove_file(self.handle, name)

    def drop(self, name: str) -> None:
        """Remove a part and its map.

        Raises:
            OSError: the disk refused.
        """
        self._claimed.pop(name, None)
        remove_file(self.handle, name)
        remove_file(self.handle, name + SUFFIX)

    def facts(self, name: str) -> os.stat_result | None:
        """Facts of a part, or None."""
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except OSError:
            return None

    def allocated(self) -> int:
        """Bytes that the claimed parts take already."""
        found = (self.facts(name) for name in self._claimed)
        return sum(facts.st_blocks * 512 for facts in found if facts is not None)
