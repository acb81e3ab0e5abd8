"""``argosy rm``."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from errno import ENOENT, ENOTEMPTY
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from argosy.steps.contract.arguments import AdmitArgs
from argosy.steps.contract.errors import InputError
from argosy.steps.paths import resolve_file_uri
from argosy.steps.record.building import build_record, prefix_of
from argosy.steps.record.heard import going_on, last_heard, last_sign
from argosy.steps.record.wording import count, duration, size
from argosy.steps.runlog import read_events
from argosy.workflows.cli.checkpoint.run import living
from argosy.workflows.cli.document import claim_mounts
from argosy.workflows.cli.finding import Run, find
from argosy.workflows.cli.options import as_json, known_runs, place_or_here, state_dir
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.run_folder import ENDED, RunFolder, mounted, not_running
from argosy.workflows.cluster.place import ClusterPlace
from argosy.workflows.cluster.stored_run import StoredRun

REMOVED = "removed"
"""Beside ``runs``: what lies in it is no run any more; what an interrupted call left there, the next one removes."""

_BLOCK = 512
"""Bytes of a block as ``stat`` counts them, whatever the disk's own are."""


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, shell_complete=known_runs)
@click.option("--checkpoints", is_flag=True, help="Also its checkpoints and events in the store: the training is gone.")
@place_or_here
@as_json
@state_dir
def command(runs: tuple[str, ...], checkpoints: bool, place: ClusterPlace, as_json: bool, state_dir: Path) -> None:
    """Remove what ended runs left: the folder with their nodes' disks and logs, or on a cluster the Workflow.

    Checkpoints stay in the store unless --checkpoints is given; of a run of which something was ever promoted they
    always stay. A run that goes on is refused: stop it first. With --checkpoints so is one whose run-id another
    workflow goes on with, here or on any cluster. RUN may be the uri of its place in a store, where nothing else of it
    is left; it is refused while it gives signs of life.

    \b
    Example:
      argosy rm gpt-x7k2p
      argosy rm gpt-x7k2p gpt-9mz4q --checkpoints
      argosy rm s3://bucket/store/gpt/runs/gpt-x7k2p --checkpoints
    """
    chosen = [find(state_dir, each, place) for each in dict.fromkeys(runs)]
    for run in chosen:
        _check_over(run, checkpoints=checkpoints)
    told = []
    for run in chosen:
        objects, freed = _remove_stored(run) if checkpoints else (0, 0)
        stays = "" if checkpoints else _place_in_store(run)
        freed += _remove_run(run)
        told.append({"run": run.name, "objects": objects, "bytes": freed})
        if not as_json:
            stored = f" and {count(objects, 'object')} in its store" if checkpoints else ""
            say(f"removed {run.name}{stored}, {size(freed)}")
            if stays:
                say(f"its checkpoints stay: {typed('argosy', 'checkpoint', 'list', stays)}")
    if as_json:
        emit({"removed": told})
        return
    where = [run.root for run in chosen[-1:] if isinstance(run, StoredRun)] or place.flags(place.namespace)
    next_commands([(typed("argosy", "ls", *where), "what is left")])


def _check_over(run: Run, *, checkpoints: bool) -> None:
    if isinstance(run, StoredRun):
        if not checkpoints:
            raise InputError(
                f"RUN {run.name!r}: nothing of it but what lies in {run.where}; --checkpoints removes that"
            )
        alive = _sign_of_life(run)
        if alive:
            raise InputError(f"RUN {run.name!r}: {alive}; stop it where it goes on, or wait until it gives none")
        return
    if isinstance(run, RunFolder):
        running = run.engine_runs()
    else:
        from argosy.workflows.cluster.run import ClusterRun

        assert isinstance(run, ClusterRun)
        running = not run.has_ended()
    if running:
        raise InputError(f"RUN {run.name!r}: it runs now; stop it first: {run.command('stop', run.name)}")
    state, store = run.state(), run.store() if checkpoints else None
    prefix, ended = prefix_of(state), {str(state.get("uid", ""))}
    ended |= not_running(run.state_dir) if isinstance(run, RunFolder) else set()
    if store is not None and prefix and (other := going_on(store, prefix, ended)):
        raise InputError(
            f"RUN {run.name!r}: workflow {other} goes on with its checkpoints: it has not ended, and was heard of "
            "lately; stop that first, or leave --checkpoints out"
        )


def _sign_of_life(run: StoredRun) -> str:
    """Why it may still go on; "" where nothing says so. What tells it is read once: a store may be far away."""
    store = run.store()
    sign = last_sign(store, run.prefix)
    if alive := living(sign):
        return alive
    if run.summary().get("phase") in ENDED:  # as the last said that ended
        other = going_on(store, run.prefix)
        return f"workflow {other} goes on with it: it has not ended, and was heard of lately" if other else ""
    # Between two steps nobody's heart beats: the next pod may wait for a node, or for its image.
    age = time.time() - last_heard(store, run.prefix, sign)
    return (
        f"it has not ended, and was last heard of {duration(max(age, 0.0))} ago"
        if age < AdmitArgs.lease_seconds
        else ""
    )


def _remove_run(run: Run) -> int:
    """The run's folder or Workflow; bytes that are free now."""
    if isinstance(run, StoredRun):
        return 0
    if isinstance(run, RunFolder):
        removed = run.state_dir / REMOVED
        while run.path.exists():
            with suppress(FileExistsError):  # exist_ok looks again, and it may have gone since
                removed.mkdir()
            # Its own name goes at once, so that an interruption leaves no half of a run.
            with suppress(FileNotFoundError):  # another call removes what this one is about to use
                run.path.rename(removed / f"{run.name}-{uuid.uuid4().hex}")
        freed = sum(map(_bytes_of, _below(removed)))
        shutil.rmtree(removed, onerror=_unless_gone)
        return freed
    from argosy.steps.cluster.kinds import WORKFLOW
    from argosy.workflows.cluster.run import ClusterRun

    assert isinstance(run, ClusterRun)
    run.api.delete(WORKFLOW, run.name)
    return 0


def _below(folder: Path) -> Iterator[str]:
    for at, folders, files in os.walk(folder):
        yield from (os.path.join(at, name) for name in (*folders, *files))


def _bytes_of(path: str) -> int:
    with suppress(FileNotFoundError):
        return os.lstat(path).st_blocks * _BLOCK
    return 0


def _unless_gone(_: object, path: str, error: tuple[Any, BaseException, Any]) -> None:
    """Another call removes the same, or has put a run there meanwhile, which it removes itself."""
    if getattr(error[1], "errno", None) not in (ENOENT, ENOTEMPTY):
        raise error[1]


def _place_in_store(run: Run) -> str:
    """Of a store in the state folder the uri by which the checkpoints are found when the run's name is gone."""
    if not isinstance(run, RunFolder) or not (record := run.record()).checkpoints:
        return ""
    uri = urlsplit(f"{record.store_uri.rstrip('/')}/{prefix_of(run.state())}")
    with mounted(claim_mounts(run.document(), run.state_dir)):
        return Path(resolve_file_uri(unquote(uri.path))).as_uri() if uri.scheme == "file" else uri.geturl()


def _remove_stored(run: Run) -> tuple[int, int]:
    """All below the run's prefix: how many objects, and their bytes.

    Raises:
        InputError: one of its checkpoints was promoted.
    """
    store, prefix = run.store(), run.prefix if isinstance(run, StoredRun) else prefix_of(run.state())
    if store is None or not prefix:
        return 0, 0
    if (promotion := build_record(read_events(store, prefix), {}).promotion) is not None:
        remedy = f"leave --checkpoints out; argosy checkpoint prune {run.name} --keep 1 removes the others"
        raise InputError(f"RUN {run.name!r}: pointer {promotion.pointer!r} was moved to a checkpoint of it; {remedy}")
    # By its events a run is found in a store, by its summary it has ended, by its commit log its checkpoints are found:
    # an interrupted call leaves them.
    last = (f"{prefix}/events/", f"{prefix}/summary.json", f"{prefix}/log/")
    found = sorted(store.list(prefix), key=lambda info: [info.key.startswith(each) for each in last])
    for info in found:
        store.delete(info.key)
    return len(found), sum(info.size for info in found)
