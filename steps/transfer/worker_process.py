"""One worker as its pool sees it: a process, two pipes, and the pieces it has."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from typing import Any

from argosy.steps.child_python import child_command, child_environ
from argosy.steps.transfer.lines import SLOWER_LINE, parse_row, piece_line
from argosy.steps.transfer.piece import Piece

FIRST_LIMIT = 32
"""How many pieces a worker is thought to want before it has said so."""
_AHEAD_PIECES, _AHEAD_BYTES = 256, 8 << 20


class WorkerProcess:
    """Started by the constructor; ``stop`` is called once."""

    def __init__(self, uri: str, parts: int, most: int) -> None:
        """``most``: how many requests it may have under way."""
        command = child_command("argosy.steps.transfer.worker", uri, parts, os.getpid(), most, bare=True)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=(parts,),
            process_group=0,
            env=child_environ(),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.tasks, self.told = self._process.stdin.fileno(), self._process.stdout.fileno()
        for pipe in (self.tasks, self.told):
            os.set_blocking(pipe, False)
            with contextlib.suppress(OSError):
                # A pool that is busy elsewhere for a while must not stop its workers.
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 18)
        self.pieces: dict[int, Piece] = {}
        self.bytes = 0
        self.limit, self.under_way = FIRST_LIMIT, 0
        self.spoke = False
        self._unsent = bytearray()
        self._rest = b""

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    @property
    def hungry(self) -> bool:
        """Whether it wants another piece now: what it works on, and small ones ahead so that it never waits."""
        count = len(self.pieces)
        return count < self.limit + 2 or (count < self.limit + _AHEAD_PIECES and self.bytes < _AHEAD_BYTES)

    @property
    def wanted(self) -> int:
        """How many pieces it can have at a time, should they be small."""
        return self.limit + _AHEAD_PIECES

    def give(self, piece: Piece) -> None:
        """Hand it a piece; :meth:`flush` sends it."""
        self.pieces[piece.number] = piece
        self.bytes += piece.length
        self._unsent += piece_line(piece)

    def slow_down(self) -> None:
        """The store asked for fewer requests; :meth:`flush` sends it."""
        self._unsent += SLOWER_LINE

    def take_back(self, number: int) -> Piece | None:
        """Forget a piece that the worker is done with; None when it was not the worker's."""
        piece = self.pieces.pop(number, None)
        if piece is not None:
            self.bytes -= piece.length
        return piece

    def flush(self) -> bool:
        """Send what the pipe takes; whether something is left."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self.tasks, self._unsent)]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            # It is dead; the end of its answers says so, after what it told before.
            self._unsent.clear()
        return False

    def rows(self) -> tuple[list[list[Any]], bool]:
        """What it told since the last call, and whether it has ended."""
        ended = False
        chunks = [self._rest]
        with contextlib.suppress(BlockingIOError):
            while not ended:
                chunk = os.read(self.told, 1 << 18)
                chunks.append(chunk)
                ended = not chunk
        *lines, self._rest = b"".join(chunks).split(b"\n")
        return [parse_row(line) for line in lines], ended

    def stop(self, patience: float = 0.0) -> str:
        """End it, after ``patience`` seconds, and say how it ended. It keeps nothing that a kill could spoil."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit code {code}"
