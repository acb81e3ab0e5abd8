"""What became of every commit of a run, and what a resume takes: facts for people; nothing here writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from argosy.steps.checkpoint.candidates import Candidate, candidates
from argosy.steps.checkpoint.log import CommitLog, Entry
from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.checkpoint.parallel import in_parallel
from argosy.steps.checkpoint.pins import Pins
from argosy.steps.checkpoint.reader import CheckpointReader

State = Literal["live", "set aside", "incomplete", "pruned"]


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One commit of the log and what it is today."""

    seq: int
    step: int
    digest: str
    generation: int
    created: float
    """Seconds since 1970 by the writer's clock."""
    bytes: int
    final: bool
    name: str
    state: State
    reason: str = ""
    """Why it is set aside, or what is missing from it."""
    pinned: str | None = None
    """The pin's reason; None: not pinned."""
    checkpoint: Checkpoint | None = None
    """The commit's manifest tree, where that is intact."""


@dataclass(frozen=True, kw_only=True)
class History:
    """Every commit, newest first, and the choice of a resume."""

    commits: tuple[Commit, ...]
    chosen: Commit | None
    """What a resume takes; None: it begins from scratch."""
    why: str
    skipped: tuple[tuple[Commit, str], ...]
    """Newer than the chosen one, each with the reason; pruned ones are not among them."""

    def without(self, damaged: Mapping[str, str]) -> History:
        """The same, chosen among the others; ``damaged``: digest -> reason, of those whose bytes were read."""
        return _chosen(self.commits, damaged, self.why)


def history(
    log: CommitLog,
    reader: CheckpointReader,
    pins: Pins,
    aside: Mapping[str, str],
) -> History:
    """Read the whole log and look at everything that is live.

    ``aside``: digest -> reason; a resume that finds damage sets the checkpoint aside.
    """
    entries = log.entries()
    tail = entries[-1] if entries else None
    reasons = pins.reasons()
    walked = {found.entry.seq: found for found in candidates(log, reader, pins, tail, ())}
    sizes = dict(
        in_parallel(lambda item: (item.entry.seq, _missing(reader, item)), walked.values(), threads=16, small=4)
    )
    commits = tuple(
        _commit(entry, walked.get(entry.seq), sizes.get(entry.seq, ""), aside, reasons)
        for entry in reversed(entries)
        if entry.kind == "commit"
    )
    # A start claims its generation before its first step: without an entry there was no start, or it was removed.
    unclaimed = "it has no commit log: it has not trained yet, or its store was emptied"
    none = "nothing was ever committed" if entries else unclaimed
    return _chosen(commits, {}, none)


def _chosen(commits: tuple[Commit, ...], damaged: Mapping[str, str], none: str) -> History:
    skipped: list[tuple[Commit, str]] = []
    for commit in (commit for commit in commits if commit.state != "pruned"):
        if commit.state == "set aside":
            skipped.append((commit, f"set aside: {commit.reason}"))
        elif commit.digest in damaged:
            skipped.append((commit, f"damaged: {damaged[commit.digest]}"))
        elif commit.checkpoint is None:
            skipped.append((commit, f"incomplete: {commit.reason}"))
        else:
            comes = "a resume hashes its files, and takes the next where one is damaged"
            if commit.state == "incomplete":
                comes = f"loading it will fail ({commit.reason}), set it aside, and take the next"
            why = f"the newest commit that is not set aside; {comes}"
            return History(commits=commits, chosen=commit, why=why, skipped=tuple(skipped))
    why = "nothing is left to resume from" if commits else none
    return History(commits=commits, chosen=None, why=why, skipped=tuple(skipped))


def _missing(reader: CheckpointReader, candidate: Candidate) -> str:
    return candidate.why if candidate.checkpoint is None else reader.missing(candidate.checkpoint)


def _commit(
    entry: Entry, found: Candidate | None, missing: str, aside: Mapping[str, str], pinned: Mapping[str, str]
) -> Commit:
    state: State = "live"
    if found is None:
        state = "pruned"
    elif entry.digest in aside:
        state = "set aside"
    elif missing:
        state = "incomplete"
    return Commit(
        seq=entry.seq,
        step=entry.step,
        digest=entry.digest,
        generation=entry.generation,
        created=entry.created,
        bytes=entry.total_bytes,
        final=entry.final,
        name=entry.name,
        state=state,
        reason=aside.get(entry.digest, missing),
        pinned=pinned.get(entry.digest),
        checkpoint=found.checkpoint if found else None,
    )
