"""``argosy stop``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from argosy.steps.contract.errors import InputError
from argosy.steps.record.wording import called
from argosy.workflows.cli.finding import Run, as_far_as_known, find
from argosy.workflows.cli.options import as_json, place_or_here, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands, say
from argosy.workflows.cli.run_folder import ENDED, RunFolder
from argosy.workflows.cli.status import ways_on
from argosy.workflows.cluster.place import ClusterPlace

if TYPE_CHECKING:
    from argosy.workflows.cluster.run import ClusterRun

POLL_SECONDS = 0.1
WAIT_SECONDS = 90.0
"""The usual grace period of a pod, and time to end what does not go by itself."""


@click.command()
@run_id
@place_or_here
@as_json
@state_dir
def command(run_id: str | None, place: ClusterPlace, as_json: bool, state_dir: Path) -> int:
    """Stop a run: its ranks get their time to save, its checkpoints stay.

    On this machine it can go on later with argosy run of the same file; on a cluster Argo ends the Workflow, and a new
    submission with the same -p run-id=… goes on from the newest checkpoint. Exit code 1: it did not end in time.

    \b
    Example:
      argosy stop
      argosy stop gpt-x7k2p -n research
    """
    run = find(state_dir, run_id, place)
    ended, said = stop(run)
    if as_json:
        emit({"run": run.name, "stopped": ended, "message": said})
    else:
        record = as_far_as_known(run)[0] if isinstance(run, RunFolder) else None
        say(f"{called(run.name, record.run_id if record else None)}: {said}")
        next_commands(ways_on(record, run) if record else [])
    return 0 if ended else 1


def stop(run: Run) -> tuple[bool, str]:
    """Stop it: whether it has ended, or will, and a sentence.

    Raises:
        InputError: it cannot be told from here.
    """
    return _stop_here(run) if isinstance(run, RunFolder) else _stop_there(run)


def _stop_here(run: RunFolder) -> tuple[bool, str]:
    if not run.stop_engine():
        phase = str(run.state().get("phase") or "")
        return True, f"has ended already ({phase})" if phase in ENDED else "is stopped already: no engine runs it"
    until = time.monotonic() + WAIT_SECONDS
    while run.engine_runs() and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    if run.engine_runs():
        return (
            False,
            f"was told to stop and still ends its pods after {WAIT_SECONDS:g} s; see argosy status",
        )
    return True, "stopped; no process of it is left"


def _stop_there(run: Run) -> tuple[bool, str]:
    from argosy.workflows.cluster.run import ClusterRun

    if not isinstance(run, ClusterRun):
        raise InputError("RUN_ID: a place in a store cannot be told; name its workflow, and the namespace with -n")
    if run.has_ended():
        return True, "has ended already"
    begun = any(node["type"] == "Pod" and node["phase"] != "Pending" for node in run.state()["nodes"])
    _shut_down(run, "Stop" if begun else "Terminate")
    saved = "its ranks have the grace period to save what they did" if begun else "no step of it had begun"
    return True, f"Argo was told to stop it; {saved}"


def _shut_down(run: ClusterRun, how: str) -> None:
    """``spec.shutdown``, as ``argo stop`` sets it: running pods end, and after a ``Stop`` the exit handler still runs,
    which waits a quarter of an hour for an image that no step could pull. One that is suspended would never end.
    """
    metadata = {"name": run.name, "namespace": run.api.namespace}
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata}
    run.api.apply({**head, "spec": {"shutdown": how, "suspend": False}})
