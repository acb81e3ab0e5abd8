"""The commit log and the checkpoint store hold on S3 as they do on a folder."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from argosy.steps.checkpoint import CheckpointStore, CorruptCheckpoint
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectStore, open_store


@pytest.mark.parametrize("prefix", ["", "name/runs/run-1"])
def test_save_verify_fetch_quarantine_prune(store: ObjectStore, tmp_path: Path, prefix: str) -> None:
    checkpoints = CheckpointStore(store, prefix)
    assert checkpoints.newest() is None
    claim = checkpoints.claim("gang-1")
    made = []
    for step in (10, 20, 30):
        name = checkpoints.new_save(claim, step)
        refs = []
        for writer in range(3):
            part = checkpoints.part(name, writer)
            part.add_bytes(f"rank-{writer}/data", b"%d" % step * 1000)
            refs.append(part.finish())
        made.append(checkpoints.commit(claim, name, step, refs, kind="tensors", world_size=3, final=False))
    newest = CheckpointStore(open_store(store.uri), prefix).newest()
    assert newest is not None
    assert (newest.step, newest.digest, len(newest.files)) == (30, made[-1].digest, 3)
    checkpoints.verify(newest)
    checkpoints.fetch(newest, tmp_path / "out")
    assert (tmp_path / "out/rank-2/data").read_bytes() == b"30" * 1000
    assert checkpoints.prune(2) == [made[0].digest]
    assert [found.step for found in checkpoints.commits()] == [20, 30]
    key = newest.files[1].key if not prefix else f"{prefix}/{newest.files[1].key}"
    data = bytearray(store.get(key))
    data[5] ^= 1
    store.put(key, bytes(data))
    for read in (lambda: checkpoints.verify(newest), lambda: checkpoints.fetch(newest, tmp_path / "bad")):
        with pytest.raises(CorruptCheckpoint):
            read()
    checkpoints.quarantine(newest.digest, "flipped")
    before = checkpoints.newest()
    assert before is not None
    assert before.step == 20


def test_of_eight_claimants_each_has_its_own_generation(store: ObjectStore) -> None:
    claims, errors = [], []

    def claim() -> None:
        try:
            claims.append(CheckpointStore(open_store(store.uri), "run").claim("racer"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(claim.generation for claim in claims) == list(range(1, 9))
    log = CheckpointStore(store, "run").log
    assert [entry.generation for entry in log.entries()] == list(range(1, 9))
    for claim_made in claims:
        if claim_made.generation < 8:
            writer = log.writer(claim_made)
            with pytest.raises(StepError) as caught:
                writer.append(kind="commit", step=1, digest="0" * 64, name="n", manifest="m", total_bytes=0)
            assert caught.value.cause is Cause.FENCED
