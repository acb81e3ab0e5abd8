"""Remove old checkpoints, and what failed saves left.

What goes is decided by an entry of the commit log, so only the current generation can decide it and every later
reader sees the decision; deleting afterwards only carries it out. Un-commit first (root), then data: a kill between
leaves data that the next prune finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from argosy.steps.checkpoint.log import CommitLog, Entry, LogWriter, joined
from argosy.steps.checkpoint.manifest import generation_of
from argosy.steps.checkpoint.reader import CheckpointReader, CorruptCheckpoint
from argosy.steps.contract.errors import InputError
from argosy.steps.store.base import ObjectMissing, ObjectStore


class Pruner:
    """Pruning of one run by one writer."""

    def __init__(self, store: ObjectStore, prefix: str, log: CommitLog, reader: CheckpointReader) -> None:
        self._store = store
        self._prefix = prefix
        self._log = log
        self._reader = reader

    def prune(self, writer: LogWriter, keep: int, quarantined: Collection[str]) -> list[str]:
        """Keep the newest ``keep`` complete checkpoints, every final one, everything set aside or incomplete.

        Returns the digests that went.

        Raises:
            StepError: ``fenced``. StoreError. InputError: ``keep`` < 1.
        """
        if keep < 1:
            raise InputError(f"keep = {keep}: at least 1 checkpoint must stay")
        writer.check()
        live = list(self._log.live(writer.last))
        dropped = self._superfluous(live, keep, quarantined)
        kept = [entry for entry in live if entry not in dropped]
        if dropped:
            writer.append(kind="prune", keep=tuple(sorted(entry.seq for entry in kept)))
        self._sweep(kept, writer.last.generation)
        return [entry.digest for entry in dropped]

    def _superfluous(self, live: list[Entry], keep: int, quarantined: Collection[str]) -> list[Entry]:
        """Newest first: what is complete beyond the newest ``keep`` complete ones."""
        good, superfluous = 0, []
        for entry in live:
            if entry.digest in quarantined:
                continue
            if good >= keep:
                # Incomplete ones are evidence, and rare: they are not worth a reading each time.
                if not entry.final:
                    superfluous.append(entry)
            elif self._is_complete(entry):
                good += 1
        return superfluous

    def _is_complete(self, entry: Entry) -> bool:
        try:
            return self._reader.complete(self._reader.checkpoint(entry.digest))
        except (CorruptCheckpoint, ObjectMissing):
            return False

    def _sweep(self, kept: list[Entry], generation: int) -> None:
        """Delete what no kept commit names and our own or an older generation wrote: those can commit nothing more."""
        names, digests = {entry.name for entry in kept}, {entry.digest for entry in kept}
        roots = [digest for digest in self._digests() if digest not in digests]
        for digest in roots:
            try:
                if self._reader.root(digest).generation <= generation:
                    self._store.delete(joined(self._prefix, f"manifests/{digest}.json"))
            except (CorruptCheckpoint, ObjectMissing):
                continue
        for info in self._store.list(joined(self._prefix, "data")):
            name = info.key[len(joined(self._prefix, "data/")) :].split("/", 1)[0]
            writer = generation_of(name)
            if name not in names and writer is not None and writer <= generation:
                self._store.delete(info.key)

    def _digests(self) -> Iterator[str]:
        for info in self._store.list(joined(self._prefix, "manifests")):
            yield info.key.rsplit("/", 1)[-1].removesuffix(".json")
