"""One start of ranks, and all that were started in a run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from argosy.steps.contract.exit_codes import ExitCode

PEER_LOST = (1, -6)
PRUNED = "its restore failed: no checkpoint"


@dataclass
class Gang:
    """Ranks by pid; ``codes`` of those that ended: exit code, or minus the signal."""

    name: str
    world: int
    pids: list[int]
    codes: dict[int, int] = field(default_factory=dict)
    killed: set[int] = field(default_factory=set)
    zombie: bool = False

    def alive(self) -> list[int]:
        return [pid for pid in self.pids if pid not in self.codes]

    def signal(self, number: int, pids: list[int]) -> None:
        """Ranks that are not reaped keep their pid, so nobody else can be hit."""
        for pid in pids:
            os.kill(pid, number)
        if number == signal.SIGKILL:
            self.killed |= set(pids)

    def own_codes(self) -> set[int]:
        """How those ended that nobody killed."""
        return {code for pid, code in self.codes.items() if pid not in self.killed}

    def fenced(self, folder: Path) -> bool:
        """Ended as who is fenced must: every rank with 73.

        Ranks that train learn it while they do and end after a step that is chosen ahead of them all. One that a busy
        machine held back may hear of it too late, and is alone in its next collective: what it ends with then is
        torch's to say.
        """
        trains = self.world > 1 and self.steps(folder) > 0
        return int(ExitCode.FENCED) in self.own_codes() <= {int(ExitCode.FENCED), *(PEER_LOST if trains else ())}

    def lost_the_store(self) -> bool:
        """Ended by themselves because the store failed for longer than the retries: restarted like any other end.

        The rank that met it exits 75; one whose peer did may only see a closed connection.
        """
        return int(ExitCode.TRANSIENT) in self.own_codes() <= {int(ExitCode.TRANSIENT), *PEER_LOST}

    def came_too_late(self, folder: Path) -> bool:
        """Fenced, and what it was to restore had been pruned by then."""
        return self.fenced(folder) and PRUNED in self.errors(folder)

    def steps(self, folder: Path) -> int:
        """How many steps rank 0 has told of."""
        lines = folder / f"{self.name}-0.lines"
        return lines.read_bytes().count(b"\n") if lines.exists() else 0

    def errors(self, folder: Path) -> str:
        """The last words of its ranks."""
        files = sorted(folder.glob(f"{self.name}-*.err"))
        return " | ".join(" ".join(file.read_text(errors="replace").split())[-600:] for file in files)


class Gangs:
    """Every gang of a run; ``reap`` asks who ended."""

    def __init__(self, reap: Callable[[], dict[int, int]]) -> None:
        self._reap = reap
        self.all: list[Gang] = []
        self._of: dict[int, Gang] = {}

    def add(self, gang: Gang) -> Gang:
        self.all.append(gang)
        self._of |= dict.fromkeys(gang.pids, gang)
        return gang

    def wait(
        self, gang: Gang, seconds: float, *, everyone: bool = False, until: Callable[[], bool] = lambda: False
    ) -> None:
        """Until the time is over, or a rank (all ranks: ``everyone``) ended, or ``until`` holds."""
        end = time.monotonic() + seconds
        while True:
            for pid, code in self._reap().items():
                self._of.pop(pid).codes[pid] = code
            if (gang.codes and not everyone) or not gang.alive() or time.monotonic() >= end or until():
                return
            time.sleep(min(0.02, max(0.0, end - time.monotonic())))
