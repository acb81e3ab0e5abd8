"""Every kind of damage to every object of a checkpoint is found before a byte of it is used."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from argosy.steps.checkpoint import CheckpointStore, CorruptCheckpoint
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectStore
from tests.crash.corruptions import Sweep


def committed(store: ObjectStore) -> list[str]:
    checkpoints = CheckpointStore(store, "run")
    claim = checkpoints.claim("gang")
    digests = []
    for step in (1, 2):
        name = checkpoints.new_save(claim, step)
        refs = []
        for writer in range(2):
            part = checkpoints.part(name, writer)
            part.add_bytes(f"w{writer}.bin", random.Random(step * 10 + writer).randbytes(300))
            refs.append(part.finish())
        saved = checkpoints.commit(claim, name, step, refs, kind="files", world_size=2, final=False)
        digests.append(saved.digest)
    return digests


def test_every_damage_is_found(memory_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample; 1,000 and more: ``make prove SUITE=corruptions``."""
    seed, count = 20261121, 200
    sweep = Sweep(memory_path)
    told = Counter(sweep.judge(case) for case in sweep.corruptions(count, seed))
    with capsys.disabled():
        print(f"[{count} corruptions, seed {seed}: {dict(told)}]", end=" ")
    assert told["walked back"] > count / 4
    assert told["refused"] > 0


def test_a_corrupt_one_is_set_aside_and_the_one_before_is_next(inner: ObjectStore, tmp_path: Path) -> None:
    first, second = committed(inner)
    checkpoints = CheckpointStore(inner, "run")
    newest = checkpoints.newest()
    assert newest is not None
    inner.put(f"run/{newest.files[1].key}", b"bad")
    with pytest.raises(CorruptCheckpoint):
        checkpoints.verify(newest)
    checkpoints.quarantine(second, "flipped")
    checkpoints.quarantine(second, "later reason")
    assert checkpoints.quarantined() == {second: "flipped"}
    before = checkpoints.newest()
    assert before is not None
    assert before.digest == first
    assert checkpoints.newest(skip={first}) is None
    # The evidence stays, and the last good one is not pruned because of it.
    claim = checkpoints.claim("next")
    assert checkpoints.prune(1, claim) == []
    assert checkpoints.newest() == before
    assert inner.get(f"run/{newest.files[1].key}") == b"bad"


def test_what_was_never_committed_is_nothing(inner: ObjectStore) -> None:
    """The root is written, the entry is not: the digest cannot be had."""
    checkpoints = CheckpointStore(inner, "run")
    claim = checkpoints.claim("gang")
    name = checkpoints.new_save(claim, 1)
    part = checkpoints.part(name, 0)
    part.add_bytes("x", b"1")
    CheckpointStore(inner, "run").claim("newer")
    with pytest.raises(StepError):
        checkpoints.commit(claim, name, 1, [part.finish()], kind="files", world_size=1, final=False)
    (root,) = inner.list("run/manifests")
    digest = root.key.rsplit("/", 1)[-1].removesuffix(".json")
    with pytest.raises(StepError, match="never committed") as caught:
        checkpoints.by_digest(digest)
    assert caught.value.cause is Cause.CHECKPOINT_MISMATCH
    with pytest.raises(StepError, match="no checkpoint") as caught:
        checkpoints.by_digest("0" * 64)
    assert caught.value.cause is Cause.CHECKPOINT_MISMATCH


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "a//b", "a\\b", ""])
def test_no_manifest_writes_outside_its_folder(inner: ObjectStore, path: str) -> None:
    from argosy.steps.checkpoint.manifest import Part

    raw = b'{"format":"argosy.checkpoint.part/1","writer":0,"files":[{"path":%s,"key":"k","size":1,"sha256":"%s"}]}'
    import json

    with pytest.raises(ValueError, match="leave its folder"):
        Part.from_bytes(raw % (json.dumps(path).encode(), b"0" * 64))
