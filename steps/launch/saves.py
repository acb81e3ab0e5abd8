"""Checkpoints of this restart as launch sees them: opaque folders, and the Checkpointer's own commits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.steps.contract import env as names
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.layout import run_prefix
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.step_clock import Word
from argosy.steps.launch.whole_files import Signature, signature
from argosy.steps.pods.processes import is_running
from argosy.steps.store.base import ObjectStore

if TYPE_CHECKING:
    from argosy.steps.checkpoint.store import CheckpointStore
    from argosy.steps.launch.gathering import Contributor
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
        self._contributor: Contributor | None = None
        self._restored: Signature | None = None
        """Of a node that commits nothing: what the folder held when the ranks began."""
        self._pids: list[int] = []
        self._last_expected = threading.Event()
        self._last_saved = threading.Event()

    def restore(self, environ: Mapping[str, str]) -> list[str]:
        """Opaque: put the verified files back; arguments to add to the script's, completed with the ranks' environment.

        Raises:
            StepError: the checkpoint is corrupt or gone, or the store failed.
        """
        if self._args.checkpoint_mode != "opaque":
            return []
        from argosy.steps.launch.restoring import restore

        checkpoints = self._checkpoints()
        added = restore(self._args, self._assignment, checkpoints, self._workdir, environ)
        self._prepare(checkpoints)
        return added

    def _prepare(self, checkpoints: CheckpointStore) -> None:
        """Choose what this node does: commit, or give its part to node 0."""
        from argosy.steps.launch.completeness import Completeness
        from argosy.steps.launch.gathering import Contributor
        from argosy.steps.launch.opaque import FolderWatch
        from argosy.steps.launch.restoring import of_others

        args, assignment, nproc = self._args, self._assignment, self._args.nproc_per_node
        folder, node = self._workdir / args.checkpoint_path, assignment.node_rank
        every = args.checkpoint_writers == "every"
        ranks = range(node * nproc, (node + 1) * nproc) if every else range(assignment.nnodes * nproc)
        others = of_others(args, assignment, checkpoints, folder) if every and assignment.nnodes > 1 else {}
        completeness = Completeness(args, folder, ranks, others)
        if node == 0:
            self._watch = FolderWatch(args, assignment, checkpoints, folder, completeness, self._reporter)
        elif every or args.checkpoint_expect:
            self._contributor = Contributor(args, assignment, checkpoints, folder, completeness, self._reporter)
        else:
            self._restored = signature(folder, args.checkpoint_include)

    def environment(self) -> dict[str, str]:
        """The variables that tell an opaque script where to write."""
        if self._args.checkpoint_mode != "opaque":
            return {}
        return {names.CHECKPOINT_PATH: str(self._workdir / self._args.checkpoint_path)}

    def started(self, pid: int) -> None:
        """Take note that a rank's process runs."""
        self._pids.append(pid)

    def start(self, no_ending: Callable[[], bool]) -> None:
        """The ranks run: watch the folder. ``no_ending``: whether no rank's end was reported yet."""

        def ranks_run() -> bool:
            pids = list(self._pids)
            return len(pids) == self._args.nproc_per_node and all(map(is_running, pids)) and no_ending()

        for side in (self._watch, self._contributor):
            if side is not None:
                side.start(ranks_run)

    def step(self, rank: int, word: Word, *, anew: bool = False) -> None:
        """A rank finished a step; ``anew``: what it told before counted something else."""
        if self._watch is not None and rank == 0:
            self._watch.step(word, anew=anew)

    def told(self, rank: int, loss: float) -> None:
        """A rank told its loss; NaN and infinite ones too."""
        if self._watch is not None and rank == 0:
            self._watch.pruning.tell(loss)

    def committed(self) -> None:
        """Take note that a rank's Checkpointer committed."""
        if self._last_expected.is_set():
            self._last_saved.set()

    def expect_last(self) -> None:
        """SIGTERM was passed on: from now on a commit is the clean save."""
        self._last_expected.set()

    def saved_last(self) -> bool:
        """Whether a commit came after :meth:`expect_last`."""
        return self._last_saved.is_set()

    def finish(self, *, final: bool, go_on: Callable[[], bool] = lambda: True) -> None:
        """All ranks of this node ended well: commit what lies there; ``go_on`` False: wait for no other node.

        Raises:
            StepError: it is not whole, or the store failed.
        """
        if self._watch is not None:
            self._watch.commit_rest(final=final, go_on=go_on)
        if self._contributor is not None:
            self._contributor.finish(go_on=go_on)
        if self._restored is not None:
            self._tell_uncommitted(self._restored)

    def _tell_uncommitted(self, before: Signature) -> None:
        """A tracker may give rank 0 to any node (XGBoost's before 2 does), and who saves is then not the first."""
        path = self._args.checkpoint_path
        found = signature(self._workdir / path, self._args.checkpoint_include)
        new = sorted(name for name, state in found.items() if before.get(name) != state)
        if new:
            others = f" and {len(new) - 1} more" if len(new) > 1 else ""
            self._reporter.keeps(f"{path}/{new[0]}{others}")

    def stop(self) -> None:
        """Commit nothing more."""
        for side in (self._watch, self._contributor):
            if side is not None:
                side.stop()

    def _checkpoints(self) -> CheckpointStore:
        from argosy.steps.checkpoint.store import CheckpointStore

        return CheckpointStore(self._store, run_prefix(self._args.name, self._assignment.run_id))
