"""What a run's checkpoints owe after any history of claims, saves, crashes, lost answers, prunes, pins and damage.

:class:`Model` says it in few lines; :class:`World` does things to the real store and asks the model after each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from argosy.steps.checkpoint import CheckpointStore, Claim, CorruptCheckpoint
from argosy.steps.checkpoint.log import Entry
from argosy.steps.checkpoint.manifest import generation_of
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectStore, StoreError
from tests.models.checkpoints import damage
from tests.models.stores import Crash, FragileStore

Objects = dict[str, bytes]


class Broken(AssertionError):
    """A promise was not kept."""


def demand(holds: object, what: str) -> None:
    if not holds:
        raise Broken(what)


# ---- the model: at most 60 lines


@dataclass
class Model:
    """What was promised so far."""

    log: list[Entry] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    content: dict[str, dict[str, str]] = field(default_factory=dict)
    """Digest -> path -> SHA-256 of what was saved."""
    pinned: set[str] = field(default_factory=set)
    aside: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)
    """By us."""
    seen: set[str] = field(default_factory=set)
    """Of these, the ones whose damage shows without reading every shard."""

    @property
    def generation(self) -> int:
        return self.log[-1].generation if self.log else 0

    def live(self) -> list[Entry]:
        """Oldest first: what no prune dropped, and what a pin keeps."""
        prune = next((entry for entry in reversed(self.log) if entry.kind == "prune"), None)
        kept = set(prune.keep) if prune else set()
        floor = prune.seq if prune else 0
        commits = [entry for entry in self.log if entry.kind == "commit"]
        return [e for e in commits if e.seq > floor or e.seq in kept or e.digest in self.pinned]

    def grew(self, log: list[Entry], actor: int) -> None:
        """I1, I3, I8: the log only grows, by one chain; only the newest generation adds to it, or a claim."""
        known = len(self.log)
        demand(log[:known] == self.log, "the log changed")
        for before, entry in zip(log[max(known - 1, 0) :], log[max(known, 1) :], strict=False):
            demand(entry.parent == before.identity, "a fork")
            demand(entry.generation == before.generation + (entry.kind == "claim"), "generations")
            demand(entry.kind == "claim" or entry.generation == actor, "another generation than the actor's wrote")
        self.log = log
        there = [entry.digest for entry in log if entry.kind == "commit"]
        demand(
            [digest for digest in there if digest in set(self.acknowledged)] == self.acknowledged, "a commit is lost"
        )

    def intact(self, objects: Objects) -> None:
        """I1, I6: what is live or pinned is there to the byte, but for our own damage."""
        for entry in self.live():
            gone = "" if entry.digest in self.damaged else damage(objects, entry.digest)
            demand(not gone, f"live: {gone}")

    def dropped(self, before: list[Entry], keep: int) -> None:
        """I6: nothing went but what ``keep`` newer whole ones, or more, make superfluous."""
        after = {entry.digest for entry in self.live()}
        for entry in before:
            if entry.digest not in after:
                newer = [e for e in before if e.seq > entry.seq and e.digest not in self.aside | self.seen]
                demand(len(newer) >= keep, f"{len(newer)} newer whole ones stay, keep is {keep}")
                demand(not entry.final and entry.digest not in self.pinned | self.aside, "a final, pinned or aside one")


# ---- the world


@dataclass
class Gang:
    """One claim and the process that holds it."""

    store: FragileStore
    checkpoints: CheckpointStore
    claim: Claim
    writers: int
    alive: bool = True
    step: int = 0
    under_way: dict[str, set[str]] = field(default_factory=dict)
    """Saves that were begun and not ended: name -> keys that must stay."""


class World:
    """One run. Gangs are never told that they are fenced: a zombie goes on until it finds out."""

    def __init__(self, store: ObjectStore) -> None:
        self.store, self.model = store, Model()
        self.gangs: list[Gang] = []
        self.reader = CheckpointStore(store, "")
        self.saves = self.acts = 0

    def objects(self) -> Objects:
        found = getattr(self.store, "objects", None)
        return found if found is not None else {i.key: self.store.get(i.key) for i in self.store.list("")}

    def check(self, actor: int = 0) -> None:
        """After every act."""
        self.acts += 1
        self.model.grew(self.reader.log.entries(), actor)
        objects = self.objects()
        self.model.intact(objects)
        for gang in self.gangs:
            for keys in gang.under_way.values() if gang.claim.generation == self.model.generation else ():
                demand(keys <= objects.keys(), "a save under way lost a shard")

    def act(self, gang: Gang, what: Callable[[], Any], strike_in: int, kind: str) -> Any:
        """Do it; None when it failed, was fenced or the process died in it."""
        fenced = gang.claim.generation < self.model.generation
        before = dict(self.objects()) if fenced else {}
        gang.store.strike_in, gang.store.kind = strike_in, kind
        try:
            result = what()
        except Crash:
            self.gangs.remove(gang)
            result = None
        except StepError as error:
            ours = isinstance(error, StoreError) and "made by the test" in str(error)
            demand(ours or (fenced and error.cause is Cause.FENCED) or not gang.alive, f"{error.cause}: {error}")
            gang.alive = False
            result = None
        gang.store.strike_in = -1
        self.check(gang.claim.generation)
        if fenced:
            # What is dead of its own time it may sweep; whether anything of it lived, ``check`` has seen.
            lost = [key for key in before.keys() - self.objects().keys() if key.startswith("data/")]
            newer = [key for key in lost if (generation_of(key.split("/")[1]) or 0) > gang.claim.generation]
            demand(not newer, f"a fenced gang deleted {newer[:2]}")
        return result

    # ---- acts

    def claim(self, writers: int) -> Gang:
        """A new gang: it resumes from what the model says is newest, and claims."""
        self.resume()
        fragile = FragileStore(self.store)
        checkpoints = CheckpointStore(fragile, "")
        claim = checkpoints.claim(f"gang-{len(self.gangs)}")
        demand(claim.generation == self.model.generation + 1, "the claim's generation")
        self.gangs.append(Gang(fragile, checkpoints, claim, writers))
        self.check(claim.generation)
        return self.gangs[-1]

    def begin(self, gang: Gang, strike_in: int = -1, kind: str = "") -> str | None:
        """Store the shards of the first writer only: the save stays under way."""

        def begun() -> None:
            name = gang.checkpoints.new_save(gang.claim, gang.step + 1)
            part = gang.checkpoints.part(name, 0)
            keys = {part.add_bytes("rank-0", self._payload(gang, 0)).key}
            gang.under_way = {name: keys}

        gang.under_way = {}
        return self.act(gang, begun, strike_in, kind)

    def save(
        self, gang: Gang, *, final: bool = False, again: bool = False, strike_in: int = -1, kind: str = ""
    ) -> str | None:
        """All writers store, one commits; ``again``: the step that was saved before, once more."""
        gang.step += not (again and gang.step)
        gang.under_way = {}
        content: dict[str, str] = {}

        def saved() -> str:
            name = gang.checkpoints.new_save(gang.claim, gang.step)
            refs = []
            for rank in range(gang.writers):
                part = gang.checkpoints.part(name, rank)
                data = self._payload(gang, rank)
                content[f"rank-{rank}"] = hashlib.sha256(data).hexdigest()
                part.add_bytes(f"rank-{rank}", data)
                refs.append(part.finish())
            made = gang.checkpoints.commit(
                gang.claim, name, gang.step, refs, kind="tensors", world_size=gang.writers, final=final
            )
            self.model.acknowledged.append(made.digest)
            return made.digest

        self.saves += 1
        digest = self.act(gang, saved, strike_in, kind)
        for entry in self.model.log:
            if entry.kind == "commit" and entry.digest not in self.model.content:
                self.model.content[entry.digest] = content
        return digest

    def _payload(self, gang: Gang, rank: int) -> bytes:
        return b"%d %d %d %d" % (self.saves, gang.claim.generation, gang.step, rank)

    def prune(self, gang: Gang, keep: int, strike_in: int = -1, kind: str = "") -> None:
        """Whatever becomes of it, only what may go is gone; after a whole one nothing dead is left."""
        before = self.model.live()
        gone = self.act(gang, lambda: gang.checkpoints.prune(keep, gang.claim), strike_in, kind)
        self.model.dropped(before, keep)
        if gone is not None and gang.claim.generation == self.model.generation:
            self._swept(gang)

    def _swept(self, gang: Gang) -> None:
        named = {entry.name for entry in self.model.live()} | set(gang.under_way)
        ours = [e.step for e in self.model.log if e.kind == "commit" and e.generation == gang.claim.generation]
        for name in {key.split("/")[1] for key in self.objects() if key.startswith("data/")} - named:
            generation = generation_of(name) or 0
            young = generation == gang.claim.generation and int(name.split("-")[0]) >= max(ours, default=0)
            demand(generation > gang.claim.generation or young, f"{name} was left")

    def pin(self, digest: str) -> None:
        """A live one."""
        self.reader.pin(digest, "by the test")
        self.model.pinned.add(digest)
        self.check()

    def unpin(self, digest: str) -> None:
        """Only a live one's: then the log keeps it, or a prune drops it."""
        self.model.pinned.discard(digest)
        self.reader.unpin(digest)
        self.check()

    def corrupt(self, digest: str, number: int) -> None:
        """One byte of one of its objects: the root, a part or a shard."""
        objects = self.objects()
        entry = next(entry for entry in self.model.log if entry.digest == digest)
        keys = sorted(
            k for k in objects if k.startswith(f"data/{entry.name}/") or digest in k.removeprefix("manifests/")
        )
        keys = [key for key in keys if not key.startswith(("pins/", "quarantine/"))]
        key = keys[number % len(keys)]
        data = bytearray(objects[key])
        data[number % len(data)] ^= 1 << number % 8
        self.store.put(key, bytes(data))
        self.model.damaged.add(digest)
        if "/files/" not in key:
            self.model.seen.add(digest)
        self.check()

    def roll_back(self) -> None:
        """A person sets the newest aside: the one before is next."""
        found = self.reader.newest()
        if found is not None:
            self.reader.quarantine(found.digest, "rolled back")
            self.model.aside.add(found.digest)
        self.check()

    def resume(self) -> None:
        """I2: the newest that is whole and not set aside, to the byte; what is damaged on the way is set aside."""
        while (found := self.reader.newest()) is not None:
            demand(found.digest not in self.model.aside, "it was set aside")
            whole = [e.digest for e in self.model.live() if e.digest not in self.model.aside | self.model.damaged]
            try:
                self.reader.verify(found)
            except CorruptCheckpoint:
                demand(found.digest in self.model.damaged, "whole, and called corrupt")
                self.reader.quarantine(found.digest, "damaged")
                self.model.aside.add(found.digest)
                continue
            demand(whole and found.digest == whole[-1], "not the newest whole one")
            content = {file.path: file.sha256 for file in found.files}
            demand(content == self.model.content[found.digest], "not what was saved")
            return
        whole = [e.digest for e in self.model.live() if e.digest not in self.model.aside | self.model.damaged]
        demand(not whole, "nothing found, though there is a whole one")
