"""Small lies in the log and in manifests, each refused by the one check that sees it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore, Claim, CorruptCheckpoint
from argosy.steps.checkpoint.manifest import sha256
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectStore


@pytest.fixture
def checkpoints(inner: ObjectStore) -> CheckpointStore:
    """Log: claim, commit of step 1, commit of step 2."""
    made = CheckpointStore(inner, "")
    claim = made.claim("test")
    for step in (1, 2):
        name = made.new_save(claim, step)
        part = made.part(name, 0)
        part.add_bytes("state", b"%d" % step * 10)
        made.commit(claim, name, step, [part.finish()], kind="tensors", world_size=1, final=False)
    return CheckpointStore(inner, "")


def rewritten(store: ObjectStore, seq: int, change: Callable[[dict[str, Any]], Any]) -> None:
    record = json.loads(store.get(f"log/{seq:010d}.json"))
    record.pop("sum")
    change(record)
    record["sum"] = sha256(canonical(record))  # as a liar would, or the sum alone would find every lie
    store.put(f"log/{seq:010d}.json", canonical(record))


def canonical(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("claim", [Claim(2, 1), Claim(1, 2), Claim(1, 9), Claim(0, 1)])
def test_a_claim_that_is_none_is_fenced(checkpoints: CheckpointStore, claim: Claim) -> None:
    with pytest.raises(StepError) as caught:
        checkpoints.log.writer(claim)
    assert caught.value.cause is Cause.FENCED


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(seq=9),
        lambda record: record.update(kind="forget"),
        lambda record: record.update(format="argosy.log/2"),
        lambda record: record.pop("parent"),
    ],
)
def test_an_entry_that_is_none_needs_a_person(checkpoints: CheckpointStore, change: Callable[..., Any]) -> None:
    rewritten(checkpoints.store, 3, change)
    with pytest.raises(StepError, match="entry 3 cannot be read") as caught:
        checkpoints.newest()
    assert (caught.value.cause, caught.value.code) == (Cause.CHECKPOINT_CORRUPT, 77)


def test_a_changed_entry_breaks_the_chain(checkpoints: CheckpointStore) -> None:
    rewritten(checkpoints.store, 2, lambda record: record.update(total_bytes=11))
    with pytest.raises(StepError, match="predecessor") as caught:
        checkpoints.log.entries()
    assert (caught.value.cause, caught.value.code) == (Cause.CHECKPOINT_CORRUPT, 77)


@pytest.mark.parametrize("field", ["step", "generation"])
def test_an_entry_lends_its_place_to_no_other_manifest(checkpoints: CheckpointStore, field: str) -> None:
    rewritten(checkpoints.store, 3, lambda record: record.update({field: 7}))
    found = checkpoints.newest()
    assert found is not None
    assert found.step == 1


def test_an_entry_that_names_an_older_manifest_is_passed_over(checkpoints: CheckpointStore) -> None:
    older = json.loads(checkpoints.store.get("log/0000000002.json"))
    rewritten(checkpoints.store, 3, lambda record: record.update(digest=older["digest"], step=1))
    found = checkpoints.newest()
    assert found is not None
    assert found.seq == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda root: root.update(parts=root["parts"] * 2, total_bytes=20),
        lambda root: root.update(total_bytes=11),
    ],
)
def test_parts_that_do_not_add_up_are_refused(checkpoints: CheckpointStore, change: Callable[..., Any]) -> None:
    newest = checkpoints.newest()
    assert newest is not None
    root = json.loads(checkpoints.store.get(f"manifests/{newest.digest}.json"))
    change(root)
    raw = json.dumps(root).encode()
    checkpoints.store.put(f"manifests/{sha256(raw)}.json", raw)
    with pytest.raises(CorruptCheckpoint, match="checkpoint_corrupt"):
        checkpoints.reader.checkpoint(sha256(raw))


def test_twins_that_append_the_same_do_not_both_win(inner: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes with one claim (a pod that was started twice) save the same: only one is told that it did."""
    checkpoints = CheckpointStore(inner, "")
    claim = checkpoints.claim("test")
    twins = [checkpoints.log.writer(claim) for _ in range(2)]
    # One clock, so that nothing but the nonce differs.
    monkeypatch.setattr(time, "time", lambda: 1.0)
    same = {"kind": "commit", "step": 1, "digest": "0" * 64, "name": "n", "manifest": "m", "total_bytes": 1}
    twins[0].append(**same)
    with pytest.raises(StepError) as caught:
        twins[1].append(**same)
    assert caught.value.cause is Cause.FENCED
