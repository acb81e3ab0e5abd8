"""What a gang does with its store, in a few dozen requests each; every workload ends by itself when it is fenced."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.steps.checkpoint import CheckpointStore, CorruptCheckpoint
from argosy.steps.checkpoint.log import Claim
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.launch.whole_files import facts
from argosy.steps.store import ObjectStore
from tests.crash.oracle import KEEP, RUN, History, save
from tests.launch.committing import commit_folder

Step = Callable[[Any, History, Path], None]


@dataclass(frozen=True)
class Workload:
    """``before`` runs undisturbed and once; ``run`` is what is struck, on a copy of what ``before`` left."""

    name: str
    before: Step
    run: Step


def nothing(store: ObjectStore, history: History, folder: Path) -> None:
    """An empty store."""


def claimed(checkpoints: CheckpointStore, history: History, owner: str = "gang") -> Claim:
    """A claim, noted."""
    claim = checkpoints.claim(owner)
    history.claims.append(claim)
    return claim


def saves(store: ObjectStore, history: History, folder: Path) -> None:
    """Claim, three saves of two writers, each followed by a prune."""
    checkpoints = CheckpointStore(store, RUN)
    claim = claimed(checkpoints, history)
    for step in (10, 20, 30):
        save(checkpoints, claim, step, history)
        checkpoints.prune(KEEP, claim)


def long_history(store: ObjectStore, history: History, folder: Path) -> None:
    """Thirteen entries, so that the hint is written soon, and commits to prune."""
    checkpoints = CheckpointStore(store, RUN)
    for _ in range(8):
        claimed(checkpoints, history, "restarted")
    four_saves(store, history, folder)


def four_saves(store: ObjectStore, history: History, folder: Path) -> None:
    """One writer each, nothing pruned."""
    checkpoints = CheckpointStore(store, RUN)
    claim = claimed(checkpoints, history, "first")
    for step in (1, 2, 3, 4):
        save(checkpoints, claim, step, history, writers=1)


def opaque(store: ObjectStore, history: History, folder: Path) -> None:
    """A script's folder, committed twice, pruned."""
    checkpoints = CheckpointStore(store, RUN)
    claim = claimed(checkpoints, history)
    for step in (5, 6, 7):
        files = {"model.bin": b"m%d" % step * 20, "trainer/state.json": b"{}", "empty": b""}
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
            # Older than what counts as just modified.
            os.utime(folder / path, (time.time() - 60, time.time() - 60))
        name = checkpoints.new_save(claim, step)
        history.saves[name] = files
        saved = commit_folder(checkpoints, claim, name, step, folder, facts(folder, files), final=False)
        history.acknowledged.append(saved.digest)
        checkpoints.prune(KEEP, claim)


def damaged_newest(store: ObjectStore, history: History, folder: Path) -> None:
    """Four commits; a shard of the newest is spoilt, and the manifest of the one before."""
    checkpoints = CheckpointStore(store, RUN)
    claim = claimed(checkpoints, history)
    for step in (1, 2, 3, 4):
        save(checkpoints, claim, step, history)
    *_, third, fourth = checkpoints.commits()
    shard = f"{RUN}/{fourth.files[1].key}"
    store.put(shard, bytes(len(store.get(shard))))
    store.put(f"{RUN}/data/{third.name}/parts/000000.json", b"{}")
    history.damaged |= {third.digest, fourth.digest}


def walk_back(store: ObjectStore, history: History, folder: Path) -> None:
    """Resume: the newest is corrupt, is set aside, the one before too; the second is fetched, and training goes on."""
    checkpoints = CheckpointStore(store, RUN)
    claim = claimed(checkpoints, history, "resumed")
    while (found := checkpoints.newest()) is not None:
        try:
            checkpoints.fetch(found, folder / "restored")
            break
        except CorruptCheckpoint as error:
            checkpoints.quarantine(error.digest, str(error))
    assert found is not None
    assert {file.path: (folder / "restored" / file.path).read_bytes() for file in found.files} == (
        history.saves[found.name]
    )
    for step in (3, 4):
        save(checkpoints, claim, step, history)
        checkpoints.prune(KEEP, claim)


def pins(store: ObjectStore, history: History, folder: Path) -> None:
    """Pin an old one, prune it away but for the pin, unpin it, prune again."""
    checkpoints = CheckpointStore(store, RUN)
    claim = claimed(checkpoints, history, "pins")
    oldest, second = history.acknowledged[0], history.acknowledged[1]
    for digest in (oldest, second):
        checkpoints.pin(digest, "kept for the paper")
        history.pinned.add(digest)
    save(checkpoints, claim, 11, history)
    checkpoints.prune(KEEP, claim)
    history.pinned.discard(oldest)
    checkpoints.unpin(oldest)
    save(checkpoints, claim, 12, history)
    checkpoints.prune(KEEP, claim)


BIG = (8 << 20) + 1000


def in_parts(store: ObjectStore, history: History, folder: Path) -> None:
    """A shard so large that it is uploaded in parts."""
    checkpoints = CheckpointStore(store, RUN)
    claim = claimed(checkpoints, history)
    for step in (1, 2):
        name = checkpoints.new_save(claim, step)
        data = bytes([step]) * BIG
        history.saves[name] = {"big.bin": data}
        part = checkpoints.part(name, 0)
        part.add_file("big.bin", memoryview(data))
        saved = checkpoints.commit(claim, name, step, [part.finish()], kind="files", world_size=1, final=False)
        history.acknowledged.append(saved.digest)
    checkpoints.prune(KEEP, claim)


def dead_gang(at: int) -> Step:
    """A first gang that died behind operation ``at`` of its saves."""

    def before(store: ObjectStore, history: History, folder: Path) -> None:
        from tests.crash.striking import FaultyStore, Killed

        first: Any = FaultyStore(store, at, "kill-after")
        try:
            saves(first, history, folder)
        except Killed:
            return
        raise AssertionError(f"the first gang has no operation {at}")

    return before


def second_gang(store: ObjectStore, history: History, folder: Path) -> None:
    """The gang after the dead one."""
    checkpoints = CheckpointStore(store, RUN)
    claim = claimed(checkpoints, history, "second")
    for step in (100, 110):
        save(checkpoints, claim, step, history)
        checkpoints.prune(KEEP, claim)


def zombie(store: ObjectStore, history: History, folder: Path) -> None:
    """A second gang claims while the first is between its shards and its commit: the first must learn it."""
    old, new = CheckpointStore(store, RUN), CheckpointStore(store, RUN)
    first = claimed(old, history, "old")
    save(old, first, 10, history)
    name = old.new_save(first, 20)
    history.saves[name] = {"rank-0.bin": b"late"}
    part = old.part(name, 0)
    part.add_bytes("rank-0.bin", b"late")
    second = claimed(new, history, "new")
    save(new, second, 15, history)
    try:
        saved = old.commit(first, name, 20, [part.finish()], kind="tensors", world_size=1, final=False)
    except StepError as error:
        if error.cause is not Cause.FENCED:
            raise
    else:
        raise AssertionError(f"a fenced gang committed {saved}")
    new.prune(KEEP, second)
    save(new, second, 30, history)


SAVES = Workload("saves", nothing, saves)
HISTORY = Workload("long history", long_history, second_gang)
OPAQUE = Workload("opaque", nothing, opaque)
WALK_BACK = Workload("walk back", damaged_newest, walk_back)
PINS = Workload("pins", four_saves, pins)
IN_PARTS = Workload("in parts", nothing, in_parts)
ZOMBIE = Workload("zombie", nothing, zombie)
DEAD = [Workload(f"after a gang that died at {at}", dead_gang(at), second_gang) for at in (6, 13, 20, 33, 40)]
