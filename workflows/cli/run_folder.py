"""Find a run on this machine and read what is known of it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.layout import run_prefix
from argosy.steps.record.building import COMMAND, RUN_NAME, STORE_URI, build_record, prefix_of
from argosy.steps.record.facts import RunRecord, StepNode
from argosy.steps.record.unwritten import with_unwritten
from argosy.steps.runlog import Event, read_events
from argosy.steps.store.base import ObjectStore
from argosy.steps.store.files import FileStore
from argosy.steps.store.opening import PERSON_SECONDS, open_store
from argosy.workflows.cli.described import description_here
from argosy.workflows.cli.document import claim_mounts, read_resolved, read_workflow
from argosy.workflows.cli.output import typed
from argosy.workflows.cluster.store import take_address

STATE_DIR = ".argosy"
LOG_TAIL = 64 << 10
QUOTE_LENGTH = 500
ENDED = ("Succeeded", "Failed", "Error")


@dataclass(frozen=True)
class RunFolder:
    """One folder below ``STATE_DIR/runs``."""

    path: Path
    state_dir: Path

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.path.name

    @property
    def where(self) -> str:
        """Where it was found, for messages."""
        return str(self.path)

    @property
    def report(self) -> Path:
        """Where the HTML report of the run lies."""
        return self.path / "report.html"

    def command(self, verb: str, *arguments: object) -> str:
        """``argosy VERB ...`` as it finds this run from here; a state folder elsewhere is named."""
        try:
            usual = self.state_dir == Path(os.environ.get("ARGOSY_STATE_DIR", STATE_DIR)).absolute()
        except FileNotFoundError:  # somebody removed the folder that we are in
            usual = False
        return typed("argosy", verb, *arguments, *(() if usual else ("--state-dir", self.state_dir)))

    def state(self) -> dict[str, Any]:
        """The engine's state now; empty when it was never written.

        Raises:
            InputError: the file cannot be read as JSON.
        """
        path = self.path / "state.json"
        try:
            state = json.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except PermissionError as error:
            raise InputError(f"{path}: {error.strerror}; give yourself the right to it") from error
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: not a run's state ({error}); remove the folder {self.path}") from error
        if not isinstance(state, dict):
            raise InputError(f"{path}: not a run's state (no JSON object); remove the folder {self.path}")
        return state

    def store(self, *, quiet: bool = False) -> ObjectStore | None:
        """The run's store; None for a workflow that is none of ours, or before it has a state. ``quiet``: see
        :func:`argosy.steps.store.opening.open_store`, as for every run.
        """
        annotations = self.state().get("annotations")
        uri = annotations.get(STORE_URI) if isinstance(annotations, dict) else None
        return open_embedded(str(uri), self.document(), self.state_dir, quiet=quiet) if uri else None

    def disks(self) -> tuple[Path, ...]:
        """Where the engine and the pods write; the store as well, where it is a folder."""
        store = self.store()
        return (self.path, store.root) if isinstance(store, FileStore) and store.root.is_dir() else (self.path,)

    def given(self) -> tuple[str, ...]:
        """The parameters that it was started with, as after ``-p``."""
        given = self.state().get("given")
        return tuple(f"{key}={value}" for key, value in given.items()) if isinstance(given, dict) else ()

    def templates(self) -> tuple[Path, ...]:
        """The file with the WorkflowTemplates that were given with it, if there were any."""
        return (kept,) if (kept := self.path / "templates.yaml").exists() else ()

    def document(self) -> dict[str, Any]:
        """The workflow as it was run; empty when it cannot be read."""
        try:
            data, templates = (self.path / "workflow.yaml").read_bytes(), self.templates()
            return read_resolved(data, templates) if templates else read_workflow(data)
        except OSError:
            return {}

    def events(self) -> list[Event]:
        """The event log so far."""
        store, prefix = self.store(), prefix_of(self.state())
        return read_events(store, prefix) if store is not None and prefix else []

    def standing(self) -> dict[str, Any]:
        """The engine's state, with how it was ``interrupted`` where it has not ended and nobody runs it."""
        running = self.engine_runs()  # before the state: an engine that ends in between has written that
        state = self.state() or {"name": self.path.name}
        if running or state.get("phase") in ENDED:
            return {**state, "interrupted": ""}  # one that goes on has not saved that yet
        if not state.get("interrupted"):
            gone = "the process that ran it is gone, killed or with its machine; run it again to resume"
            state = {**state, "interrupted": "SIGKILL", "message": state.get("message") or gone}
        return state

    def record(self) -> RunRecord:
        """What is known now."""
        return self._record(self.events())

    def outline(self) -> RunRecord:
        """What the engine alone knows: the event log lies in a store that may not answer."""
        return replace(self._record([]), outline=True)

    def _record(self, events: list[Event]) -> RunRecord:
        state = self.standing()
        record, noted = build_record(events, state, time.time()), state.get("annotations")
        command = str((noted.get(COMMAND) if isinstance(noted, dict) else "") or "argosy run run.toml")
        nodes = tuple(_quoted(node) for node in record.nodes)
        return with_unwritten(replace(record, nodes=nodes, command=command), state)

    def engine_runs(self) -> bool:
        """Whether an engine holds the run now; one that was killed holds nothing."""
        try:
            with (self.path / "engine.lock").open("rb") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def stop_engine(self) -> bool:
        """Ask the engine that runs it to end its pods and go, as Ctrl-C does; False: none runs it.

        Raises:
            InputError: it belongs to another user.
        """
        with suppress(OSError, ValueError), (self.path / "engine.lock").open("rb") as handle:
            engine = os.pidfd_open(int(handle.read(32)))
            try:
                if not self.engine_runs():  # asked after the handle is held: nobody else gets its signal
                    return False
                signal.pidfd_send_signal(engine, signal.SIGTERM)
                return True
            except PermissionError:
                raise InputError(f"RUN {self.name!r}: its engine is another user's; ask them") from None
            finally:
                os.close(engine)
        return False


def _quoted(node: StepNode) -> StepNode:
    """With the line of its log that says why it failed: our own, else the last."""
    if node.phase not in ("Failed", "Error") or not node.log:
        return node
    try:
        with Path(node.log).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL))
            lines = [line for line in log.read().decode(errors="replace").split("\n") if line.strip()]
    except OSError:
        return node
    ours = [line for line in lines if line.startswith("argosy: ")]
    return replace(node, quote=(ours or lines or [""])[-1].strip()[:QUOTE_LENGTH])


def find_run(state_dir: Path, run_id: str | None) -> RunFolder:
    """The run with this workflow name or run id; without one, the run that was started last.

    Raises:
        InputError: there is no such run.
    """
    if (found := known_run(state_dir, run_id)) is not None:
        return found
    known = latest_names(state_dir)
    if not known:
        start = typed("argosy", "run", description_here())
        raise InputError(f"--state-dir {state_dir}: no run here; start one with: {start}")
    raise InputError(f"RUN_ID {run_id!r}: no such run in {state_dir}; known: {known}")


def known_run(state_dir: Path, run_id: str | None) -> RunFolder | None:
    """The same, None when there is none."""
    # Of a variable that is not set, as in `argosy rm "$RUN"`: no run is meant, least of all one without a run id.
    folders = [] if run_id == "" else every_run(state_dir)
    # Its own name first: another run may have gone on under it, as its run id.
    named = [folder for folder in folders if run_id in (None, folder.path.name)]
    return next(iter(named or [folder for folder in folders if _run_id(folder) == run_id]), None)


def latest_names(state_dir: Path) -> str:
    """Of the runs that were started last, for messages."""
    return ", ".join(folder.path.name for folder in reversed(every_run(state_dir)[:5]))


def _run_id(folder: RunFolder) -> str:
    parameters = folder.state().get("parameters")
    return str(parameters.get("run-id", "")) if isinstance(parameters, dict) else ""


def every_run(state_dir: Path) -> list[RunFolder]:
    """Newest first."""
    return sorted(_folders(state_dir), key=_started, reverse=True)


def interrupted_runs(state_dir: Path, run_name: str) -> list[RunFolder]:
    """Runs with this ``TrainingRun.name`` that have not ended and that no engine runs now, newest first."""
    found = []
    for folder in every_run(state_dir):
        state = folder.state()
        annotations = state.get("annotations")
        same = isinstance(annotations, dict) and annotations.get(RUN_NAME) == run_name
        if same and state.get("phase") not in ENDED and not folder.engine_runs():
            found.append(folder)
    return found


def own_run(file: Path, state_dir: Path) -> RunFolder | None:
    """The run that kept this very file, where it has not ended and no engine runs it now."""
    folder = RunFolder(file.absolute().parent, state_dir)
    if file.name != "workflow.yaml" or folder.path.parent.resolve() != (state_dir / "runs").resolve():
        return None
    return None if folder.state().get("phase", ENDED[0]) in ENDED or folder.engine_runs() else folder


def running_as(state_dir: Path, run_name: str, run_id: str) -> list[RunFolder]:
    """Runs with this name and run id that an engine runs now, newest first."""
    prefix = run_prefix(run_name, run_id)
    return [folder for folder in every_run(state_dir) if prefix_of(folder.state()) == prefix and folder.engine_runs()]


def not_running(state_dir: Path) -> set[str]:
    """Uids of the workflows here that no engine runs: one that was killed still has its claim, and some lease."""
    found = set[str]()
    for folder in _folders(state_dir):
        with suppress(InputError):  # of a folder that nobody asked about
            found |= set() if folder.engine_runs() else {str(folder.state().get("uid", ""))}
    return found


def _folders(state_dir: Path) -> Iterator[RunFolder]:
    runs = state_dir / "runs"
    if runs.is_dir():
        for path in filter(Path.is_dir, runs.iterdir()):  # a file may lie there, as .DS_Store does
            if not os.access(path, os.X_OK) or (path / "state.json").exists() or (path / "workflow.yaml").exists():
                yield RunFolder(path, state_dir)  # whoever may not enter it is told so


def _started(folder: RunFolder) -> float:
    with suppress(OSError):
        return (folder.path / "workflow.yaml").stat().st_mtime
    return 0.0


@contextmanager
def mounted(table: Mapping[str, str]) -> Iterator[None]:
    """Within it, this process sees the volumes at their mount paths, as a pod does."""
    before = os.environ.get(env.MOUNTS)
    os.environ[env.MOUNTS] = json.dumps(dict(table))
    try:
        yield
    finally:
        if before is None:
            del os.environ[env.MOUNTS]
        else:
            os.environ[env.MOUNTS] = before


def open_embedded(uri: str, document: Mapping[str, Any], state_dir: Path, *, quiet: bool = False) -> ObjectStore:
    """The store at ``uri``, through the workflow's volumes where it lies on one of them; for somebody who waits."""
    take_address(document)
    with mounted(claim_mounts(document, state_dir)):
        return open_store(uri, retry_seconds=PERSON_SECONDS, quiet=quiet)
