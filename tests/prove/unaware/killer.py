"""SIGKILLs ranks of a run at random instants; some are aimed at a file that is being written."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.pods import processes

KINDS = ("early", "training", "saving", "saving")
"""early: any time after the ranks began; training: after a commit; saving: a checkpoint's file is open for writing."""
EARLY_SECONDS = 6.0
TRAINING_SECONDS = 2.0
SAVES = 3
MOST_WITHOUT_COMMIT = 2
"""A third kill without a new checkpoint in between rightly ends a run."""
LOOK_SECONDS = 0.05
AIM_SECONDS = 0.001
_LOOKS = 100
_NO_SAVE = "/stderr.txt"
"""What a library asks of the compiler in a temporary folder."""
_FURTHER = 4
"""A save goes on for so many steps at most before the kill."""


@dataclass(frozen=True)
class Kill:
    """One kill: seconds after the ranks began, and the file that was open for writing at that instant ("": none)."""

    kind: str
    ranks: tuple[int, ...]
    seconds: float
    open_file: str


class Killer:
    """Kills ranks of ``engine``'s run below ``work`` until it ends."""

    def __init__(self, engine: subprocess.Popen[bytes], work: Path, folder: str, commits: Callable[[], int]) -> None:
        """``folder`` is the script's checkpoint folder; ``commits`` tells how many checkpoints were committed."""
        self._engine = engine
        self._work = os.fsencode(work)
        # An absolute one lies on the volume "shared".
        below = "/volumes/shared/" if folder.startswith("/") else os.path.normpath(f"/workspace/{folder}") + "/"
        self._folders = (below, "/tmp/tmp")
        """Where a save is seen; a library may write to a temporary file first."""
        self._commits = commits
        self._gone: set[int] = set()
        self.kills: list[Kill] = []

    def run(self, plan: Sequence[str], draw: random.Random, limit_seconds: float) -> None:
        """Kill once for each kind in ``plan``, as long as the run goes on; returns when the engine has ended.

        Raises:
            subprocess.TimeoutExpired: it did not within ``limit_seconds``; it is killed then.
        """
        deadline = time.monotonic() + limit_seconds
        idle, committed = 0, 0
        try:
            while len(self.kills) < len(plan) and self._engine.poll() is None and time.monotonic() < deadline:
                ranks = self._ranks()
                if not ranks:
                    time.sleep(LOOK_SECONDS)
                    continue
                if self._commits() > committed:  # also one that ended only after the kill, before the failure was told
                    idle, committed = 1, self._commits()
                kind = "training" if idle >= MOST_WITHOUT_COMMIT else plan[len(self.kills)]
                if self._kill(kind, draw, deadline):
                    idle = 1 if self._commits() > committed else idle + 1
                    committed = self._commits()
            self._engine.wait(max(0.0, deadline - time.monotonic()))
        finally:
            if self._engine.poll() is None:
                os.killpg(self._engine.pid, signal.SIGKILL)

    def _kill(self, kind: str, draw: random.Random, deadline: float) -> bool:
        began = time.monotonic()
        if kind == "early":
            self._pause(draw.uniform(0.0, EARLY_SECONDS), deadline)
        elif kind == "training":
            before = self._commits()
            while self._commits() == before and self._runs(deadline):
                time.sleep(LOOK_SECONDS)
            self._pause(draw.uniform(0.0, TRAINING_SECONDS), deadline)
        else:
            return self._in_a_save(draw, began, deadline)
        ranks = self._ranks()
        if not ranks:
            return False
        victims = list(ranks) if draw.random() < 0.2 else [draw.choice(sorted(ranks))]
        return self._strike(kind, {rank: ranks[rank] for rank in victims}, began)

    def _in_a_save(self, draw: random.Random, began: float, deadline: float) -> bool:
        """Kill the rank that writes, while it does, in one of the first saves of this restart."""
        skip, seen = draw.randrange(SAVES), set[str]()
        ranks, before, looks = self._ranks(), self._commits(), 0
        while self._runs(deadline):
            time.sleep(AIM_SECONDS)
            looks += 1
            if looks % _LOOKS == 0 and self._commits() - before > 2 * SAVES:
                # A script that renames whole files into the folder is never seen writing there.
                rank = draw.choice(sorted(ranks))
                return self._strike("saving", {rank: ranks[rank]}, began)
            for rank, pid in ranks.items():
                found = self._written(pid)
                if found:
                    seen.add(f"{found} {int(time.monotonic() / 0.3)}")
                if found and len(seen) > skip and self._stopped_in_it(pid, draw.randrange(_FURTHER)):
                    return self._strike("saving", {rank: pid}, began)
            if not all(self._alive(pid) for pid in ranks.values()):
                return False
        return False

    def _stopped_in_it(self, pid: int, further: int) -> bool:
        """Stop a process that writes, ``further`` steps on; False, and it runs, when it was done before."""
        processes.send(pid, signal.SIGSTOP)
        for _ in range(further):
            processes.send(pid, signal.SIGCONT)
            time.sleep(AIM_SECONDS)
            processes.send(pid, signal.SIGSTOP)
        if self._written(pid):
            return True
        processes.send(pid, signal.SIGCONT)
        return False

    def _strike(self, kind: str, victims: dict[int, int], began: float) -> bool:
        for pid in victims.values():
            processes.send(pid, signal.SIGSTOP)
        found = [name for pid in victims.values() if (name := self._written(pid))]
        alive = {rank: pid for rank, pid in victims.items() if self._alive(pid)}
        for pid in victims.values():
            processes.send(pid, signal.SIGKILL)
        if alive:
            self._gone |= set(self._ranks().values()) | set(victims.values())
            seconds = round(time.monotonic() - began, 2)
            self.kills.append(Kill(kind, tuple(sorted(alive)), seconds, found[0] if found else ""))
        return bool(alive)

    def _pause(self, seconds: float, deadline: float) -> None:
        until = min(deadline, time.monotonic() + seconds)
        while time.monotonic() < until and self._engine.poll() is None:
            time.sleep(min(LOOK_SECONDS, max(0.0, until - time.monotonic())))

    def _runs(self, deadline: float) -> bool:
        return self._engine.poll() is None and time.monotonic() < deadline

    def _alive(self, pid: int) -> bool:
        return processes.start_time(pid) is not None

    def _ranks(self) -> dict[int, int]:
        """Rank -> pid of the scripts themselves that run now and that we have not struck."""
        found = {}
        # A library's fork looks like its rank until it is another program: of two the elder is the rank.
        younger_first = sorted(processes.all_pids(), key=lambda pid: processes.start_time(pid) or 0, reverse=True)
        for pid in (pid for pid in younger_first if pid not in self._gone):
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"train.py" not in command or b"argosy." in command or not self._alive(pid):
                    continue
                environ = Path(f"/proc/{pid}/environ").read_bytes()
                rank = environ.partition(b"\0RANK=")[2].partition(b"\0")[0]
                if self._work in environ and rank:
                    found[int(rank)] = pid
        return found

    def _written(self, pid: int) -> str:
        """A file of the checkpoint folder that the process has open for writing; "" for none."""
        with contextlib.suppress(OSError):
            for handle in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError, StopIteration):
                    target = os.readlink(f"/proc/{pid}/fd/{handle}")
                    inside = next((folder for folder in self._folders if folder in target), None)
                    if inside is None or target.endswith(_NO_SAVE):
                        continue
                    lines = Path(f"/proc/{pid}/fdinfo/{handle}").read_text().splitlines()
                    flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))
                    if flags & os.O_ACCMODE != os.O_RDONLY:
                        return target.partition(inside)[2]
        return ""
