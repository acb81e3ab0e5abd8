"""Opaque mode: a script that merely writes files into a folder has them committed.

Node rank 0 commits. A checkpoint counts when nobody has its files open for writing, it has rested for a moment, all
that is expected of it is there, and no rank of this pod had failed by then (a killed rank leaves torn files that look
finished); what changes while it is copied to the store is not committed. See units.py for what a checkpoint is,
completeness.py for when it is whole, gathering.py for files of several nodes.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import Saved
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.launch.complaints import Complaints
from argosy.steps.launch.completeness import Completeness, Flaw
from argosy.steps.launch.folder_part import SETTLED_SECONDS, FilesChanged, left_at_the_end, store_part
from argosy.steps.launch.gathering import Gatherer, GivenUp
from argosy.steps.launch.labelling import Content, Labelling
from argosy.steps.launch.pruning import Pruning
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.since_restore import SinceRestore
from argosy.steps.launch.step_clock import Label, Word
from argosy.steps.launch.units import Contents, Unit, contents
from argosy.steps.launch.whole_files import Signature, newest_change

LOOK_SECONDS = 0.1
CLOSE_LOOK_SECONDS = 0.02
"""At one file that has just changed: where the next save is near, it rests for a few of these only."""
RETRY_SECONDS = 1.0
PATIENCE_SECONDS = 30.0
"""A checkpoint that nobody writes to and that is not whole is named after so long."""
_NO_UNITS = (
    "writers is every, and these files are not in a folder or file named by a step, so nobody can tell which of the "
    "nodes' files belong together (see checkpoint.unit)"
)


class FolderWatch:
    """Commits the script's checkpoint folder in a thread, while its ranks run."""

    def __init__(
        self,
        args: LaunchArgs,
        assignment: Assignment,
        checkpoints: CheckpointStore,
        folder: Path,
        completeness: Completeness,
        reporter: Reporter,
        restored: Contents | None = None,
    ) -> None:
        """``restored``: what lay there when the ranks began, where that is some time ago."""
        self._args = args
        self._folder = folder
        self._checkpoints = checkpoints
        self._claim = Claim(assignment.generation, assignment.log_seq)
        self._completeness = completeness
        self._reporter = reporter
        self._every = args.checkpoint_writers == "every" and assignment.nnodes > 1
        self._asks = self._every or (bool(args.checkpoint_expect) and assignment.nnodes > 1)
        """Ranks of other nodes write too: nothing is committed before those nodes have answered."""
        digest, found, others = assignment.resume_digest, restored or contents(folder, args), completeness.of_others
        self._since = SinceRestore(found, others)
        self._gatherer = Gatherer(args, checkpoints, self._claim, assignment, reporter, others, self._since)
        checkpoint, last = checkpoints.by_digest(digest) if digest else None, found.units[-1] if found.units else None
        late = None if last is None else completeness.late(found, last)
        self._labels = Labelling(folder, checkpoint, last, args.checkpoint_include, late)
        self._done: dict[str, Signature] = {unit.name: self._state(found, unit) for unit in found.units}
        """What was committed, or given up, of each unit."""
        unasked = bool(digest) and assignment.nnodes > 1 and not self._asks
        self.pruning = Pruning(checkpoints, args.checkpoint_keep, others_restore=unasked)
        self._complaints = Complaints(args)
        self._ranks_run: Callable[[], bool] = lambda: True
        self._closing = threading.Event()
        self._close = False
        self._last_error: StepError | None = None
        self._thread = threading.Thread(target=self._watch, name="checkpoints", daemon=True)

    def start(self, ranks_run: Callable[[], bool]) -> None:
        """Begin; ``ranks_run`` says whether every rank of this pod still runs, or ended well."""
        self._ranks_run = ranks_run
        self._thread.start()

    def step(self, word: Word, *, anew: bool = False) -> None:
        """Rank 0 finished a step; ``anew``: what it told before counted something else."""
        self._labels.tell(word, anew=anew)

    def stop(self) -> None:
        """Let a running commit end, begin no other."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def commit_rest(self, *, final: bool, go_on: Callable[[], bool] = lambda: True) -> Saved | None:
        """After the ranks ended well: commit what lies there; ``final`` also when it was committed before.

        ``go_on`` False: wait for no other node.

        Raises:
            StepError: the newest checkpoint is not whole (``finished_without_checkpoint``), or the store failed.
        """
        self.stop()
        found, unit, flaw = self._found_at_end(go_on)
        if unit is None or (self._done.get(unit.name) == self._state(found, unit) and not final):
            if self._asks:
                self._gatherer.nothing()
            return None
        flaw = _NO_UNITS if self._every and not unit.name else flaw
        if flaw:
            raise _without_checkpoint(f"every rank exited 0, but {self._complaints.called(unit)} is not whole: {flaw}")
        try:
            return self._commit(found, unit, final=final, last=True, go_on=go_on)
        except FilesChanged as error:
            why = f"something still writes to {self._args.checkpoint_path}: {error}"
            raise _without_checkpoint(f"every rank exited 0, but {why}") from error
        except GivenUp as error:
            if not final:
                print(f"argosy: the last checkpoint was not committed: {error}", file=sys.stderr, flush=True)
                return None
            why = f"{self._complaints.called(unit)} was not committed: {error}"
            raise _without_checkpoint(f"every rank of this node exited 0, but {why}") from error

    def _found_at_end(self, go_on: Callable[[], bool]) -> tuple[Contents, Unit | None, str]:
        """What lies there, the newest unit, and what is wrong with it: in a folder that nodes share the others' ranks
        may still be writing to it.
        """
        deadline = time.monotonic() + self._args.checkpoint_timeout_seconds
        while True:
            found = contents(self._folder, self._args)
            unit = self._last_unit(found)
            flaw = self._completeness.flaw_at_end(found, unit) if unit is not None else ""
            may_change = self._asks and not self._every and go_on() and time.monotonic() < deadline
            if not flaw or not may_change:
                return found, unit, flaw
            time.sleep(LOOK_SECONDS)

    def _last_unit(self, found: Contents) -> Unit | None:
        if found.units:
            return found.units[-1]
        return Unit("", found.beside, None) if found.beside and not self._every else None

    def _watch(self) -> None:
        while not self._closing.wait(CLOSE_LOOK_SECONDS if self._close else LOOK_SECONDS):
            try:
                self._look()
            except OSError as error:  # the folder is the script's; without us nothing would be committed any more
                why = str(error.strerror or error)
                self._complaints.tell(why, f"{self._args.checkpoint_path} cannot be looked at now: {why}")

    def _look(self) -> None:
        found = contents(self._folder, self._args)
        self._labels.look(found.units)
        if self._every:
            self._since.look(found)
        found, unit = self._ready(found)
        if unit is None:
            return
        try:
            self._commit(found, unit, go_on=lambda: not self._closing.is_set())
        except FilesChanged as error:
            self._complaints.busy(unit, str(error))
        except (GivenUp, InputError) as error:
            if not self._closing.is_set():  # else the last commit may still take it
                self._done[unit.name] = self._state(found, unit)
                self._complaints.not_committed(unit, f"{error}; the next one is tried")
        except StepError as error:
            if error.cause == Cause.FENCED or error is self._last_error:
                # The commit log refuses this generation for good: without checkpoints training has no end.
                self._reporter.fail(error)
                self._closing.set()
                return
            self._last_error = error
            self._complaints.rests()
            print(f"argosy: checkpoint not committed: {error.cause}: {error}", file=sys.stderr, flush=True)
            self._closing.wait(RETRY_SECONDS)

    def _ready(self, found: Contents) -> tuple[Contents, Unit | None]:
        """The newest whole unit, unless that, or a newer one, was committed before; and what lies beside it."""
        self._close = False
        if not found.units:
            self._complaints.rests()
        for unit in reversed(found.units):
            if self._every and not unit.name:
                self._complaints.not_committed(unit, _NO_UNITS)
                return found, None
            if self._done.get(unit.name) == self._state(found, unit):
                if unit is found.units[-1]:
                    self._complaints.rests()
                return found, None
            committed = unit.files.items() <= self._done.get(unit.name, {}).items()
            tired = not committed and self._completeness.rested(unit) > PATIENCE_SECONDS
            seen = self._completeness.without_late(found, unit) if tired else found
            flaw = self._completeness.flaw(seen, unit, self._ranks_run)
            if flaw is None:
                return seen, unit
            if committed:  # and meanwhile the script's ``latest`` names one that is not there yet
                return found, None
            self._close = self._close or (flaw.busy and len(unit.files) == 1)
            self._note(unit, flaw, newest=unit is found.units[-1])
        return found, None

    def _note(self, unit: Unit, flaw: Flaw, newest: bool) -> None:
        if flaw.busy:
            self._complaints.busy(unit, flaw.text)
            return
        if newest:  # an older one that is not whole says nothing of that
            self._complaints.rests()
        age = self._completeness.rested(unit)
        if age > PATIENCE_SECONDS and self._ranks_run():
            self._complaints.not_committed(unit, f"{flaw.text}, and nothing was written for {age:.0f} s")

    def _state(self, found: Contents, unit: Unit) -> Signature:
        """What makes a commit of the unit another than the one before: its files, who points to it, what came after."""
        pointers = self._completeness.pointers(found) if unit.name else {}
        return {**unit.files, **pointers, **self._completeness.late(found, unit)}

    def _files(self, found: Contents, unit: Unit, final: bool) -> Signature:
        """The unit's files, and what goes along with them."""
        files = dict(unit.files)
        if final and (self._every or not self._asks):  # on a folder that nodes share another's rank may write still
            files = left_at_the_end(self._folder, self._args, self._complaints.tell) | files
        if not unit.name:
            return files
        if self._args.checkpoint_units_stored == "all":
            for other in found.units:
                if self._completeness.flaw(found, other, lambda: True, newest=False) is None:
                    files |= other.files
        return files | self._completeness.beside(found, unit, ended=final)

    def _commit(
        self, found: Contents, unit: Unit, *, final: bool = False, last: bool = False, go_on: Callable[[], bool]
    ) -> Saved | None:
        """None: this content is committed already, and need not be final."""
        began = time.monotonic()
        state = self._state(found, unit)
        label = self._labels.label(unit, late := self._completeness.late(found, unit), final=final)
        files = self._files(found, unit, final)
        if last:
            age = time.time() - newest_change({**found.beside, **files})
            time.sleep(min(SETTLED_SECONDS, max(0.0, SETTLED_SECONDS - age)))  # it may lie ahead of us
        if self._asks:
            content: Content = {}
            progress = self._labels.progress(unit, label, new=self._done.get(unit.name) != state)
            done: Saved | None = self._gatherer.commit(
                label.step, unit, self._folder, files, final=final, last=last, go_on=go_on,
                meta=self._labels.meta(content, progress),
            )  # fmt: skip
        else:
            done, content, progress = self._commit_own(unit, label, files, final=final, last=last)
        self._done[unit.name] = state
        self._complaints.rests()
        if done is None:
            return None
        self._labels.committed(unit, label, content, progress, late)
        told = {} if label.told is None else {"told": label.told, "relative": label.relative}
        self._reporter.event(
            "checkpoint_committed",
            step=done.step,
            step_from=label.source,
            digest=done.digest,
            bytes=done.bytes,
            seconds=round(time.monotonic() - began, 3),
            generation=done.generation,
            final=final,
            pod=self._reporter.pod,
            **told,
        )
        print(f"argosy: checkpoint of step {done.step} committed: {done.digest[:12]}", flush=True)
        self.pruning.prune()
        return done

    def _commit_own(
        self, unit: Unit, label: Label, files: Signature, *, final: bool, last: bool
    ) -> tuple[Saved | None, Content, int]:
        """Files that this node alone has; they are committed unless the commit before holds the same bytes."""
        name = self._checkpoints.new_save(self._claim, label.step)
        writer = self._checkpoints.part(name, 0)
        part, content = store_part(writer, self._folder, files, settled=last), writer.content()
        new = self._labels.is_new(content)
        progress = self._labels.progress(unit, label, new=new, content=content)
        if not new and not final:
            return None, content, progress
        meta = self._labels.meta(content, progress)
        done = self._checkpoints.commit(
            self._claim, name, label.step, [part], kind="files", world_size=1, final=final, meta=meta
        )
        return done, content, progress


def _without_checkpoint(text: str) -> StepError:
    return StepError(Cause.FINISHED_WITHOUT_CHECKPOINT, text, quote=text)
