"""A process that is forked from the pod's standby (:mod:`argosy.steps.launch.standby`). Standard library only."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from argosy.steps.launch.wire import connect

_READ: Final = 1 << 12


class Forked:
    """As a Popen is asked. It dies with whoever ordered it, and with the standby."""

    def __init__(self, folder: Path, order: Mapping[str, Any], handles: Mapping[int, int]) -> None:
        """The standby listens in ``folder``; ``handles``: our file handle for each number of its own.

        Raises:
            OSError: there is no standby.
        """
        self.returncode: int | None = None
        self._pid = 0
        self._heard = b""
        self._socket = connect(folder)
        line = json.dumps({**order, "handles": list(handles)}).encode() + b"\n"
        sent = socket.send_fds(self._socket, [line], list(handles.values()))
        self._socket.sendall(line[sent:])

    @property
    def pid(self) -> int:
        """Its number, once it is there; 0: it never came."""
        while not self._pid and self.returncode is None:
            self._hear()
        return self._pid

    def fileno(self) -> int:
        """Readable when there is news of it."""
        return self._socket.fileno()

    def poll(self) -> int | None:
        """Its return code; None while it runs."""
        while self.returncode is None and select.select([self._socket], [], [], 0)[0]:
            self._hear()
        return self.returncode

    def wait(self) -> int:
        """Its return code, when it has ended."""
        while self.returncode is None:
            self._hear()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """If it runs; one that is not there yet will not come."""
        if self.poll() is None:
            if self._pid:
                os.kill(self._pid, number)
            else:
                self._end(-number)

    def _hear(self) -> None:
        try:
            data = self._socket.recv(_READ)
        except ConnectionResetError:
            data = b""
        *lines, self._heard = (self._heard + data).split(b"\n")
        for told in map(json.loads, lines):
            self._pid = told.get("pid", self._pid)
            if "code" in told:
                self._end(told["code"])
        if not data and self.returncode is None:
            self._end(-signal.SIGKILL)  # as the standby has ended, so has it

    def _end(self, code: int) -> None:
        self.returncode = code
        self._socket.close()
