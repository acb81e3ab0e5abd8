"""Which run's checkpoints are meant, and which of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.checkpoint.history import Commit
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.layout import seq_name
from argosy.steps.record.building import prefix_of
from argosy.steps.record.heard import going_on, last_sign
from argosy.steps.record.wording import duration, short
from argosy.steps.store.opening import PERSON_SECONDS, open_store
from argosy.workflows.cli.run_folder import RunFolder, find_run, not_running
from argosy.workflows.cluster.store import open_run_store

ALIVE_SECONDS = 180.0
"""A run whose last sign of life is younger may still be training; three times the interval of a heartbeat."""
PREFIX_DIGITS = 6


@dataclass(frozen=True)
class CheckpointedRun:
    """The checkpoints of a run, and how to name the run in a command."""

    name: str
    store: CheckpointStore
    folder: RunFolder | None = None
    """Its folder on this machine, when it was found by name."""

    def command(self, verb: str, *arguments: object) -> str:
        """``argosy VERB RUN ...`` as it finds this run again."""
        from argosy.workflows.cli.output import typed

        words = verb.split()
        if self.folder is not None:
            return self.folder.command(words[0], *words[1:], self.name, *arguments)
        return typed("argosy", *words, self.name, *arguments)

    def sign_of_life(self) -> str:
        """Why the run may still be training, "" when nothing says so."""
        if self.folder is not None:
            if self.folder.engine_runs():
                return "its engine runs on this machine"
            other = going_on(self.store.store, self.store.prefix, not_running(self.folder.state_dir))
            return f"workflow {other} goes on with it" if other else ""
        return living(last_sign(self.store.store, self.store.prefix))


def living(sign: float) -> str:
    """Why a run may still train whose last sign of life is of ``sign`` (seconds since 1970); "": it is too old."""
    age = time.time() - sign
    over = f"a run that has ended gives none for {duration(ALIVE_SECONDS)}"
    return f"its last sign of life is {duration(max(age, 0))} old ({over})" if age < ALIVE_SECONDS else ""


def find_checkpoints(state_dir: Path, run: str | None) -> CheckpointedRun:
    """The run called ``run`` on this machine, or the one in this folder or at this uri.

    Raises:
        InputError: there is no such run, or it has no commit log.
    """
    if run is not None and ("://" in run or "/" in run or run.startswith(".")):
        return _in_store(run)
    try:
        folder = find_run(state_dir, run)
    except InputError as error:
        if run is None:
            raise
        if (Path(run) / "log" / seq_name(1)).is_file():  # what Checkpointer("ckpts") writes, named as the script does
            return _in_store(run)
        raise InputError(f"{error}; one of a cluster is named by its store's uri: STORE/NAME/runs/{run}") from None
    store, prefix = folder.store(), prefix_of(folder.state())
    if store is None or not prefix:
        raise InputError(f"RUN {folder.path.name!r}: a workflow without a training has no checkpoints; name another")
    return CheckpointedRun(folder.path.name, CheckpointStore(store, prefix), folder)


def _in_store(run: str) -> CheckpointedRun:
    """The run whose folder or uri this is."""
    uri = run if "://" in run else Path(run).resolve().as_uri()
    found = CheckpointedRun(run, CheckpointStore(open_store(uri, retry_seconds=PERSON_SECONDS), ""))
    if found.store.log.read(1) is None:
        root, *place = uri.rsplit("/", 3)
        if "://" in run and place[1:2] == ["runs"]:
            open_run_store(root, {}, "")  # a volume that this machine does not have is told of by its name
        remedy = "name the folder or uri of one run, which ends in /NAME/runs/RUN_ID"
        raise InputError(f"RUN {run!r}: no commit log (log/0000000001.json) there; {remedy}")
    return found


def choose(commits: Iterable[Commit], text: str) -> Commit:
    """The one commit that ``text`` names: a step, or at least 6 digits of the digest; of several the newest, where it
    holds what the others do: a run that ends at a save commits that again, as its end.

    Raises:
        InputError: none is meant, or more than one.
    """
    commits = list(commits)
    digits = text.lower() if len(text) >= PREFIX_DIGITS else "no digest begins like this"
    named = [commit for commit in commits if text == str(commit.step) or commit.digest.startswith(digits)]
    meant = [commit for commit in named if commit.state != "pruned"]
    if len(meant) == 1:
        return meant[0]
    if meant:
        if meant[0].state == "live" and all(_files(meant[0]) >= _files(each) for each in meant[1:]):
            return meant[0]
        listed = ", ".join(f"{short(commit.digest)} (step {commit.step})" for commit in meant)
        raise InputError(f"CHECKPOINT {text!r}: {len(meant)} are meant: {listed}; write more digits of the digest")
    if named:
        raise InputError(f"CHECKPOINT {text!r}: was pruned, its bytes are gone; argosy checkpoint list has the others")
    known = [commit for commit in commits if commit.state != "pruned"]
    listed = ", ".join(f"{commit.step} ({short(commit.digest)})" for commit in known[:5]) or "none"
    rule = f"a step, or at least {PREFIX_DIGITS} digits of a digest"
    raise InputError(f"CHECKPOINT {text!r}: no such checkpoint in this run; write {rule}; the newest: {listed}")


def _files(commit: Commit) -> set[tuple[str, str]]:
    """What it holds, with the SHA-256 of each; none where its manifests are not whole."""
    return set() if commit.checkpoint is None else {(each.path, each.sha256) for each in commit.checkpoint.files}
