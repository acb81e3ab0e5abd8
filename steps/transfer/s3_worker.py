"""The worker of S3: one event loop for the pool's pipes and all connections."""

from __future__ import annotations

import contextlib
import os
import resource

from argosy.steps.transfer.fetching import Fetching
from argosy.steps.transfer.lines import SLOWER_LINE, now_line, parse_task, result_line, taken_line
from argosy.steps.transfer.loop import Loop
from argosy.steps.transfer.piece import Arrived, Failed
from argosy.steps.transfer.site import Site

TELL_SECONDS = 0.25
_TOGETHER_SECONDS = 0.005
"""Results wait so long for others: each line that is told alone wakes the pool."""
_READ = 1 << 18


class S3Worker:
    """Fetches pieces until its tasks end, or its parent does."""

    def __init__(self, uri: str, parts: int, parent: int, most: int) -> None:
        """Raises StoreError: see :class:`argosy.steps.transfer.site.Site`."""
        self._unsaid: list[bytes] = []
        self._since = 0.0
        self._site = Site(uri, lambda why: self._unsaid.append(taken_line(why)))
        self._parts, self._parent = parts, parent
        _allow_files(4 * most)
        self._wire = Loop(self._site, most=most)
        self._wire.on_throttled = lambda: self._say(SLOWER_LINE)
        self._rest = b""
        self._ended = False
        self._limit, self._told_at = 0, 0.0

    def run(self, tasks: int, told: int) -> None:
        """Return when ``tasks`` ends."""
        os.set_blocking(tasks, False)
        wire = self._wire
        wire.watch(tasks, lambda: self._hear(tasks))
        while not self._ended and os.getppid() == self._parent:
            self._say_now()
            if self._unsaid and (not wire.jobs or wire.now - self._since >= _TOGETHER_SECONDS):
                self._flush(told)
            wire.turn(_TOGETHER_SECONDS if self._unsaid else TELL_SECONDS)

    def _hear(self, tasks: int) -> None:
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(tasks, _READ)
            self._ended = not chunk
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                piece = parse_task(line)
                if piece is None:
                    self._wire.pace.throttled(self._wire.now)
                else:
                    self._wire.add(Fetching(piece, self._site, self._parts, self._tell))

    def _tell(self, result: Arrived | Failed) -> None:
        self._say(result_line(result))

    def _say(self, line: bytes) -> None:
        if not self._unsaid:
            self._since = self._wire.now
        self._unsaid.append(line)

    def _say_now(self) -> None:
        now, limit = self._wire.now, self._wire.pace.limit
        if limit != self._limit or now - self._told_at >= TELL_SECONDS:
            self._limit, self._told_at = limit, now
            self._say(now_line(limit, sum(job.arrived for job in self._wire.flying() if isinstance(job, Fetching))))

    def _flush(self, told: int) -> None:
        lines, self._unsaid = b"".join(self._unsaid), []
        while lines:
            lines = lines[os.write(told, lines) :]


def _allow_files(wanted: int) -> None:
    """Each piece that arrives is a socket and a file; the usual limit of 1,024 is for select(), which is not used."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
