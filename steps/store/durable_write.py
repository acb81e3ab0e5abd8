"""Write a file so that its bytes are on the disk when it returns, hashing while it writes."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable
from pathlib import Path

from argosy.steps.store.background_hash import BackgroundHash
from argosy.steps.store.hashed_chunks import flat_bytes

_CHUNK = 4 << 20
_WRITE = 1 << 30


def write_durably(part: Path, data: bytes | Path | memoryview) -> tuple[str, int]:
    """Write and fsync; SHA-256 and size of what was written (bytes need no digest: the caller has them)."""
    with part.open("wb", buffering=0) as target:
        if isinstance(data, bytes):
            _write_all(target, memoryview(data))
            written = "", len(data)
        elif isinstance(data, memoryview):
            flat = flat_bytes(data)
            pieces = (flat[start : start + _CHUNK] for start in range(0, len(flat), _CHUNK))
            written = _write_hashed(target, pieces, len(flat))
        else:
            with data.open("rb", buffering=0) as source:
                written = _write_hashed(
                    target, iter(lambda: source.read(_CHUNK), b""), os.fstat(source.fileno()).st_size
                )
        os.fsync(target.fileno())
    return written


def _write_hashed(target: io.FileIO, chunks: Iterable[bytes | memoryview], expected: int) -> tuple[str, int]:
    size = 0
    if expected <= _CHUNK:
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
            size += _write_all(target, memoryview(chunk))
        return digest.hexdigest(), size
    with BackgroundHash() as hashed:
        for chunk in chunks:
            hashed.update(chunk)
            size += _write_all(target, memoryview(chunk))
    return hashed.hexdigest(), size


def _write_all(target: io.FileIO, data: memoryview) -> int:
    """All of it: one write(2) takes at most 2 GiB, and less on a disk that is nearly full."""
    written = 0
    while written < len(data):
        written += target.write(data[written : written + _WRITE]) or 0
    return written
