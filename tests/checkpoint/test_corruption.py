"""Every kind of damage to every object of a checkpoint is found before a byte of it is used."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.steps.checkpoint import CheckpointStore, CorruptCheckpoint
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectStore, open_store


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


def damages(data: bytes, others: list[bytes], seed: random.Random) -> Iterator[tuple[str, bytes | None]]:
    for at in sorted({0, 1, len(data) // 2, len(data) - 2, len(data) - 1, *seed.sample(range(len(data)), 12)}):
        flipped = bytearray(data)
        flipped[at] ^= 1 << seed.randrange(8)
        yield f"flip at {at}", bytes(flipped)
    for cut in (0, 1, len(data) // 2, len(data) - 1):
        yield f"cut to {cut}", data[:cut]
    start = seed.randrange(len(data) - 16)
    yield "zeroed", data[:start] + b"\0" * 16 + data[start + 16 :]
    yield "longer", data + b"\n"
    yield "twice", data + data
    yield "missing", None
    for other in others:
        if other != data:
            yield "swapped", other


def noticed(checkpoints: CheckpointStore, digest: str, into: Path) -> bool:
    """The reader either walks past it or names it when it reads it; never hands it out."""
    try:
        found = checkpoints.newest()
    except StepError as error:
        return error.cause is Cause.CHECKPOINT_CORRUPT and error.code == 77
    if found is None or found.digest != digest:
        return True
    for read in (lambda: checkpoints.verify(found), lambda: checkpoints.fetch(found, into)):
        with pytest.raises(CorruptCheckpoint) as caught:
            read()
        assert (caught.value.digest, caught.value.code) == (digest, 72)
        assert str(caught.value) == f"checkpoint_corrupt digest={digest} shard={caught.value.shard}"
    return True


def test_every_damage_is_found(memory_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = random.Random(20261121)
    store = open_store(f"file://{memory_path}/store")
    _, newest = committed(store)
    checkpoints = CheckpointStore(store, "run")
    whole = checkpoints.by_digest(newest)
    checkpoints.fetch(whole, memory_path / "out")
    cases = 0
    everything = {info.key: store.get(info.key) for info in store.list("run")}
    mine = [key for key in everything if whole.name in key or newest in key]
    assert len(mine) == 5
    for key in mine:
        others = [everything[other] for other in everything if other != key]
        for what, data in damages(everything[key], others, seed):
            store.delete(key) if data is None else store.put(key, data)
            assert noticed(checkpoints, newest, memory_path / "out"), f"{what} in {key}"
            cases += 1
        store.put(key, everything[key])
    checkpoints.verify(whole)
    with capsys.disabled():
        print(f"[{cases} damages, all found; seed 20261121]", end=" ")


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
