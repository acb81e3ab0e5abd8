"""What pool and worker tell each other: one JSON array per line, and nothing that could be code.

To a worker: a piece's fields, or ``["s"]``: the store asked another worker for fewer requests.
From it: ``["a", number, crcs, compared]``, ``["f", number, cause, message, quote]``, ``["s"]`` (the store asked for
fewer requests), ``["n", limit, bytes]`` (how many pieces it wants at a time, bytes of those that are under way),
``["t", why]`` (the library took over).
"""

from __future__ import annotations

import json
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.transfer.piece import Arrived, Failed, Piece

ARRIVED, FAILED, NOW, SLOWER, TAKEN = "a", "f", "n", "s", "t"
SLOWER_LINE = b'["s"]\n'
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_decode = json.JSONDecoder().decode


def piece_line(piece: Piece) -> bytes:
    """A piece as a line."""
    pinned = (piece.number, piece.key, piece.object_size, piece.etag, piece.version)
    return _encode((*pinned, piece.start, piece.length, piece.part, piece.checksum, piece.mark)).encode() + b"\n"


def parse_task(line: bytes) -> Piece | None:
    """What :func:`piece_line` wrote; None for ``SLOWER_LINE``."""
    row = _decode(line.decode())
    return None if row[0] == SLOWER else Piece(*row)


def result_line(result: Arrived | Failed) -> bytes:
    """A result as a line."""
    if isinstance(result, Failed):
        row = (FAILED, result.number, result.error.cause, str(result.error), result.error.quote)
        return _encode(row).encode() + b"\n"
    # By hand, since there is one for each small object; names of algorithms need no escapes.
    crcs = ",".join([f'"{name}":{value}' for name, value in result.crcs.items()])
    compared = ",".join([f'"{name}"' for name in result.compared])
    return f'["{ARRIVED}",{result.number},{{{crcs}}},[{compared}]]\n'.encode()


def now_line(limit: int, under_way: int) -> bytes:
    """A worker's wish and state as a line."""
    return _encode((NOW, limit, under_way)).encode() + b"\n"


def taken_line(why: str) -> bytes:
    """Why the library took over, as a line."""
    return _encode((TAKEN, why)).encode() + b"\n"


def parse_row(line: bytes) -> list[Any]:
    """A line of a worker; its first cell says which."""
    row: list[Any] = _decode(line.decode())
    return row


def result_of(row: list[Any]) -> Arrived | Failed:
    """What :func:`result_line` wrote, parsed."""
    if row[0] == ARRIVED:
        return Arrived(row[1], row[2], tuple(row[3]))
    return Failed(row[1], StoreError(Cause(row[2]), row[3], quote=row[4]))
