"""One of several processes that serve a trigger, made to be killed: ``python -m tests.events.hand ROLE FOLDER ...``.

``sensor`` takes announcements from a queue, ``reconciler`` looks. What they start are files that exist once by name.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from argosy.steps.contract.trigger_arguments import TriggerArgs
from argosy.steps.events.admission import Admission
from argosy.steps.events.hearing import Hearing
from argosy.steps.events.journal import Decision, Journal
from argosy.steps.store import open_store
from argosy.workflows.cli.watch.sources import Queue


class Files:
    """A folder in which a name can be taken once."""

    place = "files"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def running(self) -> list[str]:
        return []

    def start(self, decision: Decision) -> None:
        try:
            handle = os.open(self._folder / decision.workflow, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return
        os.write(handle, decision.parameters["dataset-uri"].encode())
        os.close(handle)

    def stop(self, workflow: str) -> None:
        raise AssertionError(workflow)


def hearing(folder: Path) -> Hearing:
    """What each process has."""
    args = TriggerArgs(
        store_uri=f"file://{folder}/store",
        name="run",
        dataset_uri=f"file://{folder}/bucket/corpus",
        max_starts_per_hour=100_000,
    )
    return Hearing(Admission(args, Journal(open_store(args.store_uri), "run"), Files(folder / "started")))


def main(role: str, where: str, name: str, endpoint: str) -> None:
    """Serve until killed."""
    folder = Path(where)
    if role == "sensor":
        queue, ears = Queue({"queue": name, "endpoint": endpoint, "region": "us-east-1"}), hearing(folder)
        while True:
            queue.receive(ears.hear)
    while True:
        hearing(folder).look("reconciler")
        time.sleep(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
