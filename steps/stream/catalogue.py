"""The objects of a manifest in few bytes, by number: what every rank holds in memory for the whole training."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from fnmatch import fnmatchcase

from argosy.steps.contract.errors import InputError
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.stream.blocks import block_bytes, block_count


class Rows:
    """Lines of text by number; about 8 bytes more than the text itself. Not changed once it is read."""

    def __init__(self, text: bytes = b"") -> None:
        """``text``: lines, each ended by a newline."""
        self._text = bytearray(text)
        self._ends = array("Q", [0])
        at = 0
        while (at := text.find(b"\n", at) + 1) > 0:
            self._ends.append(at)

    def append(self, row: bytes) -> None:
        """Add a line; it has no newline."""
        self._text += row + b"\n"
        self._ends.append(len(self._text))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> bytes:
        return bytes(memoryview(self._text)[self._ends[number] : self._ends[number + 1] - 1])

    def to_bytes(self) -> bytes:
        """All lines."""
        return bytes(self._text)


class Catalogue:
    """The objects whose keys match, numbered in the manifest's order, and where their blocks lie in the table."""

    def __init__(self, manifest: DatasetManifest, match: str = "*") -> None:
        """``match``: a pattern as a shell's, over whole keys (``*`` goes over ``/`` too).

        Raises:
            InputError: no object matches.
        """
        self.uri, self.digest = manifest.uri, manifest.digest
        self.block = block_bytes(manifest.total_bytes)
        self.sizes = array("Q")
        self.first_blocks = array("Q")
        self.unpinned = ""
        """The first key whose object could change unseen; "" there is none."""
        self._rows = Rows()
        block = 0
        for one in manifest:
            if fnmatchcase(one.key, match):
                self._rows.append(one.line())
                self.sizes.append(one.size)
                self.first_blocks.append(block)
                self.unpinned = self.unpinned or (one.key if not (one.etag or one.version) else "")
            block += block_count(one.size, self.block)
        self.blocks = block
        if not self.sizes:
            raise InputError(f"match = {match!r}: no object of {self.uri} has such a key; patterns are a shell's")

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, number: int) -> DataObject:
        return DataObject(*json.loads(self._rows[number]))

    def __iter__(self) -> Iterator[DataObject]:
        return (self[number] for number in range(len(self)))


def no_version(uri: str, key: str) -> InputError:
    """What is said of an object that ``verify="etag"`` could not verify."""
    return InputError(
        f"verify = 'etag': the manifest has neither ETag nor version of object {key!r} of {uri}, so nothing would tell "
        "that it changed: use blocks, or a listing that has them"
    )
