"""A checkpoint of which ranks of several nodes write files.

Node 0 sees one complete, draws a name for the save and asks the others through the supervisor. With writers = every
each stores the files on its own disk when they are complete, and answers. On a folder that the nodes share node 0
stores them all, and the others answer that none of their ranks still writes, or died in the middle of it: only they
can see that. Node 0 commits when all have answered. A node that cannot, or that needs too long, makes that save be
given up; names are never used twice, so a late answer belongs to nothing.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import PartRef, Saved, generation_of
from argosy.steps.checkpoint.node_paths import node_prefix
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment, Part, Save
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.launch.completeness import Completeness
from argosy.steps.launch.folder_part import SETTLED_SECONDS, FilesChanged, store_part
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.since_restore import SinceRestore
from argosy.steps.launch.units import Contents, Unit, contents, is_later
from argosy.steps.launch.whole_files import Signature, facts, open_for_writing

LOOK_SECONDS = 0.1
SLACK_SECONDS = 5.0
"""A node that finds in time that its files will not be complete must be heard before it is given up as silent."""
_REWRITTEN_SECONDS = 2.0
"""After so long a restored file in a unit that was written again since is one that the script leaves as it is."""


class GivenUp(Exception):
    """This save was not committed; its parts belong to nothing."""


class Gatherer:
    """Node 0's side: asks for parts and commits when all are there."""

    def __init__(
        self,
        args: LaunchArgs,
        checkpoints: CheckpointStore,
        claim: Claim,
        assignment: Assignment,
        reporter: Reporter,
        of_others: Signature,
        since: SinceRestore,
    ) -> None:
        """``of_others``: restored files that, as long as they are so, other nodes save. ``since``: it tells them."""
        self._checkpoints = checkpoints
        self._claim = claim
        self._others = assignment.nnodes - 1
        self._reporter = reporter
        self._seconds = float(args.checkpoint_timeout_seconds)
        self._every = args.checkpoint_writers == "every"
        """Nobody else writes here, so what lies beside the unit may be the next save's as soon as ours is stored: a
        script that saves faster than the nodes answer moves ``latest`` on each time, and would never have a commit.
        """
        self._below = node_prefix(0) if self._every else ""
        self._of_others = of_others
        self._since = since

    def commit(
        self,
        step: int,
        unit: Unit,
        folder: Path,
        files: Signature,
        *,
        final: bool,
        last: bool,
        go_on: Callable[[], bool],
        meta: dict[str, Any],
    ) -> Saved:
        """Commit our files and the other nodes'; ``last``: our ranks ended well, so no other save follows;
        ``go_on`` False: do not wait any longer.

        Raises:
            GivenUp: another node could not give its part. FilesChanged, StepError: see ``store_part`` and ``commit``.
        """
        name = self._checkpoints.new_save(self._claim, step)
        again, touched = sorted(self._since.again), bool(self._since.touched)
        self._reporter.gather(Save(name=name, unit=unit.name, last=last, again=again, touched=touched))
        try:
            own = _without(files, self._of_others)
            mine = store_part(self._checkpoints.part(name, 0), folder, own, self._below, settled=last)
            parts = [mine, *self._gathered(name, go_on)]
            judged = unit.files if self._every else files
            if facts(folder, judged) != judged:  # a rank of another node was still writing
                raise FilesChanged(f"{unit.name} changed while the other nodes were asked; not committed")
        finally:
            self._reporter.gather(None)
        return self._checkpoints.commit(
            self._claim, name, step, parts, kind="files", world_size=len(parts), final=final, meta=meta
        )

    def nothing(self) -> None:
        """Our ranks ended and nothing is left to save: the others need not wait for a last save."""
        self._reporter.gather(Save(name="", unit="", last=True))

    def _gathered(self, name: str, go_on: Callable[[], bool]) -> list[PartRef]:
        deadline = time.monotonic() + self._seconds + SLACK_SECONDS
        while True:
            answers = {answer.node_rank: answer for answer in self._reporter.parts(name)}
            for answer in answers.values():
                if answer.state == "flawed":
                    raise GivenUp(f"{answer.node}: {answer.flaw}")
            done = [answer for _, answer in sorted(answers.items()) if answer.state == "given"]
            if len(done) == self._others:
                return [PartRef(**answer.ref) for answer in done if answer.ref]
            if not go_on():
                raise GivenUp("the ranks are being ended")
            silent = [str(rank) for rank in range(1, self._others + 1) if rank not in answers]
            if silent and time.monotonic() > deadline:
                raise GivenUp(f"no answer of node rank {', '.join(silent)} within {self._seconds:.0f} s")
            time.sleep(LOOK_SECONDS)


class Contributor:
    """The other nodes' side: a thread that answers node 0's saves, one after the other."""

    def __init__(
        self,
        args: LaunchArgs,
        assignment: Assignment,
        checkpoints: CheckpointStore,
        folder: Path,
        completeness: Completeness,
        reporter: Reporter,
    ) -> None:
        self._args = args
        self._assignment = assignment
        self._checkpoints = checkpoints
        self._folder = folder
        self._completeness = completeness
        self._reporter = reporter
        self._since = SinceRestore(contents(folder, args), completeness.of_others)
        self._looks = args.checkpoint_writers == "every" and self._since.tells
        """At what its ranks write meanwhile, until a later save is given: those of a gang that agree once do so on."""
        self._ranks_run: Callable[[], bool] = lambda: True
        self._ended = threading.Event()
        self._closing = threading.Event()
        self._answered: str | None = None
        self._last_done = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="checkpoints", daemon=True)

    def start(self, ranks_run: Callable[[], bool]) -> None:
        """Begin; ``ranks_run`` says whether every rank of this pod still runs, or ended well."""
        self._ranks_run = ranks_run
        self._thread.start()

    def finish(self, *, go_on: Callable[[], bool]) -> None:
        """Our ranks ended well: give our part of the last save, or learn that there is none."""
        self._ended.set()
        while not self._last_done.wait(LOOK_SECONDS) and self._thread.is_alive() and go_on():
            pass

    def stop(self) -> None:
        """Answer nothing more."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _serve(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            with contextlib.suppress(OSError):  # the folder is the script's, and may be anything now and then
                if self._looks:
                    self._since.look(contents(self._folder, self._args))
            save = self._reporter.asked()
            if save is None or save.name == self._answered:
                continue
            if not save.name:
                self._last_done.set()
                continue
            if generation_of(save.name) == self._assignment.generation:
                self._answer(save)

    def _answer(self, save: Save) -> None:
        """Store our part when our files of this unit are complete, or say why that cannot be."""
        deadline = time.monotonic() + self._args.checkpoint_timeout_seconds
        while not self._closing.wait(LOOK_SECONDS):
            if self._reporter.asked() != save:
                return  # given up, or the next one is asked for already
            late = time.monotonic() > deadline
            try:
                told = self._try(save, late=late)
            except FilesChanged:
                continue
            except OSError as error:
                told = self._flawed(save, str(error)) if late else None
            except (StepError, InputError) as error:
                told = self._flawed(save, str(error))
            if told is not None:
                self._tell(save, told)
                return

    def _tell(self, save: Save, told: Part) -> None:
        self._reporter.answer(told)
        self._answered = save.name
        if told.flaw:
            print(f"argosy: no part of {save.unit} for its checkpoint: {told.flaw}", file=sys.stderr, flush=True)
        if save.last:
            self._last_done.set()

    def _part(self, save: Save, state: Literal["storing", "given", "flawed"], **fields: Any) -> Part:
        node, rank = self._reporter.node, self._assignment.node_rank
        return Part(save=save.name, node=node, node_rank=rank, state=state, **fields)

    def _flawed(self, save: Save, flaw: str) -> Part:
        return self._part(save, "flawed", flaw=flaw)

    def _try(self, save: Save, *, late: bool) -> Part | None:
        """Our answer, or None: not yet. While a rank has ended and we do not know how, there is no answer."""
        ended = self._ended.is_set()
        found = contents(self._folder, self._args)
        if self._args.checkpoint_writers != "every":
            return self._testimony(save, found, ended=ended, late=late)
        self._since.look(found)
        if mixture := self._since.mixture(save, self._reporter.node):
            self._reporter.fail(StepError(Cause.CHECKPOINT_MISMATCH, mixture, quote=mixture))
            return self._flawed(save, mixture)
        unit = next((unit for unit in found.units if unit.name == save.unit), None)
        if unit is not None and save.unit in save.again and self._is_restored(unit) and not (ended or late):
            return None  # ours is the restored one still: either our ranks write it again too, or a later one
        if unit is None:
            has = ", ".join(unit.name for unit in found.units) or "nothing"
            gone = ended or late or _passed(save, found)
            return self._flawed(save, f"there is no {save.unit}, but {has}") if gone else None
        flaw = self._completeness.flaw(found, unit, self._ranks_run, ended=ended)
        if flaw is not None:
            return self._flawed(save, f"{unit.name}: {flaw.text}") if late or (ended and not flaw.busy) else None
        if ended:
            time.sleep(SETTLED_SECONDS)
        beside = self._completeness.beside(found, unit, ended=ended)
        files = _without({**unit.files, **beside}, self._completeness.of_others)
        self._reporter.answer(self._part(save, "storing"))
        part = self._checkpoints.part(save.name, self._assignment.node_rank)
        stored = store_part(part, self._folder, files, node_prefix(self._assignment.node_rank), settled=ended)
        self._looks = self._looks and not self._since.is_later(save.unit)
        return self._part(save, "given", ref=asdict(stored))

    def _is_restored(self, unit: Unit) -> bool:
        """Whether our ranks have yet to write it again, or all of it."""
        begun = unit.name in self._since.touched and self._completeness.rested(unit) >= _REWRITTEN_SECONDS
        return unit.name in self._since.own and unit.name not in self._since.again and not begun

    def _testimony(self, save: Save, found: Contents, *, ended: bool, late: bool) -> Part | None:
        writing = sorted(open_for_writing(self._folder, found.files))
        if not writing and (ended or self._ranks_run()):
            return self._part(save, "given")
        flaw = f"{writing[0]} is open for writing" if writing else "a rank of this node has ended"
        return self._flawed(save, flaw) if late else None


def _without(files: Signature, others: Signature) -> Signature:
    return {name: state for name, state in files.items() if others.get(name) != state}


def _passed(save: Save, found: Contents) -> bool:
    """Whether the script has removed the unit that is asked for: only later ones are there."""
    return bool(found.units) and all(is_later(unit.name, save.unit) for unit in found.units)
