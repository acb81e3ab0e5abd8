"""One run killed many times: the real store, claims and fencing over HTTP, real processes, random world sizes.

The harness does what the supervisor and launch do: claim a generation, choose the newest intact checkpoint, start
ranks with the environment of ``steps/contract/env.py``. It ends a gang at a random instant: all ranks at once, or one
rank and later the others, or it stops the ranks (SIGSTOP), starts the next gang and wakes the old one up: a zombie.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from argosy.steps.contract import env
from argosy.steps.store import open_store
from argosy.steps.store.base import StoreError
from argosy.steps.supervisor.commits import RunCommits
from tests.exact.gang import Gang, Gangs
from tests.exact.zygote import Zygote

NEVER = 10**9
ZOMBIES_AT_ONCE = 2
LIMIT_SECONDS = 90.0
SAVE_EVERY = 3
Answer = TypeVar("Answer")


class KilledRun:
    """A run in ``uri``, its ranks' lines and errors in ``folder``. ``wrong`` collects what must not happen."""

    steps_at_most = 10
    """A gang is killed before it has trained so many steps."""

    def __init__(self, uri: str, folder: Path, recipe: Mapping[str, int], zygote: Zygote, seed: str) -> None:
        self.uri, self.folder, self.recipe, self.zygote = uri, folder, dict(recipe), zygote
        self.chance = random.Random(seed)
        self.gangs = Gangs(zygote.reap)
        self.kills: Counter[int] = Counter()
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._asleep: list[Gang] = []
        folder.mkdir(parents=True)

    def kill(self, times: int) -> None:
        """Start and kill gangs until ``times`` were killed."""
        while self.kills.total() < times and not self.wrong:
            gang = self.start(self.chance.choice([1, 2, 4]), NEVER)
            self._wake(0.5)
            self._wait_for_an_instant(gang)
            if gang.codes:
                self._ended_itself(gang)
            elif self.chance.random() < 0.15 and len(self._asleep) < ZOMBIES_AT_ONCE:
                gang.zombie = True
                gang.signal(signal.SIGSTOP, gang.alive())
                self._asleep.append(gang)
            else:
                self._killed(gang)

    def finish(self, steps: int) -> int:
        """Train ``steps`` more undisturbed and save the final checkpoint; its step. Every zombie meets its end."""
        end = self._eventually(RunCommits.reached)["commit_step"] + steps
        while not self.wrong:
            gang = self.start(self.chance.choice([1, 2, 4]), end)
            self._wake(1.0)
            self.gangs.wait(gang, LIMIT_SECONDS, everyone=True)
            if gang.own_codes() == {0}:
                break
            self._ended_itself(gang)
        for zombie in [gang for gang in self.gangs.all if gang.zombie]:
            self.gangs.wait(zombie, LIMIT_SECONDS, everyone=True)
            self._judge(zombie)
        return end

    def start(self, world: int, end: int) -> Gang:
        """A gang as the supervisor starts one: claim, choose, environment."""
        claim = self._eventually(lambda commits: commits.claim("exact-kills"))
        found = self._eventually(RunCommits.resume)
        name = f"g{claim.generation:04d}"
        environ = {
            **{name: value for name, value in os.environ.items() if name.startswith("AWS_")},
            env.RUN_URI: self.uri,
            env.GENERATION: str(claim.generation),
            env.LOG_SEQ: str(claim.seq),
            env.RESUME_DIGEST: found.digest if found else "",
            env.CHECKPOINT_EVERY: str(SAVE_EVERY),
        }
        pids = self.zygote.start(
            "tests.exact.training:train",
            world=world,
            folder=self.folder,
            gang=name,
            environ=environ,
            spoken=str(self.folder / name),
            recipe=self.recipe,
            end=end,
        )
        return self.gangs.add(Gang(name, world, pids))

    # ---- endings

    def _wait_for_an_instant(self, gang: Gang) -> None:
        # A third of the kills hits the start: rendezvous, restore, first step. The others are spread over the work that
        # is done and not over seconds, so that they hit a busy machine's ranks where they hit a free one's.
        if self.chance.random() < 0.33:
            self.gangs.wait(gang, self.chance.uniform(0.0, 0.3))
            return
        steps = self.chance.randrange(self.steps_at_most)
        self.gangs.wait(gang, 20.0, until=lambda: gang.steps(self.folder) >= steps)
        self.gangs.wait(gang, self.chance.uniform(0.0, 0.06))

    def _killed(self, gang: Gang) -> None:
        first = gang.alive() if self.chance.random() < 0.75 else [self.chance.choice(gang.alive())]
        gang.signal(signal.SIGKILL, first)
        self.kills[gang.world] += 1
        self.seen["one rank first"] += len(first) < gang.world
        # Survivors see the loss, or go on for a while.
        self.gangs.wait(gang, self.chance.uniform(0.0, 0.15), everyone=True)
        self._end(gang)

    def _end(self, gang: Gang) -> None:
        gang.signal(signal.SIGKILL, gang.alive())
        self.gangs.wait(gang, LIMIT_SECONDS, everyone=True)

    def _ended_itself(self, gang: Gang) -> None:
        self.gangs.wait(gang, 1.0, everyone=True)
        self._end(gang)
        self.seen["ended by the store"] += 1
        if not gang.lost_the_store():
            self.wrong.append(f"{gang.name} ended with {sorted(gang.own_codes())}: {gang.errors(self.folder)}")

    def _wake(self, share: float) -> None:
        for zombie in [each for each in self._asleep if self.chance.random() < share]:
            self._asleep.remove(zombie)
            zombie.signal(signal.SIGCONT, zombie.alive())
            self.seen["zombies"] += 1

    def _judge(self, zombie: Gang) -> None:
        if zombie.alive():
            self.wrong.append(f"{zombie.name} woke up and still runs: {zombie.errors(self.folder)}")
            self._end(zombie)
        elif zombie.came_too_late(self.folder):
            self.seen["too late to restore"] += 1
        elif zombie.fenced(self.folder):
            self.seen["fenced"] += 1
        elif zombie.lost_the_store():
            self.seen["ended by the store"] += 1
        else:
            codes = sorted(zombie.own_codes())
            self.wrong.append(f"{zombie.name} woke up and ended with {codes}: {zombie.errors(self.folder)}")

    def _eventually(self, ask: Callable[[RunCommits], Answer]) -> Answer:
        while True:
            try:
                return ask(RunCommits(open_store(self.uri), "", "latest", 0))
            except StoreError:
                self.seen["supervisor asked again"] += 1
