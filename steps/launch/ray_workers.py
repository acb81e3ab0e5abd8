"""The workers of Ray Train on a node: Ray's own children, so only their beginning and their end can be seen."""

from __future__ import annotations

import contextlib
import os
import select
import time
from pathlib import Path

from argosy.steps.pods import processes

_TITLES = (b"ray::RayTrainWorker", b"ray::_RayTrainWorker")
_LOOK_SECONDS = 1.0


def workers(root: int) -> set[int]:
    """Those below the process ``root``, by the titles that Ray gives its workers."""
    return {pid for pid in processes.descendants(root) if _title(pid).startswith(_TITLES)}


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Workers:
    """Those of this process, as they come and go."""

    def __init__(self) -> None:
        self._handles: dict[int, int] = {}
        self._poll = select.poll()
        self._looked = 0.0

    def ended(self) -> list[int]:
        """Pids of those that have ended since the last call."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._looked = time.monotonic()
            for pid in workers(os.getpid()) - set(self._handles.values()):
                with contextlib.suppress(OSError):
                    handle = os.pidfd_open(pid)
                    self._handles[handle] = pid
                    self._poll.register(handle, select.POLLIN)
        gone = [handle for handle, _ in self._poll.poll(0)]
        for handle in gone:
            self._poll.unregister(handle)
            os.close(handle)
        return [self._handles.pop(handle) for handle in gone]
