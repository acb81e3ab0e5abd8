"""The harness's end of the socket that ranks tell their phases over."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path


class Control:
    """Knows which rank of which gang waits where; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(self.path)
        self._server.listen(64)
        self._known: dict[tuple[str, int], socket.socket] = {}
        self._waiting: dict[tuple[str, int], str] = {}
        threading.Thread(target=self._accept, daemon=True, name="control").start()

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._known.values():
            connection.close()

    def waits_at(self, gang: str, rank: int) -> str:
        """Where the rank waits; "" nowhere."""
        return self._waiting.get((gang, rank), "")

    def knows(self, gang: str, rank: int) -> bool:
        """Whether it has said that it is there."""
        return (gang, rank) in self._known

    def tell(self, gang: str, rank: int, command: str) -> None:
        """Say something to a rank that may have ended."""
        with contextlib.suppress(OSError, KeyError):
            self._known[gang, rank].sendall(command.encode() + b"\n")

    def forget(self, gang: str) -> None:
        """Its ranks have ended."""
        for key in [key for key in self._known if key[0] == gang]:
            self._known.pop(key).close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection: socket.socket) -> None:
        # A rank that is killed in the middle of a line has said nothing.
        with contextlib.suppress(OSError, ValueError), connection.makefile() as lines:
            hello = json.loads(next(lines, ""))
            key = (hello["gang"], hello["rank"])
            self._known[key] = connection
            for line in lines:
                self._waiting[key] = json.loads(line)["at"]
