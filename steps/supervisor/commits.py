"""The run's checkpoints as the supervisor needs them: what to resume from, and whether the end was reached."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.launch.labelling import progress_of
from argosy.steps.store.base import ObjectStore


class RunCommits:
    """``resume_from`` decides which checkpoints count: with ``none`` or a digest only those this workflow made."""

    def __init__(self, store: ObjectStore, prefix: str, resume_from: str, end_step: int) -> None:
        self._store = CheckpointStore(store, prefix)
        self._resume_from = resume_from
        self._end_step = end_step
        self._first_generation: int | None = None

    def since(self, generation: int | None) -> None:
        """This workflow's first generation; None before it has claimed one."""
        if self._first_generation is None:
            self._first_generation = generation

    def claim(self, owner: str) -> Claim:
        """Claim the next generation: whoever still writes under an older one is fenced."""
        claim = self._store.claim(owner)
        self.since(claim.generation)
        return claim

    def newest(self, skip: Collection[str] = ()) -> Checkpoint | None:
        """The newest checkpoint that counts; ``skip``: digests of some that do not."""
        if self._resume_from == "latest":
            return self._store.newest(skip)
        first = self._first_generation
        return None if first is None else self._store.newest(skip, since=first)

    def reached(self, spoiled: float = 0.0) -> dict[str, int]:
        """``commit_step`` and ``progress`` of a :class:`Failure` now: -1 when there is no checkpoint.

        What was saved at ``spoiled`` (seconds since 1970; 0: never) or later is no progress. Ranks may save still.
        """
        skip: set[str] = set()
        while (found := self.newest(skip)) is not None and spoiled and found.created >= spoiled:
            skip.add(found.digest)
        step, progress = (-1, -1) if found is None else (found.step, progress_of(found))
        return {"commit_step": step, "progress": progress}

    def made_by(self, generation: int) -> list[int]:
        """Steps of the checkpoints of one restart, oldest first, as far as they are kept."""
        return [found.step for found in self._store.commits() if found.generation == generation]

    def resume(self) -> Checkpoint | None:
        """What the next restart restores; None: from scratch.

        Raises:
            StepError: the digest that was asked for is unknown, or was found damaged.
        """
        found = self.newest()
        if found is not None or self._resume_from in ("latest", "none"):
            return found
        reason = self._store.quarantined().get(self._resume_from)
        if reason is not None:
            # A person asked for this very one: another would be a different training.
            text = f"checkpoint {self._resume_from} was asked for and is set aside; choose another resume-from"
            raise StepError(Cause.CHECKPOINT_CORRUPT, text, quote=reason, code=ExitCode.NEEDS_HUMAN)
        return self._store.by_digest(self._resume_from)

    def quarantine(self, digest: str, reason: str) -> None:
        """Never resume from this checkpoint again; it is kept."""
        self._store.quarantine(digest, reason)

    def spoiled(self, step: int, since: float = 0.0) -> list[str]:
        """Digests of those that hold what went wrong: made at ``since`` or later, else of ``step`` or later.

        A script's own steps need not be those that its checkpoints are called by.
        """
        found = self._store.commits()
        return [item.digest for item in found if (item.created >= since if since else item.step >= step)]

    def skipped(self) -> list[str]:
        """Digests that are set aside."""
        return sorted(self._store.quarantined_digests())

    def flip_byte(self) -> bool:
        """Damage the newest checkpoint, as a bad disk would (injected fault); False when there is none."""
        found = self.newest()
        if found is None:
            return False
        shard = max(found.files, key=lambda file: file.size)
        key = f"{self._store.prefix}/{shard.key}"
        data = bytearray(self._store.store.get(key))
        data[len(data) // 2] ^= 0x40
        self._store.store.put(key, bytes(data))
        return True

    def reached_end(self) -> Checkpoint | None:
        """The newest checkpoint if it is the declared end (not verified here)."""
        found = self.newest()
        if found is None:
            return None
        done = found.step >= self._end_step if self._end_step > 0 else found.final
        return found if done else None

    def missing(self, uncommitted: Sequence[str] = ()) -> str:
        """Why :meth:`reached_end` gave nothing, for people; ``uncommitted``: what other nodes wrote."""
        found = self.newest()
        have = "there is no checkpoint" if found is None else f"the newest checkpoint is of step {found.step}"
        ends = [one.step for one in self._store.commits() if one.final]
        earlier = f"; that of step {ends[-1]} was, and is not the last" if ends else ""
        own = found is not None and found.kind == "files"  # of an opaque folder it is argosy that saves the last
        last = "none was saved after they had ended" if own else "was not saved with final=True"
        final = "" if found is None else f" and {last}{earlier}"
        want = f" and step {self._end_step} was declared" if self._end_step > 0 else final
        lost = f"; the first node wrote nothing, and {', '.join(uncommitted)}" if uncommitted else ""
        return f"all ranks exited 0, but {have}{want}{lost}"

    def verify(self, checkpoint: Checkpoint) -> None:
        """Read and hash every byte of it.

        Raises:
            StepError: ``checkpoint_corrupt``.
        """
        print(f"argosy: verifying checkpoint {checkpoint.digest[:12]} of step {checkpoint.step}", file=sys.stderr)
        self._store.verify(checkpoint)
