"""A pruner, a pinner, a reader, a newer gang on one run's checkpoints: the real verbs, and what they owe each other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from argosy.steps.checkpoint import CheckpointStore, Claim, CorruptCheckpoint
from argosy.steps.checkpoint.manifest import generation_of
from argosy.steps.contract.errors import StepError
from tests.models import gangs
from tests.models.explorer import Objects, Promises
from tests.models.requests import AnsweringStore, Program, Request, Told, one_clock

BEFORE = 3
"""Commits (steps 1 to 3, generation 1) that lie in the store when the others begin."""
Act = Callable[[CheckpointStore, Claim, list[str], Told], None]


def save(checkpoints: CheckpointStore, claim: Claim, step: int, name: str = "") -> str:
    """One shard, one part, one commit; the digest."""
    name = name or checkpoints.new_save(claim, step)
    part = checkpoints.part(name, 0)
    part.add_bytes("state", b"step %d of generation %d" % (step, claim.generation))
    refs = [part.finish()]
    return checkpoints.commit(claim, name, step, refs, kind="tensors", world_size=1, final=False).digest


def history(store: AnsweringStore) -> tuple[CheckpointStore, Claim, list[str]]:
    """The same run for every program: claimed by generation 1, three commits."""
    with one_clock(99, 0):
        checkpoints = CheckpointStore(store, "")
        claim = checkpoints.claim("first")
        return checkpoints, claim, [save(checkpoints, claim, step) for step in range(1, BEFORE + 1)]


def start() -> dict[str, bytes]:
    """What that run left."""
    store = AnsweringStore(())
    history(store)
    assert store.before is not None
    return store.before


def program(act: Act) -> Program:
    """Runs ``act`` after that run; a StepError ends it."""

    def run(store: AnsweringStore, told: Told, _since: Any) -> None:
        checkpoints, claim, digests = history(store)
        store.begin()
        try:
            act(checkpoints, claim, digests, told)
        except StepError:
            return

    return run


def pruner(checkpoints: CheckpointStore, claim: Claim, _digests: list[str], _told: Told) -> None:
    """Generation 1 goes on: it keeps only the newest."""
    checkpoints.prune(1, claim)


def pruning_saver(checkpoints: CheckpointStore, claim: Claim, _digests: list[str], told: Told) -> None:
    """Generation 1 prunes, saves once more and prunes again."""
    checkpoints.prune(2, claim)
    told.promise("committed", save(checkpoints, claim, BEFORE + 1))
    checkpoints.prune(1, claim)


def writer(checkpoints: CheckpointStore, claim: Claim, _digests: list[str], told: Told) -> None:
    """Another process of generation 1 stores a shard of the next save, while the first prunes."""
    part = checkpoints.part(f"{BEFORE + 1:010d}-g{claim.generation:06d}-{'a' * 16}", 1)
    told.promise("stored", part.add_bytes("shard", b"in flight").key)
    told.promise("stored", part.finish().key)


def pinner(number: int) -> Act:
    """Pins commit number ``number``."""

    def act(checkpoints: CheckpointStore, _claim: Claim, digests: list[str], told: Told) -> None:
        checkpoints.pin(digests[number - 1], "for the paper")
        told.promise("pinned", digests[number - 1])

    return act


def unpinner(number: int) -> Act:
    """Pins, unpins and pins again."""

    def act(checkpoints: CheckpointStore, claim: Claim, digests: list[str], told: Told) -> None:
        pinner(number)(checkpoints, claim, digests, told)
        told.acknowledged.clear()
        checkpoints.unpin(digests[number - 1])
        pinner(number)(checkpoints, claim, digests, told)

    return act


def claimant(checkpoints: CheckpointStore, _claim: Claim, _digests: list[str], told: Told) -> None:
    """A newer gang: claims, saves, prunes."""
    claim = checkpoints.claim("second")
    told.promise("committed", save(checkpoints, claim, BEFORE + 1))
    checkpoints.prune(1, claim)


def reader(checkpoints: CheckpointStore, _claim: Claim, _digests: list[str], told: Told) -> None:
    """Restores the newest; what a prune took from under it, it looks for once more."""
    for _ in range(3):
        found = checkpoints.newest()
        if found is None:
            told.promise("found nothing")
            return
        try:
            checkpoints.verify(found)
        except CorruptCheckpoint:
            continue
        told.promise("restored", found.seq)
        return
    told.promise("gave up")


ACTS: dict[str, Act] = {
    "pruner": pruner,
    "pruning saver": pruning_saver,
    "writer": writer,
    "pinner": pinner(2),
    "second pinner": pinner(2),
    "unpinner": unpinner(1),
    "reader": reader,
    "claimant": claimant,
}

# ---- the judge: its own reading of docs/checkpoint-format.md, none of the code under test but the entry's parser


def live(objects: Objects) -> list[str]:
    """Digests of the commits that no prune entry dropped."""
    found = gangs.entries(objects)
    prunes = [entry for entry in found if entry.kind == "prune"]
    floor = prunes[-1].seq if prunes else 0
    keep = prunes[-1].keep if prunes else ()
    return [entry.digest for entry in found if entry.kind == "commit" and (entry.seq > floor or entry.seq in keep)]


def damage(objects: Objects, digest: str) -> str:
    """What of the checkpoint is missing or another."""

    def lacks(key: str, expected: str) -> bool:
        return hashlib.sha256(objects.get(key, b"")).hexdigest() != expected

    if lacks(f"manifests/{digest}.json", digest):
        return f"the root of {digest[:8]} is gone"
    for part in json.loads(objects[f"manifests/{digest}.json"])["parts"]:
        if lacks(part["key"], part["sha256"]):
            return f"a part of {digest[:8]} is gone"
        for file in json.loads(objects[part["key"]])["files"]:
            if lacks(file["key"], file["sha256"]):
                return f"a shard of {digest[:8]} is gone"
    return ""


def judge(objects: Objects, promised: Promises) -> str:
    """The log is one chain, what it says is live is there, and every promise is kept."""
    if broken := gangs.judge(objects, ()):
        return broken
    committed = {entry.digest for entry in gangs.entries(objects) if entry.kind == "commit"}
    for digest in live(objects):
        if gone := damage(objects, digest):
            return f"live, but {gone}"
    for what, *which in promised:
        if what == "pinned" and (gone := damage(objects, which[0])):
            return f"pinned, but {gone}"
        if what == "committed" and which[0] not in committed:
            return "an acknowledged commit is lost"
        if what == "stored" and which[0] not in objects:
            return f"{which[0]} of a save under way is gone"
        if what in ("found nothing", "gave up"):
            return f"a reader {what}"
    return ""


def change(before: Objects, after: Objects, request: Request, _gang: int) -> str:
    """Entries are never changed; no data of a generation that is newer than the deleter's is ever deleted.

    The newest generation that can delete is the newest that claimed, so only a save that nobody claimed for counts.
    """
    if broken := gangs.append_only(before, after, request, _gang):
        return broken
    return ""


def no_newer_data(deleter: int) -> Callable[[Objects, Objects, Request, int], str]:
    """As ``change``, and program number ``deleter`` (generation 1) deletes nothing that generation 2 wrote."""

    def on_change(before: Objects, after: Objects, request: Request, gang: int) -> str:
        if request.verb == "delete" and gang == deleter and request.key.startswith("data/"):
            generation = generation_of(request.key.split("/")[1])
            if generation is None or generation > 1:
                return f"generation 1 deletes {request.key}"
        return change(before, after, request, gang)

    return on_change
