"""A run of this machine as a process of its own: a notebook may restart, and signals are no thread's business."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.injection import parse
from argosy.workflows.cli.code_difference import starting_anew
from argosy.workflows.cli.output import say
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.source import push_code
from argosy.workflows.cli.starting import check_faults, check_gpus, check_not_running, read_parameters
from argosy.workflows.cli.state_dir import check_state_dir
from argosy.workflows.engine.api import RunOptions, check, latest_unfinished
from argosy.workflows.engine.document import new_name
from argosy.workflows.handle.handle import Handle

if TYPE_CHECKING:
    from argosy.workflows.cli.source import Source

STARTING_SECONDS = 60.0
ENGINE_LOG = "engine.log"
"""What the engine itself said, in the run's folder."""


def start(source: Source, given: dict[str, str], inject: tuple[str, ...], new: bool, state_dir: Path) -> Handle:
    """Start the engine and return when it holds the run.

    Raises:
        InputError: wrong parameters or faults, no GPUs, or the engine ended at once (its own words).
    """
    parameters = read_parameters(source, [f"{key}={value}" for key, value in given.items()], {})
    faults = tuple(parse(text) for text in inject)
    check_faults(source, faults)
    check(source.yaml, RunOptions(state_dir=state_dir, parameters=parameters))
    check_not_running(source, parameters, state_dir)
    check_gpus(source)
    check_state_dir(state_dir, source)
    push_code(source, state_dir)
    interrupted = None if new else latest_unfinished(state_dir, source.sha256, parameters)
    if not new and interrupted is None and "run-id" not in given and (told := starting_anew(source, state_dir)):
        say(told, err=True)  # a saved notebook is other code already
    folder = RunFolder(state_dir / "runs" / (interrupted.name if interrupted else new_name(source.document)), state_dir)
    folder.path.mkdir(parents=True, exist_ok=True)
    with (folder.path / ENGINE_LOG).open("ab") as said:
        engine = subprocess.Popen(
            [sys.executable, "-m", "argosy.workflows.handle.engine"],
            stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
    assert engine.stdin is not None
    options = {"state_dir": str(state_dir), "name": folder.name, "parameters": parameters}
    with engine.stdin as pipe:
        pipe.write(json.dumps({**options, "inject": [fault.text for fault in faults]}).encode() + b"\n" + source.yaml)
    threading.Thread(target=engine.wait, daemon=True, name="engine").start()  # nobody else waits for the process
    until = time.monotonic() + STARTING_SECONDS
    while not (folder.path / "state.json").exists() or not (folder.engine_runs() or engine.poll() is not None):
        if engine.poll() is not None or time.monotonic() > until:
            words = (folder.path / ENGINE_LOG).read_text(errors="replace").strip()[-500:]
            raise InputError(f"{folder.name}: its engine did not start ({words}); see {folder.path / ENGINE_LOG}")
        time.sleep(0.02)
    return Handle(folder)
