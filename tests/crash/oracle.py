"""What must hold whatever happened: the invariants of docs/checkpoint-format.md, from the bytes in the store.

The log is replayed here by a model of its own (JSON and SHA-256, none of argosy's reading code), and compared with
what the readers of argosy say.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore, CorruptCheckpoint
from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import Checkpoint, generation_of
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectStore

KEEP = 2
RUN = "run"


@dataclass
class History:
    """What the gangs of a workload tried, and what they were told."""

    saves: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Name of a save -> its files, noted before the first byte is stored."""
    acknowledged: list[str] = field(default_factory=list)
    """Digests of commits that returned, in order."""
    pinned: set[str] = field(default_factory=set)
    """Digests whose pin was acknowledged and whose unpin was never tried."""
    damaged: set[str] = field(default_factory=set)
    """Digests whose bytes the test spoilt."""
    claims: list[Claim] = field(default_factory=list)


@dataclass
class Replayed:
    """The log, read by the model."""

    entries: list[dict[str, Any]]
    live: list[dict[str, Any]]
    """Commits that no prune dropped, oldest first."""

    @property
    def committed(self) -> list[str]:
        return [entry["digest"] for entry in self.entries if entry["kind"] == "commit"]


def replay(store: ObjectStore) -> Replayed:
    """I3: one chain without gaps; generations rise by one with each claim; within one, steps never fall."""
    keys = [info.key for info in store.list(f"{RUN}/log")]
    assert keys == [f"{RUN}/log/{seq:010d}.json" for seq in range(1, len(keys) + 1)], "the log has gaps"
    done = Replayed([], [])
    parent, generation, step, newest, pruned = "", 0, -1, 0, 0
    for seq, key in enumerate(keys, 1):
        raw = store.get(key)
        entry = json.loads(raw)
        assert (entry["seq"], entry["parent"]) == (seq, parent), f"entry {seq} is not behind its predecessor"
        assert (entry.get("newest", 0), entry.get("pruned", 0)) == (newest, pruned), f"entry {seq} points elsewhere"
        assert entry["generation"] == generation + (entry["kind"] == "claim"), f"entry {seq}: wrong generation"
        generation, parent = entry["generation"], hashlib.sha256(raw).hexdigest()
        if entry["kind"] == "claim":
            step = -1
        if entry["kind"] == "commit":
            assert entry["step"] >= step, f"entry {seq}: steps went back"
            step, newest = entry["step"], seq
            done.live.append(entry)
        if entry["kind"] == "prune":
            pruned = seq
            assert set(entry.get("keep", ())) <= {one["seq"] for one in done.live}, "a prune revived what was gone"
            done.live = [one for one in done.live if one["seq"] in entry.get("keep", ())]
        done.entries.append(entry)
    return done


def judge(store: ObjectStore, history: History) -> None:
    """Raise AssertionError unless everything promised holds now; then a new gang goes on, and it holds again."""
    done = replay(store)
    # I1
    assert [digest for digest in done.committed if digest in history.acknowledged] == history.acknowledged
    _check_live(store, done, history)
    _check_resume(store, done, history)
    _check_fenced(store, history)
    _go_on(store, history)


def _check_live(store: ObjectStore, done: Replayed, history: History) -> None:
    """I2, I4, I6: what the log says is live is there, and is to the byte what one save was given."""
    reader = CheckpointStore(store, RUN)
    aside = set(reader.quarantined())
    assert history.damaged >= aside, "a good checkpoint was set aside"
    good = [entry for entry in done.live if entry["digest"] not in history.damaged]
    whole = [digest for digest in done.committed if digest not in history.damaged]
    assert len(good) >= min(KEEP, len(whole)), "pruning took what had to stay"
    assert [entry["digest"] for entry in good][-KEEP:] == whole[-KEEP:]
    assert aside <= {entry["digest"] for entry in done.live}, "evidence is gone"
    finals = {entry["digest"] for entry in done.entries if entry.get("final")}
    assert finals <= {entry["digest"] for entry in done.live}, "a final one is gone"
    for digest in {entry["digest"] for entry in good} | history.pinned:
        found = reader.by_digest(digest)
        reader.verify(found)
        given = history.saves[found.name]
        assert {file.path: store.get(f"{RUN}/{file.key}") for file in found.files} == given, "other bytes than saved"
    listed = {found.digest for found in reader.commits()}
    assert listed >= {entry["digest"] for entry in good} | history.pinned - history.damaged
    assert not listed & aside


def resume(reader: CheckpointStore) -> Checkpoint | None:
    """As launch and supervisor do: newest, verified; what is corrupt is set aside and the one before is next."""
    while (found := reader.newest()) is not None:
        try:
            reader.verify(found)
        except CorruptCheckpoint as error:
            reader.quarantine(error.digest, str(error))
        else:
            return found
    return None


def _check_resume(store: ObjectStore, done: Replayed, history: History) -> None:
    """I1, I2: a resume ends at the newest commit that is whole."""
    found = resume(CheckpointStore(store, RUN))
    good = [entry["digest"] for entry in done.live if entry["digest"] not in history.damaged]
    assert (found.digest if found else None) == (good[-1] if good else None), "resumed from another checkpoint"


def _check_fenced(store: ObjectStore, history: History) -> None:
    """I8: a gang from before commits nothing and deletes nothing, whatever it tries."""
    CheckpointStore(store, RUN).claim("judge")
    before = {info.key: info.etag for info in store.list(RUN)}
    for claim in history.claims:
        for attempt in (_save_more, _prune_more):
            with pytest.raises(StepError) as caught:
                attempt(CheckpointStore(store, RUN), claim)
            assert caught.value.cause is Cause.FENCED
    after = {info.key: info.etag for info in store.list(RUN)}
    assert before.items() <= after.items(), "a fenced gang changed something"
    assert not [key for key in after.keys() - before.keys() if "/log/" in key], "a fenced gang appended"


def _save_more(zombie: CheckpointStore, claim: Claim) -> None:
    save(zombie, claim, 1_000_000, History(), writers=1)


def _prune_more(zombie: CheckpointStore, claim: Claim) -> None:
    # A prune that finds nothing to do would be no attempt: append one as the pruner does.
    zombie.log.writer(claim).append(kind="prune", keep=())


def save(checkpoints: CheckpointStore, claim: Claim, step: int, history: History, *, writers: int = 2) -> None:
    """One save by several writers, as ranks would."""
    name = checkpoints.new_save(claim, step)
    history.saves[name] = {f"rank-{rank}.bin": f"{name}:{rank}".encode() * 9 for rank in range(writers)}
    refs = []
    for rank, (path, data) in enumerate(history.saves[name].items()):
        part = checkpoints.part(name, rank)
        part.add_file(path, memoryview(data)) if rank else part.add_bytes(path, data)
        refs.append(part.finish())
    saved = checkpoints.commit(claim, name, step, refs, kind="tensors", world_size=writers, final=False)
    history.acknowledged.append(saved.digest)


def _go_on(store: ObjectStore, history: History) -> None:
    """A new gang claims, saves and prunes as ever, and sweeps what the dead ones left."""
    checkpoints = CheckpointStore(store, RUN)
    claim = checkpoints.claim("next")
    for step in (1_000_001, 1_000_002, 1_000_003):
        save(checkpoints, claim, step, history)
        checkpoints.prune(KEEP, claim)
    done = replay(store)
    _check_live(store, done, history)
    found = CheckpointStore(store, RUN).newest()
    assert found is not None
    assert found.digest == history.acknowledged[-1]
    stay = {entry["digest"]: entry["name"] for entry in done.live}
    for digest in history.pinned - stay.keys():
        stay[digest] = CheckpointStore(store, RUN).by_digest(digest).name
    names = {info.key.split("/")[2] for info in store.list(f"{RUN}/data")}
    assert names == set(stay.values()), "left over or missing data"
    assert all(generation_of(name) for name in names)
    roots = {info.key.rsplit("/", 1)[-1].removesuffix(".json") for info in store.list(f"{RUN}/manifests")}
    assert roots == stay.keys(), "left over or missing roots"
