"""Two gangs on one log, in every order: no fork, no lost commit; and bad protocols are caught by the same check."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint.entry import following
from argosy.steps.checkpoint.log import CommitLog, Entry, LogWriter
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import StoreError
from argosy.steps.store.cloud import CloudStore
from tests.launch.committing import committed_folder

COMMITS = 3


class Turns:
    """Lets one gang at a time do one step (a look at the tail, or one append), in the order of a schedule."""

    def __init__(self, gangs: int) -> None:
        self._go = [threading.Semaphore(0) for _ in range(gangs)]
        self._at_gate = [threading.Semaphore(0) for _ in range(gangs)]
        self.done = [False] * gangs

    def gate(self, gang: int) -> None:
        self._at_gate[gang].release()
        self._go[gang].acquire()

    def finished(self, gang: int) -> None:
        self.done[gang] = True
        self._at_gate[gang].release()

    def arrived(self, gang: int) -> None:
        self._at_gate[gang].acquire()

    def step(self, gang: int) -> None:
        self._go[gang].release()
        self.arrived(gang)


class GatedLog(CommitLog):
    """The real log; each decisive operation waits for its turn, and the answer of one append may be lost."""

    def __init__(self, store: Any, turns: Turns, gang: int, lost: int, protocol: str) -> None:
        super().__init__(store, "run")
        self._turns, self._gang, self._lost, self._appends = turns, gang, lost, 0
        self._protocol = protocol

    def tail(self) -> Entry | None:
        self._turns.gate(self._gang)
        return super().tail()

    def create(self, entry: Entry) -> bool:
        self._turns.gate(self._gang)
        if self._protocol == "overwrite":
            self.store.put(f"run/log/{entry.seq:010d}.json", entry.to_bytes())
            created = True
        else:
            created = super().create(entry)
        self._appends += 1
        if self._appends == self._lost:
            raise StoreError(Cause.S3_THROTTLE, "answer lost")
        return created


class ReReadingWriter(LogWriter):
    """The bad protocol that notes warn of: after a collision it looks where the tail is now and goes on."""

    def append(self, **given: Any) -> Entry:
        while True:
            entry = following(self.last, generation=self._mine, **given)
            if self._log.create(entry):
                self.last = entry
                return entry
            found = CommitLog.tail(self._log)
            assert found is not None
            self.last = found

    _mine = 0


def gang(log: GatedLog, turns: Turns, number: int, protocol: str, acknowledged: list[tuple[int, int]]) -> None:
    try:
        claim = log.claim(f"gang-{number}")
        writer = log.writer(claim)
        if protocol == "re-read":
            rereading = ReReadingWriter(log, writer.last)
            rereading._mine = claim.generation
            writer = rereading
        for step in range(1, COMMITS + 1):
            digest = f"{number}{step}".ljust(64, "0")
            entry = writer.append(kind="commit", step=step, digest=digest, name="n", manifest="m", total_bytes=1)
            acknowledged.append((claim.generation, entry.seq))
    except StepError:
        pass
    finally:
        turns.finished(number)


def play(choices: list[int], lost: tuple[int, int], protocol: str) -> tuple[list[list[int]], bool]:
    """One run: ``choices`` first, then always the first gang that can. Returns what could be chosen at each point,
    and whether the promise broke."""
    from obstore.store import MemoryStore

    store = CloudStore("s3://memory")
    store._opened = MemoryStore()
    turns = Turns(2)
    acknowledged: list[tuple[int, int]] = []
    logs = [GatedLog(store, turns, number, lost[number], protocol) for number in range(2)]
    threads = [
        threading.Thread(target=gang, args=(logs[number], turns, number, protocol, acknowledged), daemon=True)
        for number in range(2)
    ]
    for number, thread in enumerate(threads):
        thread.start()
        turns.arrived(number)
    options: list[list[int]] = []
    while not all(turns.done):
        able = [number for number in range(2) if not turns.done[number]]
        chosen = choices[len(options)] if len(options) < len(choices) else able[0]
        options.append(able)
        turns.step(chosen)
    for thread in threads:
        thread.join()
    return options, broken(CommitLog(store, "run"), acknowledged)


def broken(log: CommitLog, acknowledged: list[tuple[int, int]]) -> bool:
    try:
        entries = log.entries()
    except StepError:
        return True
    generations = [entry.generation for entry in entries]
    there = {(entry.generation, entry.seq) for entry in entries if entry.kind == "commit"}
    return generations != sorted(generations) or not set(acknowledged) <= there


def schedules(lost: tuple[int, int], protocol: str) -> Iterator[bool]:
    """Every order, by depth-first search over what can be chosen."""
    todo: list[list[int]] = [[]]
    while todo:
        choices = todo.pop()
        options, bad = play(choices, lost, protocol)
        yield bad
        for point in range(len(choices), len(options)):
            done = choices + [options[at][0] for at in range(len(choices), point)]
            todo.extend([*done, other] for other in options[point][1:])


def count(protocol: str, losses: list[tuple[int, int]]) -> tuple[int, int]:
    results = [bad for lost in losses for bad in schedules(lost, protocol)]
    return len(results), sum(results)


def test_every_order_of_two_gangs(capsys: pytest.CaptureFixture[str]) -> None:
    total, forks = count("ours", [(0, 0)])
    assert total == 366
    assert forks == 0
    lossy, forks = count("ours", [(2, 0), (3, 0), (0, 4), (1, 0), (1, 2)])
    assert forks == 0
    with capsys.disabled():
        print(f"[{total} schedules, {lossy} with lost answers, 0 forks]", end=" ")


@pytest.mark.parametrize("protocol", ["re-read", "overwrite"])
def test_bad_protocols_are_caught(protocol: str) -> None:
    bad = 0
    for checked, broke in enumerate(schedules((0, 0), protocol)):
        bad += broke
        if bad > 10 or checked > 3000:
            break
    assert bad > 10


def test_a_fenced_gang_knows_by_whom(tmp_path: Path, faulty: Callable[..., Any]) -> None:
    from argosy.steps.checkpoint import CheckpointStore
    from argosy.steps.store import open_store

    store = open_store(f"file://{tmp_path}")
    old, new = CheckpointStore(store, "run"), CheckpointStore(store, "run")
    zombie = old.claim("old gang")
    current = new.claim("new gang")
    assert current.generation == zombie.generation + 1
    name = old.new_save(zombie, 5)
    part = old.part(name, 0)
    part.add_bytes("x", b"1")
    for _ in range(2):
        with pytest.raises(StepError, match="new gang") as caught:
            old.commit(zombie, name, 5, [part.finish()], kind="files", world_size=1, final=False)
        assert caught.value.cause is Cause.FENCED
        assert caught.value.code == 73
    with pytest.raises(StepError) as caught:
        old.prune(1, zombie)
    assert new.newest() is None
    assert new.commits() == []


def test_a_fenced_gang_deletes_nothing(tmp_path: Path) -> None:
    from argosy.steps.checkpoint import CheckpointStore
    from argosy.steps.store import open_store

    store = open_store(f"file://{tmp_path}")
    old, new = CheckpointStore(store, "run"), CheckpointStore(store, "run")
    zombie = old.claim("old")
    (tmp_path / "f").mkdir()
    for step in (1, 2, 3):
        (tmp_path / "f" / "x").write_bytes(b"%d" % step)
        import os

        os.utime(tmp_path / "f" / "x", (1, step))
        committed_folder(old, zombie, step, tmp_path / "f", ["x"])
    new.claim("new")
    before = {info.key for info in store.list("run")}
    with pytest.raises(StepError) as caught:
        old.prune(1, zombie)
    assert caught.value.cause is Cause.FENCED
    assert {info.key for info in store.list("run")} == before


def test_the_tail_costs_the_same_after_a_long_history(tmp_path: Path, faulty: Callable[..., Any]) -> None:
    from argosy.steps.store import open_store

    inner = open_store(f"file://{tmp_path}")
    log = CommitLog(inner, "run")
    writer = log.writer(log.claim("g"))
    costs = []
    for step in range(1, 200):
        writer.append(kind="commit", step=step, digest="0" * 64, name="n", manifest="m", total_bytes=1)
        if step in (20, 100, 199):
            counted = faulty(inner)
            tail = CommitLog(counted, "run").tail()
            assert tail is not None
            assert tail.seq == step + 1
            costs.append(len(counted.operations))
    assert max(costs) <= 12
    for lie in (b'{"seq": 7}', b'{"seq": 100000}', b'{"seq": -3}', b'{"seq": "x"}', b"garbage", b"[]"):
        inner.put("run/log-hint.json", lie)
        tail = log.tail()
        assert tail is not None
        assert tail.seq == 200
