"""Protocols that look right and are not. Each is driven by the same machine and judged by the same judge as ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from argosy.steps.checkpoint.log import CommitLog, Entry, LogWriter
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from tests.models.explorer import Judge, Objects, Promises
from tests.models.gangs import LOG, GatedLog, Log, claimed, entries, judge, one_chain
from tests.models.requests import GATE, AnsweringStore, Program, Told


class OverwritingLog(GatedLog):
    """The newest is what was written last: a plain put."""

    def create(self, entry: Entry) -> bool:
        self.asked.ask(GATE, "")
        self.store.put(f"{LOG}{entry.seq:010d}.json", entry.to_bytes())
        return True


class LeasedLog(GatedLog):
    """It looks whether the lease is still its own, and then writes."""

    owner = ""

    def create(self, entry: Entry) -> bool:
        if entry.kind == "claim":
            self.owner = entry.owner
            self.asked.ask(GATE, "")
            self.store.put("lease", self.owner.encode())
        self.asked.ask(GATE, "")
        if self.store.get("lease") != self.owner.encode():
            raise StepError(Cause.FENCED, "the lease is another's")
        self.asked.ask(GATE, "")
        self.store.put(f"{LOG}{entry.seq:010d}.json", entry.to_bytes())
        return True


class EagerWriter(LogWriter):
    """After a collision it looks where the tail is now, and goes on."""

    def append(self, **given: Any) -> Entry:
        generation = self.last.generation
        while True:
            try:
                return super().append(**given)
            except StepError:
                found = CommitLog.tail(self._log)
                assert found is not None
                self.last, self._ended = replace(found, generation=generation), None


class ForgettingWriter(LogWriter):
    """It deletes the entries that nobody needs any more: all before its own last."""

    def append(self, **given: Any) -> Entry:
        log: Any = self._log
        entry = super().append(**given)
        for seq in range(1, entry.seq):
            log.asked.ask(GATE, "")
            log.store.delete(f"{LOG}{seq:010d}.json")
        return entry


def appending(log_class: type[Log], writer_class: type[LogWriter]) -> Callable[[int, int], Program]:
    """A gang as ours, with another log or writer."""

    def gang(number: int, commits: int) -> Program:
        def run(store: AnsweringStore, told: Told, _since: Any) -> None:
            store.begin()
            log = log_class(store, told)
            # Histories are not merged: what a wrong writer's future depends on is not for us to say.
            log.told = Told(store, told.drawn)
            try:
                writer = writer_class(log, claimed(log, f"gang-{number}", told).last)
                for step in range(1, commits + 1):
                    digest = f"{number}{step}".ljust(64, "0")
                    entry = writer.append(
                        kind="commit", step=step, digest=digest, name="n", manifest="m", total_bytes=1
                    )
                    told.promise(entry.seq, entry.identity)
            except StepError:
                return

        return run

    return gang


def step_by_step(number: int, commits: int) -> Program:
    """One marker per step, created if absent: no claim, nothing names what came before. Gangs save at other steps."""

    def run(store: AnsweringStore, told: Told, _since: Any) -> None:
        store.begin()
        store.ask(GATE, "")
        last, entry = newest_step(store), None
        generation = (last.generation if last else 0) + 1
        for count in range(1, commits + 1):
            step = (last.seq if last else 0) + count * 2 + number % 2
            entry = Entry(
                seq=step, kind="commit", generation=generation, parent=(entry or last or NOTHING).identity,
                nonce=f"{number} {count}", created=1.0, step=step,
            )  # fmt: skip
            store.ask(GATE, "")
            if not store.put_if_absent(f"{LOG}{step:010d}.json", entry.to_bytes()):
                return
            entry = Entry.from_bytes(entry.to_bytes(), step)
            told.promise(step, entry.identity)

    return run


def newest_folder(number: int, commits: int) -> Program:
    """No commit at all: shards in a folder per step, and whoever resumes takes the highest number."""

    def run(store: AnsweringStore, told: Told, _since: Any) -> None:
        store.begin()
        store.ask(GATE, "")
        last, entry = newest_step(store), None
        generation = (last.generation if last else 0) + 1
        for count in range(1, commits + 1):
            step = (last.seq if last else 0) + count
            entry = Entry(
                seq=step, kind="commit", generation=generation, parent=(entry or last or NOTHING).identity,
                nonce=f"{number} {count}", created=1.0, step=step,
            )  # fmt: skip
            for shard in ("", ".shard-1"):
                store.ask(GATE, "")
                store.put(f"{'' if shard else LOG}{step:010d}.json{shard}", entry.to_bytes())
            entry = Entry.from_bytes(entry.to_bytes(), step)
            told.promise(step, entry.identity)

    return run


NOTHING = Entry(seq=0, kind="commit", generation=0, parent="", nonce="", created=0.0)


def newest_step(store: AnsweringStore) -> Entry | None:
    found = [int(info.key[len(LOG) :].removesuffix(".json")) for info in store.list(LOG)]
    return Entry.from_bytes(store.get(f"{LOG}{max(found):010d}.json"), max(found)) if found else None


def one_history(objects: Objects, promised: Promises) -> str:
    """For protocols that number by step: what lies there, in the order of steps, is one history and lacks nothing."""
    found = entries(objects)
    for before, entry in itertools.pairwise(found):
        if entry.parent != before.identity:
            return f"step {entry.seq} does not follow step {before.seq}: two histories in one"
    there = {entry.seq: entry.identity for entry in found}
    lost = [seq for seq, identity in promised if there.get(seq) != identity]
    return f"step {lost[0]} was acknowledged and is lost" if lost else ""


def chain_that_is_left(objects: Objects, promised: Promises) -> str:
    """For a protocol that deletes entries on purpose: only what is left must be one chain."""
    return one_chain(objects)


@dataclass(frozen=True)
class Wrong:
    """A wrong protocol, and what the judge holds it to."""

    gang: Callable[[int, int], Program]
    judge: Judge


WRONG = {
    "overwrite the newest": Wrong(appending(OverwritingLog, LogWriter), judge),
    "look for the tail again after a collision": Wrong(appending(GatedLog, EagerWriter), judge),
    "check the lease, then write": Wrong(appending(LeasedLog, LogWriter), judge),
    "delete old log entries": Wrong(appending(GatedLog, ForgettingWriter), chain_that_is_left),
    "create a marker per step": Wrong(step_by_step, one_history),
    "take the highest step folder": Wrong(newest_folder, one_history),
}
