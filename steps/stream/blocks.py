"""A checksum for every block of a dataset: what makes a range of an object as trustworthy as the whole object.

Stores keep a checksum of a whole object and none of a range. The table is made once per version of a dataset by
reading every object whole (``argosy.steps.stream.building``); from then on any range can be verified by itself.
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from typing import Any

from argosy.steps.transfer.crc import OWN, crc

FORMAT = "argosy-blocks-1"
SMALLEST_BLOCK = 64 << 10
"""A request costs a store more than so many bytes do, so rounding a small range up to it is nearly free."""
MOST_BLOCKS = 8 << 20
"""64 MiB of checksums; one more per object."""


def block_bytes(total_bytes: int) -> int:
    """Bytes of one block of a dataset of this size: a function of the size alone, so every reader agrees on it."""
    size = SMALLEST_BLOCK
    while total_bytes > size * MOST_BLOCKS:
        size *= 2
    return size


def block_count(size: int, block: int) -> int:
    """Blocks of an object of ``size`` bytes; the last may be shorter."""
    return -(-size // block)


def block_sums(data: memoryview, block: int) -> array[int]:
    """CRC-64/NVME of each block of ``data``, which begins at a block's start."""
    return array("Q", [crc(OWN, data[at : at + block]) for at in range(0, len(data), block)])


class BlockTable:
    """CRC-64/NVME of all blocks: objects in the manifest's order, blocks from the object's start."""

    def __init__(self, digest: str, block: int, sums: array[int]) -> None:
        """``digest`` of the dataset; ``sums``: one per block."""
        self.digest, self.block, self.sums = digest, block, sums

    def wrong(self, first: int, data: memoryview) -> int | None:
        """The first block of ``data`` that is not as in the table, counted from ``data``'s start; None: all are.

        ``first``: the number in the table of the block that ``data`` begins with.
        """
        for number, found in enumerate(block_sums(data, self.block)):
            if found != self.sums[first + number]:
                return number
        return None

    def to_bytes(self) -> bytes:
        """One line of JSON, then the checksums as 64-bit little-endian numbers; the same bytes for the same dataset."""
        return sealed(FORMAT, {"dataset_digest": self.digest, "block_bytes": self.block}, _little_endian(self.sums))

    @classmethod
    def from_bytes(cls, raw: bytes) -> BlockTable:
        """Read what :meth:`to_bytes` wrote.

        Raises:
            ValueError: not a table, or not whole.
        """
        head, body = unsealed(FORMAT, raw)
        sums = array("Q")
        sums.frombytes(body)
        return cls(str(head["dataset_digest"]), int(head["block_bytes"]), array("Q", _little_endian(sums)))


def sealed(form: str, head: dict[str, object], body: bytes) -> bytes:
    """``body`` under a line of JSON that names its format and its SHA-256."""
    line = json.dumps({"format": form, **head, "sha256": hashlib.sha256(body).hexdigest()})
    return line.encode() + b"\n" + body


def unsealed(form: str, raw: bytes) -> tuple[dict[str, Any], bytes]:
    """Head and body of what :func:`sealed` made.

    Raises:
        ValueError: another format, or the body is not what was sealed.
    """
    line, _, body = raw.partition(b"\n")
    head = json.loads(line)
    if not isinstance(head, dict) or head.get("format") != form:
        raise ValueError(f"not of format {form}")
    if head.get("sha256") != hashlib.sha256(body).hexdigest():
        raise ValueError("its content does not have the SHA-256 that it names")
    return head, body


def _little_endian(sums: array[int]) -> bytes:
    if sys.byteorder == "big":
        sums = array("Q", sums)
        sums.byteswap()
    return sums.tobytes()
