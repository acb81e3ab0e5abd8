"""Checksums as stores name them: of bytes as they arrive, of two pieces joined, and their texts.

CRCs are plain integers, so that those of pieces can be joined without reading the bytes again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TypeVar

from argosy.steps.contract.errors import InputError

_T = TypeVar("_T")
Buffer = bytes | bytearray | memoryview
OWN = "crc64nvme"
"""What is computed of every piece: S3's default, and the fastest."""
BYTES = {"crc64nvme": 8, "crc32c": 4, "crc32": 4}
"""Algorithm -> size of its value; those that can be continued and joined."""
_HASHES = ("sha256", "sha1")
_POLYNOMIALS = {"crc64nvme": 0x9A6C9329AC4BC9B5, "crc32c": 0x82F63B78, "crc32": 0xEDB88320}
"""The highest power is the lowest bit, and left out."""


@cache
def _update() -> dict[str, Callable[[Buffer, int], int]]:
    # Imported with the first bytes: it takes 30 ms, in which the first requests are under way.
    from awscrt import checksums as crt

    return {"crc64nvme": crt.crc64nvme, "crc32c": crt.crc32c, "crc32": zlib.crc32}


def known(algorithm: str) -> bool:
    """Whether :class:`Running` can compute it."""
    return algorithm in BYTES or algorithm in _HASHES


def crc(algorithm: str, data: Buffer, running: int = 0) -> int:
    """The CRC of ``data``, or of what gave ``running`` followed by ``data``.

    Raises:
        InputError: no CRC of this name.
    """
    return _named(_update(), algorithm)(data, running)


def combine(algorithm: str, first: int, second: int, second_length: int) -> int:
    """The CRC of two pieces in a row, from the CRC of each and the second's length in bytes.

    Raises:
        InputError: no CRC of this name.
    """
    polynomial, bits = _named(_POLYNOMIALS, algorithm), 8 * BYTES[algorithm]
    if not second_length:
        return first
    return _product(first, _power(polynomial, bits, 8 * second_length), polynomial, bits) ^ second


def text(algorithm: str, value: int) -> str:
    """``crc64nvme:<base64>``, as S3 writes the value (big-endian); ``sha256:<hex>`` for hashes."""
    if algorithm in _HASHES:
        return f"{algorithm}:{value:0{hashlib.new(algorithm).digest_size * 2}x}"
    return f"{algorithm}:{base64.b64encode(value.to_bytes(_named(BYTES, algorithm), 'big')).decode()}"


def decoded(algorithm: str, value: str) -> int | None:
    """The value of base64, as S3's headers have it; None if it is none."""
    try:
        raw = binascii.a2b_base64(value, strict_mode=True)
    except (ValueError, binascii.Error):
        return None
    size = hashlib.new(algorithm).digest_size if algorithm in _HASHES else BYTES.get(algorithm)
    return int.from_bytes(raw, "big") if len(raw) == size else None


class Running:
    """Checksums of a stream, several at a time; ``begin`` more only before the first byte."""

    __slots__ = ("_crcs", "_hashes", "_own")

    def __init__(self, *algorithms: str) -> None:
        self._own = 0
        self._crcs: dict[str, int] = {}
        self._hashes: dict[str, hashlib._Hash] = {}
        for algorithm in algorithms:
            self.begin(algorithm)

    def begin(self, algorithm: str) -> None:
        """Compute this one, too; twice is once."""
        if algorithm in _HASHES:
            self._hashes.setdefault(algorithm, hashlib.new(algorithm, usedforsecurity=False))
        elif algorithm != OWN:
            _named(BYTES, algorithm)
            self._crcs.setdefault(algorithm, 0)

    def update(self, data: Buffer) -> None:
        """The next bytes."""
        known = _update()
        self._own = known[OWN](data, self._own)
        for algorithm, value in self._crcs.items():
            self._crcs[algorithm] = known[algorithm](data, value)
        for digest in self._hashes.values():
            digest.update(data)

    @property
    def own(self) -> int:
        """The crc64nvme so far."""
        return self._own

    def values(self) -> dict[str, int]:
        """Algorithm -> value; a hash as the number that its hex digits write."""
        hashes = {name: int.from_bytes(digest.digest(), "big") for name, digest in self._hashes.items()}
        return {OWN: self._own, **self._crcs, **hashes}


def _named(table: dict[str, _T], algorithm: str) -> _T:
    if algorithm not in table:
        raise InputError(f"checksum algorithm {algorithm!r}: use {', '.join(table)}")
    return table[algorithm]


# awscrt joins CRCs, too, but who only joins them would wait 30 ms for its import. How it is done is explained by
# https://github.com/madler/zlib/blob/v1.3.1/crc32.c (crc32_combine): what follows shifts a CRC by its length in bits.


def _product(one: int, other: int, polynomial: int, bits: int) -> int:
    """The product of two polynomials over GF(2), modulo ``polynomial``."""
    found = 0
    for bit in range(bits - 1, -1, -1):
        if one >> bit & 1:
            found ^= other
        other = other >> 1 ^ polynomial if other & 1 else other >> 1
    return found


@lru_cache(maxsize=64)
def _power(polynomial: int, bits: int, exponent: int) -> int:
    """x to the power of ``exponent``, modulo ``polynomial``."""
    found, square = 1 << bits - 1, 1 << bits - 2
    while exponent:
        if exponent & 1:
            found = _product(found, square, polynomial, bits)
        square = _product(square, square, polynomial, bits)
        exponent >>= 1
    return found
