"""Opaque mode: a script that merely writes files into a folder has them committed and gets them back.

One writer per gang (node rank 0). A state of the folder is committed when nobody has its files open for writing,
it has rested for a moment, and no rank of this pod had ended by then (a killed rank leaves torn files that look
finished); what changes while it is copied to the store is not committed.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.checkpoint.opaque import SETTLED_SECONDS, FilesChanged
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.whole_files import Signature, looks_whole, matching, newest_change, signature, written_now

REST_SECONDS = 0.2
LOOK_SECONDS = 0.1
RETRY_SECONDS = 1.0
_STEPS_KEPT = 10_000


def restore(args: LaunchArgs, assignment: Assignment, checkpoints: CheckpointStore, workdir: Path) -> list[str]:
    """Put the assignment's checkpoint into the script's folder; the arguments that make the script use it.

    What matches there already is removed first: it was never committed, so a killed rank may have torn it.

    Raises:
        StepError: ``checkpoint_corrupt``, or what the store reported.
    """
    folder = workdir / args.checkpoint_path
    for name in matching(folder, args.checkpoint_include):
        (folder / name).unlink()
    if not assignment.resume_digest:
        return []
    checkpoint = checkpoints.by_digest(assignment.resume_digest)
    folder.mkdir(parents=True, exist_ok=True)
    checkpoints.fetch(checkpoint, folder)
    names = matching(folder, args.checkpoint_include)
    base = Path(args.checkpoint_path)
    one = base.joinpath(*(names if len(names) == 1 else ()))
    newest = base / _newest(folder, names)
    return [arg.replace("{path}", str(one)).replace("{newest}", str(newest)) for arg in args.resume_arg]


def _newest(folder: Path, names: list[str]) -> str:
    """Of the files and subfolders that lie in ``folder`` itself, the one that was written to last."""
    written: dict[str, int] = {}
    for name in names:
        top = name.split("/", 1)[0]
        written[top] = max(written.get(top, 0), (folder / name).stat().st_mtime_ns)
    return max(written, key=lambda top: (written[top], top), default="")


class FolderWatch:
    """Commits the script's checkpoint folder in a thread, while its ranks run."""

    def __init__(
        self,
        args: LaunchArgs,
        assignment: Assignment,
        checkpoints: CheckpointStore,
        workdir: Path,
        reporter: Reporter,
    ) -> None:
        self._args = args
        self._folder = workdir / args.checkpoint_path
        self._checkpoints = checkpoints
        self._claim = Claim(assignment.generation, assignment.log_seq)
        self._reporter = reporter
        self._committed = signature(self._folder, args.checkpoint_include)
        self._last_step = assignment.resume_step
        self._steps: deque[tuple[float, int]] = deque(maxlen=_STEPS_KEPT)
        self._ranks_run: Callable[[], bool] = lambda: True
        self._closing = threading.Event()
        self._last_error: StepError | None = None
        self._thread = threading.Thread(target=self._watch, name="checkpoints", daemon=True)

    def start(self, ranks_run: Callable[[], bool]) -> None:
        """Begin; ``ranks_run`` says whether every rank of this pod still runs."""
        self._ranks_run = ranks_run
        self._thread.start()

    def step(self, step: int, when: float) -> None:
        """Rank 0 finished ``step``: what it saves later holds at least that."""
        self._steps.append((when, step))

    def stop(self) -> None:
        """Let a running commit end, begin no other."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def commit_rest(self, *, final: bool) -> Checkpoint | None:
        """After the ranks ended well: commit what lies there; ``final`` also when it was committed before.

        Raises:
            StepError: a file is cut off or still written (``finished_without_checkpoint``), or the store failed.
        """
        self.stop()
        state = signature(self._folder, self._args.checkpoint_include)
        if not state or (state == self._committed and not final):
            return None
        torn = [name for name in state if not looks_whole(self._folder / name)]
        if torn:
            text = f"every rank exited 0, but {', '.join(torn)} in {self._args.checkpoint_path} is cut off"
            raise StepError(Cause.FINISHED_WITHOUT_CHECKPOINT, text)
        time.sleep(max(0.0, SETTLED_SECONDS - (time.time() - newest_change(state))))
        try:
            return self._commit(state, final=final)
        except FilesChanged as error:
            text = f"every rank exited 0, but something still writes to {self._args.checkpoint_path}: {error}"
            raise StepError(Cause.FINISHED_WITHOUT_CHECKPOINT, text) from error

    def _watch(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            state = signature(self._folder, self._args.checkpoint_include)
            if not state or state == self._committed or not self._rests(state):
                continue
            try:
                self._commit(state, final=False)
            except FilesChanged:
                continue
            except StepError as error:
                if error.cause == Cause.FENCED or error is self._last_error:
                    # The commit log refuses this generation for good: without checkpoints training has no end.
                    self._reporter.fail(error)
                    return
                self._last_error = error
                print(f"argosy: checkpoint not committed: {error.cause}: {error}", file=sys.stderr, flush=True)
                self._closing.wait(RETRY_SECONDS)

    def _rests(self, state: Signature) -> bool:
        if time.time() - newest_change(state) < REST_SECONDS or written_now(self._folder, state):
            return False
        return self._ranks_run() and all(looks_whole(self._folder / name) for name in state)

    def _commit(self, state: Signature, *, final: bool) -> Checkpoint:
        began = time.monotonic()
        step = self._step_of(state, final)
        done = self._checkpoints.commit_directory(self._claim, step, self._folder, sorted(state), final=final)
        self._committed, self._last_step = state, done.step
        self._reporter.event(
            "checkpoint_committed",
            step=done.step,
            digest=done.digest,
            bytes=done.bytes,
            seconds=round(time.monotonic() - began, 3),
            generation=done.generation,
            final=final,
        )
        print(f"argosy: checkpoint of step {done.step} committed: {done.digest[:12]}", flush=True)
        self._prune()
        return done

    def _prune(self) -> None:
        if not self._args.checkpoint_keep:
            return
        try:
            self._checkpoints.prune(self._args.checkpoint_keep)
        except StepError as error:
            print(f"argosy: old checkpoints not removed: {error.cause}: {error}", file=sys.stderr, flush=True)

    def _step_of(self, state: Signature, final: bool) -> int:
        """The last step told before the files changed; for a script that tells none, one more than the last commit.

        A script may save before it tells the step, so at the end one later step belongs to the files as well.
        """
        changed = newest_change(state)
        told = [step for when, step in self._steps if when <= changed]
        later = [step for when, step in self._steps if when > changed]
        if final and len(later) == 1:
            told = later
        if told:
            return max(told[-1], self._last_step)
        return self._last_step if state == self._committed else self._last_step + 1
