"""Checkpoints of this restart as launch sees them: opaque folders, and the Checkpointer's own commits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.steps.checkpoint.manifest import need_kind
from argosy.steps.contract import env as names
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment, Ending
from argosy.steps.contract.layout import run_prefix
from argosy.steps.contract.placeholders import fill
from argosy.steps.launch.kept import KeptMemory
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.step_clock import Word
from argosy.steps.paths import resolve
from argosy.steps.pods.processes import is_running
from argosy.steps.store.leaving import LeavableStore
from argosy.steps.store.opening import POD_SECONDS, SAVE_SECONDS, open_store

if TYPE_CHECKING:
    from argosy.steps.checkpoint.store import CheckpointStore
    from argosy.steps.launch.copies import Copies
    from argosy.steps.launch.gathering import Contributor
    from argosy.steps.launch.opaque import FolderWatch
    from argosy.steps.launch.units import Contents


_MOST_ASKED = 4
"""Nodes that are asked for a file of a folder before the store is."""


class Saves:
    """In mode ``checkpointer`` the ranks commit themselves and this only notes it; in mode ``opaque`` it commits."""

    def __init__(
        self,
        args: LaunchArgs,
        assignment: Assignment,
        store: LeavableStore,
        workdir: Path,
        reporter: Reporter,
        kept: KeptMemory | None = None,
    ) -> None:
        """``kept``: what the pod holds of the saves of the ranks before."""
        if args.checkpoint_path.startswith("/"):  # on a volume, in a folder of the run's own
            folder = fill(args.checkpoint_path, {names.RUN_ID: assignment.run_id})
            args = replace(args, checkpoint_path=str(resolve(folder)))
        self._args = args
        self._assignment = assignment
        self._store = store
        self._workdir = workdir
        self._reporter = reporter
        self._kept = kept or KeptMemory()
        self._watch: FolderWatch | None = None
        self._copies: Copies | None = None
        self._contributor: Contributor | None = None
        self._restored: Contents | None = None
        """Where the first of several nodes commits alone: what the folder held when the ranks began."""
        self._last: Callable[[], FolderWatch] | None = None
        """Of another node then: who commits what its ranks wrote, should the first have nothing."""
        self._word: tuple[Word, bool] | None = None
        self._pids: dict[int, int] = {}
        """Of each rank that was started."""
        self._last_expected = threading.Event()
        self._last_saved = threading.Event()

    def restore(self, environ: Mapping[str, str]) -> list[str]:
        """Opaque: put the verified files back; arguments to add to the script's, completed with the ranks' environment.

        Raises:
            StepError: the checkpoint is corrupt, gone or of the other mode, or the store failed.
        """
        if self._args.checkpoint_mode != "opaque":
            if (digest := self._assignment.resume_digest) and self._assignment.node_rank == 0:
                # A script without a Checkpointer would begin at its first step, and nobody would say so.
                need_kind(self._checkpoints().check_committed(digest), digest, "tensors")
            return []
        from argosy.steps.checkpoint.peers import Peers
        from argosy.steps.launch.restoring import restore

        checkpoints = self._checkpoints(SAVE_SECONDS)
        behind, before = self._others()
        near = Peers(self._kept.token).near((before + behind)[:_MOST_ASKED])  # the first node commits what it has
        added = restore(self._args, self._assignment, checkpoints, self._workdir, environ, self.restored, near)
        self._prepare(checkpoints)
        return added

    def _prepare(self, checkpoints: CheckpointStore) -> None:
        """Choose what this node does: commit, or give its part to node 0."""
        from argosy.steps.launch.completeness import Completeness
        from argosy.steps.launch.gathering import Contributor
        from argosy.steps.launch.opaque import FolderWatch
        from argosy.steps.launch.restoring import of_others
        from argosy.steps.launch.units import contents

        args, assignment, nproc = self._args, self._assignment, self._args.nproc_per_node
        folder, node = self._workdir / args.checkpoint_path, assignment.node_rank
        every = args.checkpoint_writers == "every"
        ranks = range(node * nproc, (node + 1) * nproc) if every else range(assignment.nnodes * nproc)
        others = of_others(args, assignment, checkpoints, folder) if every and assignment.nnodes > 1 else {}
        completeness = Completeness(args, folder, ranks, others, lone=assignment.nnodes * nproc == 1)
        if assignment.nnodes > 1 and not (every or args.checkpoint_expect):
            self._restored = contents(folder, args)
        shared = (args, assignment, checkpoints, folder, completeness, self._reporter)
        if node == 0:
            self._watch = FolderWatch(*shared)
        elif self._restored is None:
            self._contributor = Contributor(*shared)
        else:
            self._last = partial(FolderWatch, *shared, self._restored)

    def environment(self, folder: Path) -> dict[str, str]:
        """What ranks are told: an opaque script where to write, a Checkpointer what this pod holds, with an index in
        ``folder``.
        """
        if self._args.checkpoint_mode == "opaque":
            return {names.CHECKPOINT_PATH: str(self._workdir / self._args.checkpoint_path)}
        if self._assignment.resume_digest and not self._assignment.from_store:
            behind, before = self._others()
            return self._kept.offer(folder, behind + before)  # each has its own, so not all begin with the first
        self._kept.let_go()
        return {}

    def _others(self) -> tuple[list[str], list[str]]:
        """Where nodes may be asked for what they have: those behind this one by rank, those before it."""
        rank, keepers = self._assignment.node_rank, self._assignment.keepers
        return list(filter(None, keepers[rank + 1 :])), list(filter(None, keepers[:rank]))

    def started(self, rank: int, pid: int) -> None:
        """Take note that a rank's process runs."""
        self._pids[rank] = pid

    def start(self, endings: Callable[[], Sequence[Ending]]) -> None:
        """The ranks run: watch the folder. ``endings``: of those whose end was reported."""
        if self._args.checkpoint_peer_copy and self._assignment.nnodes > 1:
            # Imported here: few runs do.
            from argosy.steps.launch.copies import Copies

            self._copies = Copies(self._kept, self._assignment)
            self._copies.start()

        def ranks_run() -> bool:
            # One that ended well wrote what it meant to: another that hangs at its end must not cost the last save.
            ended = {each.rank: each.exit_code == 0 and not each.stopped for each in endings()}
            pids = dict(self._pids)
            every = len(pids) == self._args.nproc_per_node
            return every and all(ended.get(rank, True) and (rank in ended or is_running(pids[rank])) for rank in pids)

        for side in (self._watch, self._contributor):
            if side is not None:
                side.start(ranks_run)

    def step(self, rank: int, word: Word, *, anew: bool = False) -> None:
        """A rank finished a step; ``anew``: what it told before counted something else."""
        self._kept.let_go()
        if self._watch is not None and rank == 0:
            self._watch.step(word, anew=anew)
        elif self._last is not None and rank == self._assignment.node_rank * self._args.nproc_per_node:
            self._word = (word, anew)

    def told(self, rank: int, loss: float) -> None:
        """A rank told its loss; NaN and infinite ones too."""
        if self._watch is not None and rank == 0:
            self._watch.pruning.tell(loss)

    def restored(self, **facts: Any) -> None:
        """Tell where a checkpoint's bytes came from: ``bytes``, ``fetched_bytes`` of the store, ``seconds``.

        A rank tells it when all have theirs.
        """
        self._kept.let_go()
        here = facts["bytes"] - facts["fetched_bytes"]
        print(
            f"argosy: restored {here} bytes from this gang's nodes, {facts['fetched_bytes']} from the store", flush=True
        )
        self._reporter.event("restored", node=self._reporter.node, **facts)

    def keep(self, record: dict[str, Any]) -> None:
        """A rank's Checkpointer has stored files that lie in its memory."""
        self._kept.take(record)

    def durable(self, name: str) -> None:
        """A save of which a rank's Checkpointer has told is committed."""
        if self._copies is not None:
            self._copies.committed(name)

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

        ``final``, and nothing here is the first node's own: only the supervisor knows whether another's ranks wrote.

        Raises:
            StepError: it is not whole, or the store failed.
        """
        if final and self._restored is not None:
            new = self._new(self._restored)
            if self._watch is None:
                self._reporter.keeps(new)
                return
            if not new:
                self._watch.stop()
                self._reporter.keeps(end="unchanged")
                return
        if self._watch is not None:
            self._watch.commit_rest(final=final, go_on=go_on)
        if self._contributor is not None:
            self._contributor.finish(go_on=go_on)

    def _new(self, before: Contents) -> str:
        """What the ranks of this node wrote, in words. A tracker may give rank 0 to any node (XGBoost's before 2 does),
        and who saves is then not the first.
        """
        from argosy.steps.launch.units import contents

        path, old = self._args.checkpoint_path, before.files
        found = contents(self._workdir / path, self._args).files
        new = sorted(name for name, state in found.items() if old.get(name) != state)
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        return f"{path}/{new[0]}{more}" if new else ""

    def commit_end(self) -> None:
        """The supervisor chose this node: what lies here is the end. Told when it is done.

        Raises:
            StepError: it is not whole, or the store failed.
        """
        watch = self._watch
        if watch is None and self._last is not None:
            watch = self._last()
            if self._word is not None:
                watch.step(self._word[0], anew=self._word[1])
        if watch is not None:
            watch.commit_rest(final=True)
        self._reporter.keeps(end="committed")

    def stop(self) -> None:
        """Commit nothing more."""
        if self._copies is not None:
            self._copies.end()
        for side in (self._watch, self._contributor):
            if side is not None:
                side.stop()

    def _checkpoints(self, patience: float = POD_SECONDS) -> CheckpointStore:
        from argosy.steps.checkpoint.store import CheckpointStore

        store = LeavableStore(open_store(self._store.uri, retry_seconds=patience), self._store.leaving)
        return CheckpointStore(store, run_prefix(self._args.name, self._assignment.run_id))
