"""Pins: an acknowledged one never loses against a prune, at whatever instant the two meet."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore, Claim
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectStore, open_store


def save(checkpoints: CheckpointStore, claim: Claim, step: int, *, final: bool = False) -> str:
    name = checkpoints.new_save(claim, step)
    part = checkpoints.part(name, 0)
    part.add_bytes("state", b"%d" % step * 10)
    refs = [part.finish()]
    return checkpoints.commit(claim, name, step, refs, kind="tensors", world_size=1, final=final).digest


def run_of(store: Any, steps: int) -> tuple[CheckpointStore, Claim, list[str]]:
    checkpoints = CheckpointStore(store, "run")
    claim = checkpoints.claim("test")
    return checkpoints, claim, [save(checkpoints, claim, step) for step in range(1, steps + 1)]


def steps_of(checkpoints: CheckpointStore) -> list[int]:
    """What can be restored; each is verified to the byte."""
    found = checkpoints.commits()
    for checkpoint in found:
        checkpoints.verify(checkpoint)
    return [checkpoint.step for checkpoint in found]


def test_a_pin_keeps_a_checkpoint_until_it_is_removed(inner: ObjectStore) -> None:
    checkpoints, claim, made = run_of(inner, 6)
    checkpoints.pin(made[1], "paper, table 2")
    checkpoints.pin(made[1], "and table 3")
    assert checkpoints.pinned() == {made[1]: "and table 3"}
    assert checkpoints.prune(2, claim) == [made[3], made[2], made[0]]
    assert steps_of(checkpoints) == [2, 5, 6]
    # Another gang's prune, later, respects it too.
    newer = CheckpointStore(inner, "run")
    other = newer.claim("later")
    save(newer, other, 7)
    assert newer.prune(1, other) == [made[5], made[4]]
    assert steps_of(newer) == [2, 7]
    assert newer.unpin(made[1])
    assert not newer.unpin(made[1])
    assert newer.pinned() == {}
    assert newer.prune(1, other) == [made[1]]
    assert steps_of(newer) == [7]
    assert {info.key.split("/")[2] for info in inner.list("run/data")} == {newer.commits()[0].name}


def test_what_cannot_be_pinned_says_so_and_leaves_nothing(inner: ObjectStore) -> None:
    checkpoints, claim, made = run_of(inner, 3)
    checkpoints.prune(1, claim)
    for digest in (made[0], "0" * 64):
        with pytest.raises(StepError) as caught:
            checkpoints.pin(digest, "too late")
        assert caught.value.cause == Cause.CHECKPOINT_MISMATCH
    assert list(inner.list("run/pins")) == []


def test_objects_that_are_no_pins_are_ignored(inner: ObjectStore) -> None:
    checkpoints, claim, made = run_of(inner, 3)
    inner.put("run/pins/notes.txt", b"mine")
    inner.put(f"run/pins/{made[0]}.json", b"{}")
    checkpoints.pin(made[1], "real")
    key = next(info.key for info in inner.list(f"run/pins/{made[1]}"))
    inner.put(key, b"torn {")
    assert checkpoints.pinned() == {made[1]: "unreadable record"}
    # A record that cannot be read is a pin all the same: its key says all that is needed.
    assert checkpoints.prune(1, claim) == [made[0]]
    assert steps_of(checkpoints) == [2, 3]


class Paused:
    """A store whose user waits before each operation until it is let on."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner, self.uri = inner, inner.uri
        self.log: list[str] = []
        self._go, self._arrived = threading.Semaphore(0), threading.Semaphore(0)
        self.ended = False

    def __getattr__(self, verb: str) -> Any:
        def call(key: str, *rest: Any) -> Any:
            self._arrived.release()
            self._go.acquire()
            self.log.append(f"{verb} {key}")
            result = getattr(self._inner, verb)(key, *rest)
            return iter(list(result)) if isinstance(result, Iterator) else result

        return call

    def start(self, body: Callable[[], Any]) -> None:
        """Run the body in a thread up to its first operation."""

        def run() -> None:
            try:
                self.result = body()
            except StepError as error:
                self.result = error
            self.ended = True
            self._arrived.release()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        self._arrived.acquire()

    def step(self) -> None:
        """One operation."""
        if not self.ended:
            self._go.release()
            self._arrived.acquire()

    def finish(self) -> Any:
        while not self.ended:
            self.step()
        self._thread.join()
        return self.result


def meet(folder: Path, before: int, between: int) -> tuple[bool, int, int]:
    """A prune meets a pin: the pin is put before operation ``before`` of the prune, the rest ``between`` later.

    Returns whether the pin was acknowledged, and the operations of prune and pin.
    """
    inner = open_store(f"file://{folder}")
    pruning, pinning = Paused(inner), Paused(inner)
    gang, claim, made = run_of(inner, 3)
    gang.store = gang._pins._store = gang.log.store = gang.reader._store = pruning  # type: ignore[assignment]
    pruning.start(lambda: gang.prune(1, claim))
    pinning.start(lambda: CheckpointStore(pinning, "run").pin(made[1], "mine"))  # type: ignore[arg-type]
    for _ in range(before):
        pruning.step()
    while not pinning.ended and not any(line.startswith("put run/pins") for line in pinning.log):
        pinning.step()
    for _ in range(between):
        pruning.step()
    answer = pinning.finish()
    gone = pruning.finish()
    acknowledged = not isinstance(answer, StepError)

    reader = CheckpointStore(inner, "run")
    assert steps_of(reader)[-1] == 3
    assert made[0] in gone
    assert not (made[1] in gone and acknowledged)
    assert steps_of(reader) == ([2, 3] if acknowledged else [3])
    assert reader.pinned() == ({made[1]: "mine"} if acknowledged else {})
    next_claim = reader.claim("next")
    save(reader, next_claim, 4)
    reader.prune(1, next_claim)
    assert steps_of(reader) == ([2, 4] if acknowledged else [4])
    assert {info.key.split("/")[2] for info in inner.list("run/data")} == {item.name for item in reader.commits()}
    shutil.rmtree(folder)
    return acknowledged, len(pruning.log), len(pinning.log)


def test_a_pin_and_a_prune_at_every_instant(memory_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, operations, _ = meet(memory_path / "case", 0, 0)
    assert operations > 15
    answers = []
    for before in range(operations + 1):
        for between in range(operations + 1 - before):
            answers.append(meet(memory_path / "case", before, between)[0])
    assert set(answers) == {True, False}
    with capsys.disabled():
        print(f"[{len(answers)} meetings of a pin and a prune, {sum(answers)} acknowledged]", end=" ")
