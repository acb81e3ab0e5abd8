"""What can be asked of a run that was started, and told to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.steps.contract.errors import InputError
from argosy.steps.record.building import prefix_of
from argosy.steps.record.story import ending, failed_step
from argosy.steps.record.summary import summary
from argosy.workflows.cli.run_folder import ENDED, RunFolder, known_run, latest_names
from argosy.workflows.handle.words import in_python

if TYPE_CHECKING:
    from argosy.steps.record.facts import RunRecord
    from argosy.workflows.cli.checkpoint.run import CheckpointedRun
    from argosy.workflows.cli.finding import Run

POLL_SECONDS, CLUSTER_POLL_SECONDS = 0.2, 2.0


class RunFailed(Exception):
    """A run that has ended without success; ``cause`` is one of docs' closed list, "" when it was only stopped, or
    has trained what its gate refused.
    """

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint of a run: ``bytes`` its size, ``created`` seconds since 1970, ``state`` live, corrupt, …"""

    step: int
    digest: str
    bytes: int
    created: float
    final: bool
    state: str


class Handle:
    """A run of this machine or of a cluster; every call asks anew."""

    def __init__(self, run: Run) -> None:
        if isinstance(run, str):
            raise InputError(f"run = {run!r}: a name is no run; argosy.find({run!r}) gives its handle")
        self._run = run

    def __repr__(self) -> str:
        return f"<argosy run {self.name} in {self._run.where}: {self.phase}>"

    @property
    def name(self) -> str:
        """The workflow's name: what the command line calls it by."""
        return self._run.name

    @property
    def phase(self) -> str:
        """Pending, Running, Succeeded, Failed, Error; Interrupted: stopped, and it can go on; Silent: known by its
        store only, which says no end and has not heard of it for a quarter of an hour.
        """
        # In this order: an engine that ends in between has written its last word before it lets go.
        goes_on = self._run.engine_runs() if isinstance(self._run, RunFolder) else True
        state = self._run.state()
        phase = "Silent" if "silent_since" in state else str(state.get("phase") or "Pending")
        return phase if goes_on or phase in ENDED else "Interrupted"

    @property
    def done(self) -> bool:
        """Whether it will not change by itself any more."""
        return self.phase not in ("Pending", "Running", "Silent")

    @property
    def metric(self) -> float | None:
        """The number of the evaluation; None before it, or without [evaluation]."""
        evaluation = self._run.record().evaluation
        return None if evaluation is None else evaluation.value

    @property
    def promoted(self) -> bool:
        """Whether its checkpoint passed the gate and was promoted."""
        return self._run.record().promotion is not None

    @property
    def refused(self) -> bool:
        """Whether its checkpoint was refused by the gate: what ``argosy run`` ends with code 3 for."""
        return self._run.record().refused

    def status(self) -> dict[str, Any]:
        """What ``argosy status --json`` prints: phase, attempts, steps, digests, metric, goodput, ….

        The loss of the last step stands in ``loss``; None when the script told none.
        """
        record = self._run.record()
        points = record.restarts[-1].points if record.restarts else ()
        return {**summary(record, ""), "loss": points[-1].loss if points else None}

    def wait(self, timeout: float | None = None, *, check: bool = True) -> str:
        """Until it has ended; the phase. A KeyboardInterrupt ends the waiting, not the run.

        Args:
            timeout: seconds; None: for ever.
            check: raise when it has not succeeded, or was refused by the gate (its phase is Succeeded).

        Raises:
            TimeoutError: it goes on still.
            RunFailed: it failed, was stopped or refused; its text says why, its ``cause`` names the class.
        """
        if isinstance(timeout, str):
            raise InputError(f"timeout = {timeout!r}: seconds are needed, as a number")
        until = None if timeout is None else time.monotonic() + timeout
        while not self.done:
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"{self.name} goes on after {timeout:g} s")
            time.sleep(POLL_SECONDS if isinstance(self._run, RunFolder) else CLUSTER_POLL_SECONDS)
        record = self._run.record()
        if check and (record.phase != "Succeeded" or record.refused):
            raise _failure(self.name, record)
        return self.phase

    @in_python()
    def logs(self, *, rank: int | None = None, tail: int | None = None, follow: bool = False) -> Iterator[str]:
        """Lines that pods and ranks wrote, with ``follow`` as they come.

        Args:
            rank: only those of this global rank.
            tail: of each pod its last ones, so many; a rank has had a pod in each gang.
            follow: go on until the run has ended.

        Raises:
            InputError: no such number.
        """
        from argosy.workflows.cli.logs import records

        for name, number in (("rank", rank), ("tail", tail)):
            if number is not None and (not isinstance(number, int) or number < 0):
                raise InputError(f"{name} = {number!r}: a whole number from 0 on is needed")
        return (str(each["text"]) for each in records(self._run, follow, rank, None, tail))

    @in_python()
    def checkpoints(self) -> list[SavedCheckpoint]:
        """Those that are there, newest first.

        Raises:
            InputError: a workflow without a training has none.
        """
        commits = self._checkpointed().store.explain().commits
        return [
            SavedCheckpoint(each.step, each.digest, each.bytes, each.created, each.final, each.state)
            for each in commits
            if each.state != "pruned"
        ]

    @in_python()
    def get_checkpoint(self, folder: str | Path, checkpoint: int | str | None = None) -> list[Path]:
        """The files of a checkpoint (a step or the beginning of a digest; None: a resume's), each verified.

        Raises:
            InputError: there is no such checkpoint, or something else lies in the folder. StepError: it is corrupt.
        """
        from argosy.workflows.cli.checkpoint.get import fetch

        named = None if checkpoint is None else str(checkpoint)
        _, files = fetch(self._checkpointed(), named, Path(folder))
        return [Path(folder) / name for name in files]

    @in_python()
    def stop(self) -> str:
        """Stop it, as ``argosy stop`` does, and say how that went."""
        from argosy.workflows.cli.stop import stop

        return stop(self._run)[1]

    @in_python()
    def report(self, path: str | Path | None = None) -> Path:
        """Write the HTML report as the run stands now; None: beside its logs."""
        from argosy.workflows.cli.report import write_report

        return write_report(self._run, None if path is None else Path(path))[1]

    def _checkpointed(self) -> CheckpointedRun:
        from argosy.steps.checkpoint.store import CheckpointStore
        from argosy.workflows.cli.checkpoint.run import CheckpointedRun

        store, prefix = self._run.store(), prefix_of(self._run.state())
        if store is None or not prefix:
            raise InputError(f"RUN {self.name!r}: a workflow without a training has no checkpoints; name another")
        return CheckpointedRun(self.name, CheckpointStore(store, prefix))


def _failure(name: str, record: RunRecord) -> RunFailed:
    if record.phase == "Succeeded" and record.gate is not None:
        return RunFailed(f"{name}: refused by the gate: {record.gate.reason}", "")
    last = next((each for each in reversed(record.restarts) if each.failed), None)
    if record.interrupted and not record.done:
        return RunFailed(f"{name} was stopped ({record.interrupted}); run it again and it goes on", "")
    step = failed_step(record)
    if step is not None and (last is None or step.template != "train"):  # the training went on from what failed in it
        why = step.quote or step.message
        return RunFailed(f"{name}: the step {step.name} failed" + (f": {why}" if why else ""), step.cause)
    if last is None:
        return RunFailed(f"{name}: {record.phase}: {record.message}", "")
    quote = f": {last.quote}" if last.quote else ""
    return RunFailed(f"{name}: {record.phase}: {ending(last)}{quote}", last.cause or "")


@in_python()
def find(name: str | None = None, *, namespace: str = "", state_dir: str | Path = ".argosy") -> Handle:
    """A run that was started before: by its workflow's name, run id or uri; None: the one started last.

    Raises:
        InputError: there is no such run.
    """
    if name is not None and not isinstance(name, str):
        raise InputError(f"name = {name!r}: the name of a run is needed, as a text")
    from argosy.workflows.cli.finding import find as find_run
    from argosy.workflows.cluster.place import ClusterPlace

    folder = Path(state_dir).absolute()
    if namespace or "://" in (name or ""):
        return Handle(find_run(folder, name, ClusterPlace(namespace=namespace)))
    if (found := known_run(folder, name)) is not None:
        return Handle(found)
    if not (known := latest_names(folder)):
        raise InputError(f"state_dir = {str(folder)!r}: no run here; start one with TrainingRun(...).run()")
    raise InputError(
        f"name = {name!r}: no such run in {folder}; known: {known}; a cluster's run is found with "
        f"find({name!r}, namespace=...)"
    )
