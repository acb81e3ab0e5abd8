"""Gives other nodes of the gang what this pod still has of the last checkpoint, while a restart restores."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from argosy.steps.address import with_port
from argosy.steps.contract.channel import KEPT, KEPT_FOLDER
from argosy.steps.guarded import GuardedHandler, GuardedServer, Serving
from argosy.steps.launch.kept import KeptMemory

_AT_ONCE = 16
"""Files that are sent at the same time."""
_TURN_SECONDS = 1.0


class Keeper:
    """Listens from the first check-in on that finds something to give, to the pod's end."""

    def __init__(self, kept: KeptMemory, folder: Path | None) -> None:
        """``folder``: of a script that knows nothing of us."""
        self._kept = kept
        self._folder = folder
        self._server: _Server | None = None

    def address(self, host: str, *, always: bool = False) -> str:
        """ADDRESS:PORT for the others; "": there is nothing, nor ``always`` may be, or nobody can listen."""
        if not (always or self._kept.index() or (self._folder is not None and self._folder.is_dir())):
            return ""
        if self._server is None:
            try:
                self._server = _Server(host, self._kept, self._folder)
            except OSError:
                return ""
            Serving(self._server, "keeper").__enter__()
        return with_port(host, self._server.server_port)


class _Server(GuardedServer):
    def __init__(self, host: str, kept: KeptMemory, folder: Path | None) -> None:
        self.kept = kept
        self.folder = folder
        self._turns = threading.Semaphore(_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), _Handler)

    @contextlib.contextmanager
    def turn(self) -> Iterator[bool]:
        """Whether it came in time; the store answers as many as there are."""
        came = self._turns.acquire(timeout=_TURN_SECONDS)
        try:
            yield came
        finally:
            if came:
                self._turns.release()


class _Handler(GuardedHandler):
    server: _Server
    timeout = 5.0
    """Who takes nothing for so long, as a node that was lost, gives its turn to others."""

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        self.close_connection = True
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.kept.token}".encode()):
            return self.answer(401, b"wrong token", "text/plain")
        self.server.known(self.connection)
        asked = urlsplit(self.path)
        if asked.path == KEPT:
            save = parse_qs(asked.query).get("save", [""])[0]
            return self.answer(200, json.dumps(self.server.kept.index(save)).encode(), "application/json")
        found = None
        if asked.path.startswith(f"{KEPT}/"):
            found = self.server.kept.opened(asked.path[len(KEPT) + 1 :])
        elif asked.path.startswith(f"{KEPT_FOLDER}/") and self.server.folder is not None:
            found = _in_folder(self.server.folder, unquote(asked.path[len(KEPT_FOLDER) + 1 :]), parse_qs(asked.query))
        if found is None:
            return self.answer(404, b"not here any more", "text/plain")
        return self._stream(*found)

    def _stream(self, handle: int, start: int, size: int) -> None:
        with os.fdopen(handle, "rb", buffering=0) as source, self.server.turn() as whose:
            if not whose:
                return self.answer(503, b"others are being answered", "text/plain")
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if size:
                self.connection.sendfile(source, start, size)


def _in_folder(folder: Path, path: str, query: dict[str, list[str]]) -> tuple[int, int, int] | None:
    """A file of the script's that is as it was committed, by size and time; the bytes are judged by who asked."""
    # Imported here: most restarts ask nobody.
    from argosy.steps.checkpoint.at_hand import untouched
    from argosy.steps.checkpoint.manifest import check_path

    try:
        check_path(path)
        size, modified = int(query["size"][0]), int(query["modified"][0])
        handle = os.open(folder / path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (OSError, ValueError, KeyError):
        return None
    if untouched(os.fstat(handle), size, modified):
        return handle, 0, size
    os.close(handle)
    return None
