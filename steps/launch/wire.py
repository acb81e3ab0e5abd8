"""What launch and the rank shims below it say to each other: JSON lines over a unix socket.

A shim gets its settings in one environment variable (torchrun passes the environment on), connects, and sends
``started``, ``step``, ``checkpoint``, ``injected``, ``failure``, ``note`` and one ``ending``. launch sends
``release`` (it is the root, or that is known: go) and ``stacks`` (the rank hangs: print where). Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

SHIM = "ARGOSY_RANK_SHIM"
"""Environment variable with :class:`ShimSettings` as JSON; taken away before the rank starts."""
SOCKET_NAME = "ranks.sock"


@dataclass(frozen=True, kw_only=True)
class ShimSettings:
    """Settings of the shims of one restart; ``folder`` holds the socket and the ranks' logs.

    ``ranks_from``: folder of the standby that ranks are forked from; empty: they are not.
    """

    folder: str
    pod: str
    node: str
    progress_pattern: str = ""
    resume_step: int = 0
    root_wait_seconds: float = 10.0
    ranks_from: str = ""
    fault: dict[str, Any] | None = None

    def to_json(self) -> str:
        """The settings as a value of an environment variable."""
        return json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> Self:
        """Take the settings out of the environment."""
        return cls(**json.loads(os.environ.pop(SHIM)))


@contextlib.contextmanager
def _short(folder: Path) -> Iterator[str]:
    # A unix socket's path has at most 107 bytes; a pod's folder on one machine is often longer. Not by a change of the
    # working directory: an image's may be one (/root) to which the pod's user may not come back.
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{SOCKET_NAME}"
    finally:
        os.close(handle)


def listen(folder: Path) -> socket.socket:
    """Listen in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _short(folder) as path:
        Path(path).unlink(missing_ok=True)
        server.bind(path)
    server.listen(128)
    return server


def connect(folder: Path) -> socket.socket:
    """Connect to launch.

    Raises:
        OSError: launch does not listen there.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _short(folder) as path:
        client.connect(path)
    return client


def encode(record: dict[str, Any]) -> bytes:
    """A record as one line of JSON."""
    return (json.dumps(record, separators=(",", ":")) + "\n").encode()


class LineBuffer:
    """Bytes in, whole lines out."""

    def __init__(self, limit: int = 1 << 16) -> None:
        """A line longer than ``limit`` bytes is cut there."""
        self._rest = b""
        self._limit = limit

    def feed(self, data: bytes) -> list[bytes]:
        """Lines completed by ``data``, without their line ends."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        while len(self._rest) > self._limit:
            lines.append(self._rest[: self._limit])
            self._rest = self._rest[self._limit :]
        return lines

    def rest(self) -> bytes:
        """The unfinished last line so far."""
        return self._rest

    def flush(self) -> list[bytes]:
        """The unfinished last line, if there is one."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


def decode(line: bytes) -> dict[str, Any] | None:
    """The record of a line, or None when it is none."""
    with contextlib.suppress(ValueError):
        record = json.loads(line)
        if isinstance(record, dict):
            return record
    return None
