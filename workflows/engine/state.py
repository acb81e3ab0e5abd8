"""What is known of one run of a workflow, and the file that outlives the engine."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.node import ERROR, FAILED, PENDING, SUCCEEDED, NodeState

STATE_FILE = "state.json"
YAML_FILE = "workflow.yaml"
TEMPLATES_FILE = "templates.yaml"
"""The WorkflowTemplates that were given with it, one after the other; absent when there were none."""
_LOCK_FILE = "engine.lock"


@dataclass
class WorkflowState:
    """Phase and nodes of one run; ``run_dir`` holds all its files. Times are seconds since 1970."""

    name: str
    uid: str
    run_dir: Path
    yaml_sha256: str
    parameters: dict[str, str]
    phase: str = PENDING
    message: str = ""
    created: float = 0.0
    started: float | None = None
    finished: float | None = None
    given: dict[str, str] = field(default_factory=dict)
    """The parameters that were given, without the document's own values."""
    annotations: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, NodeState] = field(default_factory=dict)
    interrupted: str = ""
    """Name of the signal that stopped the engine ("SIGINT"); the run is not over, a rerun resumes it."""

    @property
    def finished_for_good(self) -> bool:
        """Whether the workflow has ended."""
        return self.phase in (SUCCEEDED, FAILED, ERROR)

    def record(self) -> dict[str, Any]:
        """The JSON of ``state.json``."""
        return {
            "name": self.name,
            "uid": self.uid,
            "yaml_sha256": self.yaml_sha256,
            "parameters": self.parameters,
            "given": self.given,
            "phase": self.phase,
            "message": self.message,
            "created": self.created,
            "started": self.started,
            "finished": self.finished,
            "interrupted": self.interrupted,
            "annotations": self.annotations,
            "outputs": self.outputs,
            "nodes": [node.record() for node in self.nodes.values()],
        }

    def save(self) -> None:
        """Write ``state.json``: the old one or the new one is there at every instant."""
        path = self.run_dir / STATE_FILE
        write_file(path, json.dumps(self.record(), separators=(",", ":")).encode())


def write_file(path: Path, data: bytes) -> None:
    """Replace a file's content durably."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
        part.replace(path)
    except OSError as error:  # of a full disk: a write does not know its file
        with suppress(OSError):
            part.unlink(missing_ok=True)
        error.filename = str(path)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load_state(run_dir: Path) -> WorkflowState | None:
    """The state in a run's folder; None if it has none.

    Raises:
        InputError: the file is not one that :meth:`WorkflowState.save` wrote.
    """
    path = run_dir / STATE_FILE
    try:
        record = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise InputError(f"{path}: {error.strerror}; give yourself the right to it") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a run's state ({error}); remove the folder {run_dir}") from None
    try:
        nodes = [NodeState.from_record(each) for each in record["nodes"]]
        return WorkflowState(
            name=record["name"],
            uid=record["uid"],
            run_dir=run_dir,
            yaml_sha256=record["yaml_sha256"],
            parameters=record["parameters"],
            phase=record["phase"],
            message=record["message"],
            created=record["created"],
            started=record["started"],
            finished=record["finished"],
            given=record["given"],
            annotations=record["annotations"],
            outputs=record["outputs"],
            nodes={node.id: node for node in nodes},
            interrupted=record["interrupted"],
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: not a run's state ({error}); remove the folder {run_dir}") from None


@contextmanager
def only_engine(run_dir: Path) -> Iterator[None]:
    """Hold the run's folder for this engine alone.

    Raises:
        InputError: another engine runs this workflow now.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / _LOCK_FILE).open("ab") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"workflow {run_dir.name}: another engine runs it now; wait for its end") from None
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n".encode())  # whom a person who wants it stopped has to tell
        handle.flush()
        yield


def unfinished(state_dir: Path, yaml_sha256: str, parameters: Mapping[str, str]) -> Iterator[WorkflowState]:
    """Runs of this very YAML with these parameters (all of them, or those given) not yet ended, newest first."""
    runs = state_dir / "runs"
    folders = [path for path in runs.iterdir() if (path / STATE_FILE).exists()] if runs.is_dir() else []
    states = [state for path in folders if (state := load_state(path)) is not None]
    for state in sorted(states, key=lambda state: -state.created):
        wanted = dict(parameters) in (state.parameters, state.given)
        if state.yaml_sha256 == yaml_sha256 and wanted and not state.finished_for_good:
            yield state
