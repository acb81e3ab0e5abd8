"""The run that a command names: on this machine, on a cluster, or by its place in a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.record.building import STORE_URI, prefix_of
from argosy.steps.record.facts import RunRecord
from argosy.steps.store.base import ObjectStore
from argosy.workflows.cli.output import next_commands, say, typed
from argosy.workflows.cli.run_folder import RunFolder, find_run
from argosy.workflows.cluster.place import ClusterPlace


class Run(Protocol):
    """What every reading verb needs of a run."""

    @property
    def name(self) -> str:
        """The workflow's name."""

    @property
    def where(self) -> str:
        """Where it was found, for messages."""

    @property
    def report(self) -> Path:
        """Where the HTML report goes that nobody named a file for."""

    def command(self, verb: str, *arguments: object) -> str:
        """``argosy VERB ...`` as it finds this run again."""

    def state(self) -> dict[str, Any]:
        """What the engine knows now."""

    def standing(self) -> dict[str, Any]:
        """The same, with what is known of a run whose engine says nothing of it."""

    def store(self, *, quiet: bool = False) -> ObjectStore | None:
        """The run's store; None for a workflow that is none of ours."""

    def record(self) -> RunRecord:
        """What is known now."""


def find(state_dir: Path, run_id: str | None, place: ClusterPlace | None) -> Run:
    """``run_id`` is a workflow name, a run id of this machine, or a uri; None: the run that was started last.

    ``place`` None: the verb reaches no cluster.

    Raises:
        InputError: there is no such run.
    """
    if run_id is not None and "://" in run_id:
        from argosy.workflows.cluster.stored_run import find_stored_run

        return find_stored_run(run_id)
    if place is None:
        return find_run(state_dir, run_id)
    if place.named:
        from argosy.workflows.cluster.run import find_cluster_run

        return find_cluster_run(place, run_id)
    try:
        return find_run(state_dir, run_id)
    except InputError as error:
        raise InputError(f"{error}; a cluster's run is found with -n NAMESPACE") from None


def as_far_as_known(run: Run) -> tuple[RunRecord, str]:
    """As much as can be known here, and what stands in the way of the rest ("" nothing).

    A run has its event log in a store that this machine may not be able to read, or that does not answer now.
    """
    from argosy.workflows.cluster.run import ClusterRun

    try:
        return run.record(), ""
    except (StepError, InputError) as error:
        # What is wrong in a file of this machine is not the store's silence.
        if not isinstance(run, ClusterRun if isinstance(error, InputError) else ClusterRun | RunFolder):
            raise
        return run.outline(), str(error)


def known(run: Run) -> RunRecord:
    """The same; what stands in the way is said on standard error."""
    record, missing = as_far_as_known(run)
    if missing:
        say(f"warning: only what the engine says, its event log cannot be read here: {missing}", err=True)
    return record


def told_deleted(run: Run, seen: Mapping[str, Any]) -> None:
    """Say that the run's Workflow is gone; ``seen``: its state, when it was looked at last."""
    say(f"{run.name} was deleted before its end, and its gang with it", err=True)
    if seen and (prefix := prefix_of(seen)):
        place = f"{seen['annotations'][STORE_URI]}/{prefix}"
        next_commands([(typed("argosy", "status", place), "what it did")], err=True)
