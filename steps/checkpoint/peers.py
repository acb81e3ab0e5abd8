"""Asks other nodes of the gang for what they still have of a checkpoint. Whatever is amiss, the store has it too."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from argosy.steps.checkpoint.at_hand import Near
from argosy.steps.checkpoint.filling import filled
from argosy.steps.checkpoint.manifest import ShardFile
from argosy.steps.contract.channel import KEPT, KEPT_FOLDER

if TYPE_CHECKING:
    from http.client import HTTPResponse

_CONNECT_SECONDS = 2.0
_SLOWEST = 50e6
"""Bytes per second, below which the store is asked instead."""
_PIECE = 4 << 20
_Found = TypeVar("_Found")


class Peers:
    """Who did not answer once is not asked again. May be used by several threads."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._away: set[str] = set()

    def index(self, address: str, save: str = "") -> dict[str, int]:
        """What a node has in memory for a restart, or of a ``save`` of its ranks: SHA-256 -> size."""

        def read(answer: HTTPResponse, deadline: float) -> dict[str, int]:
            return {str(digest): int(size) for digest, size in json.loads(answer.read()).items()}

        query = f"?{urlencode({'save': save})}" if save else ""
        return self._asked(f"http://{address}{KEPT}{query}", 0, read) or {}

    def read(self, url: str, file: ShardFile, into: memoryview) -> bool:
        """Fill ``into``; whether it now holds the file's bytes."""

        def read(answer: HTTPResponse, deadline: float) -> bool:
            return filled(into, lambda _, piece: _in_time(answer, piece, deadline)) == (file.size, file.sha256)

        return bool(self._asked(url, file.size, read))

    def near(self, addresses: Sequence[str]) -> Near:
        """What one of these nodes has in its script's folder."""

        def given(file: ShardFile, part: Path) -> bool:
            asked = f"{KEPT_FOLDER}/{quote(file.path)}?{urlencode({'size': file.size, 'modified': file.modified_ns})}"
            return any(self._written(f"http://{address}{asked}", file, part) for address in addresses)

        return given

    def _written(self, url: str, file: ShardFile, part: Path) -> bool:

        def read(answer: HTTPResponse, deadline: float) -> bool:
            piece, hashed = memoryview(bytearray(min(_PIECE, max(file.size, 1)))), hashlib.sha256()
            with part.open("wb") as target:
                while count := _in_time(answer, piece, deadline):
                    hashed.update(piece[:count])
                    target.write(piece[:count])
                target.flush()
                os.fsync(target.fileno())
            return hashed.hexdigest() == file.sha256

        return bool(self._asked(url, file.size, read))

    def _asked(self, url: str, size: int, read: Callable[[HTTPResponse, float], _Found]) -> _Found | None:
        """What ``read`` makes of the answer; None: there is none, or not of ``size`` bytes (0: any)."""
        # Every rank and its writer would wait for this import as they start; few of them ever ask.
        from http.client import HTTPConnection, HTTPException

        parts = urlsplit(url)
        if parts.netloc in self._away:
            return None
        try:
            connected = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=_CONNECT_SECONDS)
            with contextlib.closing(connected) as connection:
                connection.request("GET", parts._replace(scheme="", netloc="").geturl(), headers=self._headers())
                answer = connection.getresponse()
                if answer.status != 200 or (size and answer.length != size):
                    return None
                return read(answer, time.monotonic() + _CONNECT_SECONDS + size / _SLOWEST)
        except (OSError, HTTPException, ValueError, AttributeError):
            self._away.add(parts.netloc)
            return None

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Connection": "close"}


def _in_time(answer: HTTPResponse, piece: memoryview, deadline: float) -> int:
    if time.monotonic() > deadline:
        raise TimeoutError("slower than a store")
    return answer.readinto(piece)
