"""One worker as its pool sees it: a process, two pipes, and the pieces it has."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from argosy.steps.transfer.lines import SLOWER_LINE, parse_row, piece_line
from argosy.steps.transfer.piece import Piece

FIRST_LIMIT = 32
"""How many pieces a worker is thought to want before it has said so."""
_AHEAD_PIECES, _AHEAD_BYTES = 256, 8 << 20


class WorkerProcess:
    """Started by the constructor; ``stop`` is called once."""

    def __init__(self, uri: str, parts: int, most: int) -> None:
        """``most``: how many requests it may have under way."""
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(_paths())}
        # -P: a file in the working directory must not be imported in place of a library. -S: what the environment
        # runs at the start of each Python was run by the parent, which knows the paths; again it may take 15 ms.
        command = [
            sys.executable,
            *("-P", "-S", "-m", "argosy.steps.transfer.worker", uri),
            *map(str, (parts, os.getpid(), most)),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=(parts,),
            process_group=0,
            env=environ,
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
        """Of the worker's process."""
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
        """It is done with this piece."""
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


def _paths() -> list[str]:
    """Where a worker finds what this process finds; argosy may have been found by a hook, as of an editable install."""
    known = sys.path if sys.flags.safe_path else sys.path[1:]
    return [*filter(None, known), str(Path(__file__).absolute().parents[3])]
