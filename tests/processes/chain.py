"""Faults one after the other: each gang goes on from what the one before left, and the last one trains to an end."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract import env
from argosy.steps.pods import processes
from argosy.steps.store import open_store
from tests.exact.gang import Gang
from tests.processes.faults import KINDS, Victim
from tests.processes.holding import Hold
from tests.processes.lane import BEGIN, EVERY, PATIENCE, WORLD, Lane
from tests.processes.phases import GATES, hold_for, is_there
from tests.processes.survivors import judged, lines_of

TRIES = 4
KNOW_SECONDS = 9.0
"""After a crash every rank has to have ended by then: before the writers give up lingering, which is 10 s."""
HANG_SECONDS = 2.5
"""A gang that does nothing for so long is ended, as launch does with its own (longer) limit."""
LAG_SECONDS = 1
"""How long writers wait for the slowest of them, where one hangs."""


@dataclass
class Struck:
    """A gang and the fault it met."""

    gang: Gang
    rank: int
    at: float
    token: str
    hold: Hold | None
    step: int = 0
    """The last step that rank 0 had finished."""
    saving: int = 0
    """The last step whose save it had handed over."""
    newest: int = 0
    """The newest commit in the store when all its processes had ended."""
    late: bool = False
    """What it had sent is delivered after the next gang's claim."""


@dataclass
class Found:
    """What a chain found; ``wrong`` is what must not be."""

    cases: int = 0
    missed: int = 0
    knew: list[float] = field(default_factory=list)
    by_timeout: int = 0
    late: int = 0
    endings: dict[str, int] = field(default_factory=dict)
    lost_steps: int = 0
    acknowledged: int = 0
    lost: int = 0
    """Acknowledged commits that are not in the log."""
    resumed: int = 0
    """Gangs whose ranks all restored the newest commit, bit for bit."""
    wrong: list[str] = field(default_factory=list)


class Chain:
    """In ``lane``; everything random comes from ``seed``."""

    def __init__(self, lane: Lane, seed: str) -> None:
        self._lane = lane
        self._kind = self._phase = ""
        self._chance = random.Random(seed)
        self._before: Struck | None = None
        self.found = Found()

    def run(self, faults: Sequence[tuple[str, str, int]]) -> Found:
        """Strike with each of ``faults`` (kind, phase, rank), then train to an end."""
        self._lane.begin()
        for self._kind, self._phase, rank in faults:
            self._fault = KINDS[self._kind]
            for _ in range(TRIES):
                if self._strike(rank):
                    self.found.cases += 1
                    break
                self.found.missed += 1
            if self.found.wrong:
                break
        self._finish()
        return self.found

    # ---- one fault

    def _strike(self, rank: int) -> bool:
        number = self._chance.choice([1, 2])
        timeout = LAG_SECONDS if self._fault.hangs and self._fault.of_writer else 30
        gang, environ = self._start(
            timeout,
            prepare=self._fault.of_writer or self._chance.random() < 0.5,
            stop_at=self._phase if self._phase in GATES else "",
            stop_rank=rank,
            stop_number=number if self._phase != "between steps" else 3 + EVERY * (number - 1),
            number=number,
        )
        hold = self._hold
        victim = Victim(gang.name, rank, gang.pids[rank], self._lane.control, self._lane.holds)
        there = self._reached(gang, rank, hold) and not (self._fault.of_writer and not victim.writer())
        struck = Struck(gang, rank, time.monotonic(), environ[env.POD_TOKEN], hold)
        struck.step, struck.saving = self._said(gang, "step"), self._said(gang, "handed_over")
        if there:
            self._fault.strike(victim)
            struck.at = time.monotonic()
            self._go_on(struck, victim)
            self._wait(struck)
        self._end(struck)
        if there:
            judged(self._kind, self._phase, struck.rank, struck.at, gang, self._lane.folder, self.found)
        self._restored(gang, everyone=there and self._phase not in ("before restore", "in restore"))
        self._before = struck
        return there

    def _start(self, timeout: int, *, number: int, **stop: Any) -> tuple[Gang, dict[str, str]]:
        lane = self._lane
        name = f"{lane.bucket}c{lane.begun}g{len(lane.gangs.all)}"
        environ = lane.environ(name, timeout)
        self._claimed(environ)
        self._hold = hold_for(self._phase, name, stop.get("stop_rank", -1), number) if number else None
        if self._hold is not None:
            lane.holds.append(self._hold)
        end = self._expected + (6 * EVERY if number else EVERY + 2)  # a gang whose phase never comes ends
        return lane.start(name, environ, end, final=not number, **stop), environ

    def _claimed(self, environ: dict[str, str]) -> None:
        # What the old gang had sent arrives now: it must be refused, or mean nothing.
        commits, before = self._log("commit"), self._before
        self._expected = commits[-1]["step"]
        if before is not None and before.late and before.hold is not None:
            before.hold.end("go")
            self.found.late += 1
        lane = self._lane
        newest = lane.commits().newest()
        if newest is None or newest.digest != environ[env.RESUME_DIGEST] or newest.step != self._expected:
            self._wrong(f"resumes from {newest and newest.step}, the log's newest commit is of {self._expected}")

    def _reached(self, gang: Gang, rank: int, hold: Hold | None) -> bool:
        lane = self._lane

        def there() -> bool:
            if hold is None:
                return lane.control.waits_at(gang.name, rank) == self._phase
            return is_there(self._phase, hold, lane.server, lane.bucket, rank, WORLD)

        lane.gangs.wait(gang, PATIENCE, until=there)
        return there() and not gang.codes

    def _go_on(self, struck: Struck, victim: Victim) -> None:
        self._lane.control.tell(struck.gang.name, struck.rank, "go")
        if struck.hold is None:
            return
        who = struck.hold.held[0][0]
        # What is read in a restore is asked for by the rank itself, and its writer's end leaves that as it is.
        if self._fault.of_writer and who == (struck.gang.name, struck.rank) and self._phase != "in restore":
            verdict = self._chance.choice(["go", "drop", "late"])
            struck.late = verdict == "late"
            if verdict != "late":
                struck.hold.end(verdict)
        else:
            struck.hold.end("go")

    def _wait(self, struck: Struck) -> None:
        gangs, gang = self._lane.gangs, struck.gang
        if not self._fault.hangs:
            gangs.wait(gang, KNOW_SECONDS, everyone=True)
            return
        size, since = -1, time.monotonic()

        def idle() -> bool:
            nonlocal size, since
            now = sum(path.stat().st_size for path in self._lane.folder.glob(f"{gang.name}-*.lines")) + len(gang.codes)
            if now != size:
                size, since = now, time.monotonic()
            return time.monotonic() - since > HANG_SECONDS

        gangs.wait(gang, PATIENCE, everyone=True, until=idle)
        self.found.by_timeout += bool(gang.alive())

    def _end(self, struck: Struck) -> None:
        # As the end of a pod: SIGKILL for whatever carries its token; the ranks here are forks and have none.
        lane, gang = self._lane, struck.gang
        gang.signal(signal.SIGKILL, gang.alive())
        lane.gangs.wait(gang, PATIENCE, everyone=True)
        processes.kill_all(lambda: processes.carrying(env.POD_TOKEN, struck.token, whole=True))
        left = processes.carrying(env.POD_TOKEN, struck.token, whole=True)
        if left or gang.alive():
            self._wrong(f"{gang.name}: processes {sorted(left)} are left")
        for hold in lane.holds:
            if hold is not struck.hold or not struck.late:
                hold.end("drop")
        lane.holds.clear()
        lane.control.forget(gang.name)
        struck.newest = self._log("commit")[-1]["step"]

    # ---- what is left

    def _restored(self, gang: Gang, *, everyone: bool) -> None:
        """The gang's ranks restored the newest commit of the gangs before, bit for bit."""
        told = [line for rank in range(WORLD) for line in lines_of(self._lane.folder, gang, rank) if "restored" in line]
        expected = self._lane.truth[self._expected]
        if any((line["restored"], line["digest"]) != (self._expected, expected) for line in told):
            self._wrong(f"{gang.name} restored {[line['restored'] for line in told]}, not step {self._expected}'s bits")
        if everyone and len(told) != WORLD:
            self._wrong(f"{gang.name}: {len(told)} of {WORLD} ranks restored")
        self.found.resumed += len(told) == WORLD
        before = self._before
        if before is not None and before.saving - self._expected > EVERY:
            self._wrong(
                f"save of step {before.saving} was handed over, resumed from {self._expected}: two intervals are lost"
            )
        if before is not None:
            self.found.lost_steps = max(self.found.lost_steps, before.step - self._expected)
        for rank in range(WORLD):
            said = [line["acknowledged"] for line in lines_of(self._lane.folder, gang, rank) if "acknowledged" in line]
            self.found.acknowledged += len(said)
            lost = set(said) - {entry["step"] for entry in self._log("commit")}
            self.found.lost += len(lost)
            if lost:
                self._wrong(f"{gang.name}: steps {sorted(lost)} were acknowledged and are not in the log")

    def _finish(self) -> None:
        gang, environ = self._start(30, number=0)
        self._lane.gangs.wait(gang, PATIENCE, everyone=True)
        if gang.own_codes() != {0}:
            self._wrong(f"the last gang ended with {sorted(gang.codes.values())}: {gang.errors(self._lane.folder)}")
        struck = Struck(gang, 0, time.monotonic(), environ[env.POD_TOKEN], None)
        for pid in processes.carrying(env.POD_TOKEN, struck.token, whole=True):
            self._wrong(f"the last gang left process {pid}")
        self._end(struck)
        self._restored(gang, everyone=True)
        store = CheckpointStore(open_store(self._lane.uri), "")
        newest = store.newest()
        if newest is None or not newest.final or newest.step != self._expected + EVERY + 2:
            self._wrong(f"the final checkpoint is {newest and newest.step}")
        for checkpoint in store.commits():
            store.verify(checkpoint)
        self._one_chain()

    def _one_chain(self) -> None:
        generations = [entry["generation"] for entry in self._log("")]
        steps = [entry["step"] for entry in self._log("commit")]
        if generations != sorted(generations):
            self._wrong(f"an older gang wrote after a newer claim: generations {generations}")
        if steps != sorted(set(steps)) or steps[1] < BEGIN:
            self._wrong(f"commits go back: {steps}")

    def _log(self, kind: str) -> list[dict[str, Any]]:
        # Read from the bucket's own memory, not with the code under test.
        objects = dict(self._lane.server.buckets[self._lane.bucket].objects)
        entries = [json.loads(objects[key].data) for key in sorted(objects) if key.startswith("run/log/")]
        return [entry for entry in entries if not kind or entry["kind"] == kind]

    def _said(self, gang: Gang, what: str) -> int:
        return max([line[what] for line in lines_of(self._lane.folder, gang, 0) if what in line], default=0)

    def _wrong(self, what: str) -> None:
        self.found.wrong.append(f"{self._kind}, {self._phase}: {what}")
