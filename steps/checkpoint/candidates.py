"""Which commit a resume takes, and why not another: one walk, for the choice and for its explanation."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from argosy.steps.checkpoint.log import CommitLog, Entry
from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.checkpoint.pins import Pins
from argosy.steps.checkpoint.reader import CheckpointReader, CorruptCheckpoint
from argosy.steps.store.base import ObjectMissing


@dataclass(frozen=True)
class Candidate:
    """A commit that no prune removed: its manifest tree, or why it cannot be taken."""

    entry: Entry
    checkpoint: Checkpoint | None
    why: str = ""
    """Why not; "" when it can be taken."""


def candidates(
    log: CommitLog, reader: CheckpointReader, pins: Pins, tail: Entry | None, aside: Collection[str]
) -> Iterator[Candidate]:
    """The commits that are live or pinned as of ``tail``, newest first; reads only as many as are taken.

    ``aside``: digests that are not looked at. Shards are not read: who loads one verifies it.
    """
    if tail is None:
        return
    for entry in heapq.merge(log.live(tail), pins.dropped(tail), key=lambda entry: -entry.seq):
        if entry.digest in aside:
            yield Candidate(entry, None, "set aside")
            continue
        yield _examined(reader, entry)


def _examined(reader: CheckpointReader, entry: Entry) -> Candidate:
    try:
        found = reader.checkpoint(entry.digest)
    except CorruptCheckpoint as error:
        return Candidate(entry, None, f"{error.shard}: {error.why}")
    except ObjectMissing:
        return Candidate(entry, None, "its root manifest is missing")
    # A damaged entry must not lend its place to another commit's manifest.
    if (found.seq, found.generation, found.step) != (entry.seq, entry.generation, entry.step):
        return Candidate(entry, None, "its manifest belongs to another log entry")
    return Candidate(entry, found)
