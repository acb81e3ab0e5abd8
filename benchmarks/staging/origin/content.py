"""Data sets that nobody stores: keys, sizes and bytes are functions of a number."""

from __future__ import annotations

import base64
import hashlib
import math
import mmap
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

POOL_BYTES = 96 << 20
"""Random bytes, in memory once; every object is a window of them."""
_STRIDE = 64 * 7919
"""From one object's window to the next one's: no two of 100,000 begin at the same byte."""
WHOLE_MD5 = 8 << 20
"""Larger objects have the ETag of an upload in parts of this size, which is no MD5, as those of the usual tools do."""
MODIFIED = "Sat, 01 Nov 2025 00:00:00 GMT"
MODIFIED_ISO = "2025-11-01T00:00:00.000Z"


class Pool:
    """The random bytes: ``view`` for small objects and for checks, ``fd`` (of a file in memory) for sendfile."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("argosy-bench-pool")
        with os.fdopen(os.dup(self.fd), "wb") as target:
            target.write(random.Random(1).randbytes(POOL_BYTES))
        self.view = memoryview(mmap.mmap(self.fd, POOL_BYTES, prot=mmap.PROT_READ))


@cache
def pool() -> Pool:
    """The one pool of this process; the same bytes in every process."""
    return Pool()


@dataclass(frozen=True, slots=True)
class Window:
    """One object: its key in the bucket, its size, and where in the pool its bytes begin."""

    key: str
    size: int
    offset: int

    def bytes(self) -> memoryview:
        """The content."""
        return pool().view[self.offset : self.offset + self.size]

    def etag(self) -> str:
        """With its quotes."""
        if self.size <= WHOLE_MD5:
            return f'"{hashlib.md5(self.bytes(), usedforsecurity=False).hexdigest()}"'
        named = hashlib.md5(f"{self.size}-{self.offset}".encode(), usedforsecurity=False).hexdigest()
        return f'"{named}-{math.ceil(self.size / WHOLE_MD5)}"'

    def crc64nvme(self) -> str:
        """Base64, as the header has it."""
        from awscrt import checksums  # an origin without data sets, as the test suite starts it, needs none

        return base64.b64encode(checksums.crc64nvme(self.bytes()).to_bytes(8, "big")).decode()


@dataclass(frozen=True)
class Dataset:
    """``count`` objects below ``name/``, a thousand to a folder, each ``smallest`` to ``largest`` bytes long.

    Sizes between the two are drawn evenly on the logarithm, by the object's number alone.
    """

    name: str
    count: int
    smallest: int
    largest: int

    @classmethod
    def parse(cls, text: str) -> Dataset:
        """``NAME:COUNT:BYTES`` or ``NAME:COUNT:FROM-TO``."""
        name, count, size = text.split(":")
        smallest, _, largest = size.partition("-")
        return cls(name, int(count), int(smallest), int(largest or smallest))

    def __str__(self) -> str:
        return f"{self.name}:{self.count}:{self.smallest}-{self.largest}"

    def __iter__(self) -> Iterator[Window]:
        """Sorted by key."""
        for number in range(self.count):
            size = self._size(number)
            key = f"{self.name}/{number // 1000:03d}/{number:06d}.bin"
            yield Window(key, size, number * _STRIDE % (POOL_BYTES - size))

    def _size(self, number: int) -> int:
        if self.smallest == self.largest:
            return self.smallest
        drawn = random.Random(f"{self.name}-{number}").uniform(math.log(self.smallest), math.log(self.largest))
        return int(math.exp(drawn))

    @property
    def total_bytes(self) -> int:
        """Sum of the sizes."""
        return sum(self._size(number) for number in range(self.count))
