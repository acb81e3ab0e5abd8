"""Remove old checkpoints, and what failed saves left.

What goes is decided by an entry of the commit log, so only the current generation can decide it and every later
reader sees the decision; deleting afterwards only carries it out. Pins are listed after the decision (see ``pins``).
Un-commit first (root), then data: a kill between leaves data that the next prune finds.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Iterable, Iterator

from argosy.steps.checkpoint.log import CommitLog, Entry, LogWriter, joined
from argosy.steps.checkpoint.manifest import generation_of, step_of
from argosy.steps.checkpoint.pins import Pins
from argosy.steps.checkpoint.reader import CheckpointReader, CorruptCheckpoint
from argosy.steps.contract.errors import InputError
from argosy.steps.store import uploads
from argosy.steps.store.base import ObjectMissing, ObjectStore, StoreError

Content = tuple[int, dict[str, str]]
"""Step, and path -> SHA-256."""


class Pruner:
    """Pruning of one run by one writer."""

    def __init__(self, store: ObjectStore, prefix: str, log: CommitLog, reader: CheckpointReader, pins: Pins) -> None:
        self._store = store
        self._prefix = prefix
        self._log = log
        self._reader = reader
        self._pins = pins

    def superfluous(self, live: Iterable[Entry], keep: int, aside: Collection[str]) -> list[Entry]:
        """What of the ``live`` commits (newest first) a prune would remove: beyond the newest ``keep`` complete ones,
        and of those with the same step and content all but the newest.

        Never one that is final, pinned, in ``aside``, or incomplete among the newest.

        Raises:
            InputError: ``keep`` < 1. StoreError.
        """
        if keep < 1:
            raise InputError(f"keep = {keep}: at least 1 checkpoint must stay")
        contents: list[Content] = []
        superfluous = []
        aside = {*aside, *(pin.digest for pin in self._pins.listed())}
        for entry in live:
            if entry.digest in aside:
                continue
            if len(contents) < keep:
                # Incomplete ones are evidence, and rare: they are not worth a reading each time.
                content = self._complete(entry)
                if content is None:
                    continue
                if content not in contents:
                    contents.append(content)
                    continue
            if not entry.final:
                superfluous.append(entry)
        return superfluous

    def prune(self, writer: LogWriter, keep: int, quarantined: Collection[str]) -> list[str]:
        """Keep the newest ``keep`` complete checkpoints, every final or pinned one, everything set aside or incomplete.

        Returns the digests that went.

        Raises:
            StepError: ``fenced``. StoreError. InputError: ``keep`` < 1.
        """
        writer.check()
        live = list(self._log.live(writer.last))
        dropped = self.superfluous(live, keep, quarantined)
        kept = [entry for entry in live if entry not in dropped]
        if dropped:
            writer.append(kind="prune", keep=tuple(sorted(entry.seq for entry in kept)))
        # Only now, after the decision: whoever pinned before it is seen here, whoever pins later sees the decision.
        pinned = self._pins.dropped(writer.last)
        self._sweep([*kept, *pinned], writer)
        return [entry.digest for entry in dropped if entry not in pinned]

    def _complete(self, entry: Entry) -> Content | None:
        """The step and content of a checkpoint; None when something of it is missing."""
        try:
            found = self._reader.checkpoint(entry.digest)
            whole = self._reader.complete(found)
        except (CorruptCheckpoint, ObjectMissing):
            return None
        return (found.step, {file.path: file.sha256 for file in found.files}) if whole else None

    def _sweep(self, kept: list[Entry], writer: LogWriter) -> None:
        """Delete what no kept commit names and nobody can commit any more.

        That is what older generations wrote, and of our own what lies before our newest commit: a save of ours may
        be under way beside this.
        """
        names, digests = {entry.name for entry in kept}, {entry.digest for entry in kept}
        for digest in [digest for digest in self._digests() if digest not in digests]:
            if self._root_is_dead(digest, writer):
                self._store.delete(joined(self._prefix, f"manifests/{digest}.json"))
        for info in self._store.list(joined(self._prefix, "data")):
            name = info.key[len(joined(self._prefix, "data/")) :].split("/", 1)[0]
            if name not in names and save_is_dead(name, writer):
                self._store.delete(info.key)
        self._abort_uploads(writer)

    def _abort_uploads(self, writer: LogWriter) -> None:
        """Drop what killed writers were sending in parts; it costs room and money, and no listing shows it."""
        try:
            for upload in list(uploads.unfinished(self._store, joined(self._prefix, "data"))):
                if save_is_dead(upload.key[len(joined(self._prefix, "data/")) :].split("/", 1)[0], writer):
                    uploads.abort(self._store, upload)
        except StoreError as error:
            # Not every identity may list uploads, and not every S3 can: training does not depend on it.
            _say(f"{error}; a lifecycle rule of the bucket can abort them")

    def _root_is_dead(self, digest: str, writer: LogWriter) -> bool:
        try:
            root = self._reader.root(digest)
        except (CorruptCheckpoint, ObjectMissing):
            return False
        ours = root.generation == writer.last.generation
        return root.seq <= writer.last.seq if ours else root.generation < writer.last.generation

    def _digests(self) -> Iterator[str]:
        for info in self._store.list(joined(self._prefix, "manifests")):
            yield info.key.rsplit("/", 1)[-1].removesuffix(".json")


@functools.lru_cache(maxsize=16)
def _say(text: str) -> None:
    """Once: there is a prune after each save."""
    print(f"argosy: {text}", file=sys.stderr, flush=True)


def save_is_dead(name: str, writer: LogWriter) -> bool:
    """Whether a save that is not committed never will be: of an older generation, or of ours and overtaken."""
    generation = generation_of(name)
    if generation is None:
        return False
    if generation == writer.last.generation:
        return step_of(name) < writer.committed_step
    return generation < writer.last.generation
