"""Check a workflow's YAML, run it, resume it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.steps.record.building import COMMAND
from argosy.workflows.engine.document import Document
from argosy.workflows.engine.fields import Ignored
from argosy.workflows.engine.node import NodeState
from argosy.workflows.engine.state import (
    TEMPLATES_FILE,
    YAML_FILE,
    WorkflowState,
    load_state,
    only_engine,
    unfinished,
    write_file,
)
from argosy.workflows.engine.support import load_checked

__all__ = ["NodeState", "RunOptions", "WorkflowState", "check", "ignored", "latest_unfinished", "run"]


@dataclass(frozen=True)
class RunOptions:
    """How to run a workflow on this machine.

    ``templates`` are files with WorkflowTemplates; ``inject`` are faults as typed after ``--inject``, checked by the
    caller; ``nodes`` is the number of virtual nodes (None: one more than the gang needs); ``command`` is what a person
    types to run it, for advice.
    """

    state_dir: Path = Path(".argosy")
    parameters: Mapping[str, str] = field(default_factory=dict)
    templates: tuple[Path, ...] = ()
    inject: tuple[str, ...] = ()
    workflow_name: str | None = None
    nodes: int | None = None
    command: str = ""


def check(yaml_bytes: bytes, options: RunOptions) -> None:
    """Refuse, before anything starts, what would run otherwise than on a cluster.

    Raises:
        InputError: one error that lists by path everything that is not supported or not right.
    """
    _checked(yaml_bytes, options)


def ignored(yaml_bytes: bytes, options: RunOptions) -> list[Ignored]:
    """The fields of the YAML that mean nothing on one machine, each with the reason.

    Raises:
        InputError: see :func:`check`.
    """
    return load_checked(yaml_bytes, options.templates, options.parameters)[1]


def _checked(yaml_bytes: bytes, options: RunOptions) -> Document:
    document, _ = load_checked(yaml_bytes, options.templates, options.parameters)
    document.parameters(options.parameters)
    return document


def latest_unfinished(state_dir: Path, yaml_sha256: str, parameters: Mapping[str, str]) -> WorkflowState | None:
    """The newest run of this very YAML with these parameters that has not ended and that no engine runs now.

    ``parameters`` are those that were given when it was started (or all of the workflow's, as in ``state.json``).
    """
    for state in unfinished(state_dir, yaml_sha256, parameters):
        try:
            with only_engine(state.run_dir):
                return state
        except InputError:
            continue
    return None


def run(
    yaml_bytes: bytes, options: RunOptions, on_change: Callable[[WorkflowState], None] | None = None
) -> WorkflowState:
    """Run the workflow to its end and return how it ended; resumes the run of that name if it has not ended.

    ``on_change`` is called after every change of the state, in this thread. SIGINT and SIGTERM end every pod and
    return a state whose ``interrupted`` names the signal.

    Raises:
        InputError: see :func:`check`; or the name is taken by another or a finished run, or runs now.
    """
    from argosy.workflows.engine.locks import Locks
    from argosy.workflows.engine.pods import PodRunner
    from argosy.workflows.engine.repository import ArtifactRepository
    from argosy.workflows.engine.scheduler import Scheduler

    document = _checked(yaml_bytes, options)
    name = options.workflow_name or document.new_name()
    state_dir = options.state_dir.resolve()
    run_dir = state_dir / "runs" / name
    with only_engine(run_dir), _lifeline() as lifeline:
        state = _state(document, yaml_bytes, options, name, run_dir)
        pods = PodRunner(
            workflow=name, uid=state.uid, namespace=document.namespace,
            service_account=str(document.spec.get("serviceAccountName") or "default"), spec=document.spec,
            run_dir=run_dir, claims=state_dir / "volumes", lifeline=lifeline, inject=options.inject,
            nodes=options.nodes, configs=document.configs,
            repository=ArtifactRepository(state_dir / "artifact-repository"),
        )  # fmt: skip
        return Scheduler(document, state, pods, Locks(state_dir / "locks"), on_change).run()


def _state(document: Document, yaml_bytes: bytes, options: RunOptions, name: str, run_dir: Path) -> WorkflowState:
    digest = hashlib.sha256(yaml_bytes).hexdigest()
    parameters = document.parameters(options.parameters)
    state = load_state(run_dir)
    if state is None:
        state = WorkflowState(name, str(uuid.uuid4()), run_dir, digest, parameters, created=time.time())
        state.given = dict(options.parameters)
        state.annotations = {key: str(value) for key, value in (document.metadata.get("annotations") or {}).items()}
        state.annotations |= {COMMAND: options.command} if options.command else {}
        if options.templates:
            write_file(run_dir / TEMPLATES_FILE, b"\n---\n".join(path.read_bytes() for path in options.templates))
        write_file(run_dir / YAML_FILE, yaml_bytes)
        state.save()
        return state
    if state.finished_for_good:
        raise InputError(f"workflow {name!r}: has run and ended {state.phase}; give another name or remove {run_dir}")
    if state.yaml_sha256 != digest or state.parameters != parameters:
        raise InputError(
            f"workflow {name!r}: an unfinished run of another YAML or other parameters has this name; "
            f"give another name or remove {run_dir}"
        )
    return state


@contextmanager
def _lifeline() -> Iterator[int]:
    """The read end of a pipe whose write end lives exactly as long as this engine."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    try:
        yield reading
    finally:
        os.close(writing)
        os.close(reading)
