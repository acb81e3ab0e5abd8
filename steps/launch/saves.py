"""Checkpoints of this restart as launch sees them: opaque folders, and the Checkpointer's own commits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.steps.contract import env as names
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.layout import run_prefix
from argosy.steps.launch.reporter import Reporter
from argosy.steps.store.base import ObjectStore

if TYPE_CHECKING:
    from argosy.steps.checkpoint.store import CheckpointStore
    from argosy.steps.launch.opaque import FolderWatch


class Saves:
    """In mode ``checkpointer`` the ranks commit themselves and this only notes it; in mode ``opaque`` it commits."""

    def __init__(
        self, args: LaunchArgs, assignment: Assignment, store: ObjectStore, workdir: Path, reporter: Reporter
    ) -> None:
        self._args = args
        self._assignment = assignment
        self._store = store
        self._workdir = workdir
        self._reporter = reporter
        self._watch: FolderWatch | None = None
        self._last_expected = threading.Event()
        self._last_saved = threading.Event()

    def restore(self) -> list[str]:
        """Opaque: put the verified files back; arguments to add to the script's.

        Raises:
            StepError: the checkpoint is corrupt or gone, or the store failed.
        """
        if self._args.checkpoint_mode != "opaque":
            return []
        from argosy.steps.launch.opaque import FolderWatch, restore

        checkpoints = self._checkpoints()
        added = restore(self._args, self._assignment, checkpoints, self._workdir)
        if self._assignment.node_rank == 0:
            self._watch = FolderWatch(self._args, self._assignment, checkpoints, self._workdir, self._reporter)
        return added

    def environment(self) -> dict[str, str]:
        """Opaque: where the script is expected to write."""
        if self._args.checkpoint_mode != "opaque":
            return {}
        return {names.CHECKPOINT_PATH: str(self._workdir / self._args.checkpoint_path)}

    def start(self, ranks_run: Callable[[], bool]) -> None:
        """The ranks run: watch the folder."""
        if self._watch is not None:
            self._watch.start(ranks_run)

    def step(self, rank: int, step: int, when: float) -> None:
        """A rank finished a step."""
        if self._watch is not None and rank == 0:
            self._watch.step(step, when)

    def committed(self) -> None:
        """A rank's Checkpointer committed."""
        if self._last_expected.is_set():
            self._last_saved.set()

    def expect_last(self) -> None:
        """SIGTERM was passed on: from now on a commit is the clean save."""
        self._last_expected.set()

    def saved_last(self) -> bool:
        """Whether a commit came after :meth:`expect_last`."""
        return self._last_saved.is_set()

    def finish(self, *, final: bool) -> None:
        """All ranks of this node ended well: commit what lies there.

        Raises:
            StepError: it is not whole, or the store failed.
        """
        if self._watch is not None:
            self._watch.commit_rest(final=final)

    def stop(self) -> None:
        """Commit nothing more."""
        if self._watch is not None:
            self._watch.stop()

    def _checkpoints(self) -> CheckpointStore:
        from argosy.steps.checkpoint.store import CheckpointStore

        return CheckpointStore(self._store, run_prefix(self._args.name, self._assignment.run_id))
