"""Runs of this machine that a trigger decided on: one after the other, each once, whatever is killed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.layout import seq_name
from argosy.steps.events.journal import Decision
from argosy.steps.record.building import RUN_NAME
from argosy.steps.record.story import outcome
from argosy.workflows.cli.finding import as_far_as_known
from argosy.workflows.cli.run import exit_code
from argosy.workflows.cli.run_folder import ENDED, RunFolder, every_run
from argosy.workflows.cli.written import write_whole

_TRIES = 3


class LocalRuns:
    """What was decided waits as a file in ``STATE_DIR/watch/NAME`` and moves to ``ended`` below it."""

    def __init__(self, state_dir: Path, name: str, yaml: Path, tell: Callable[[str], None]) -> None:
        """``yaml``: the compiled run, for what is started from now on; a run that goes on has its own.

        ``tell`` hears how each ended.
        """
        self._state_dir, self._name, self._yaml = state_dir, name, yaml
        self._folder = state_dir / "watch" / name
        self._ended = self._folder / "ended"
        self._ended.mkdir(parents=True, exist_ok=True)
        self._child: subprocess.Popen[bytes] | None = None
        self._current: Path | None = None
        self._tries: dict[str, int] = {}
        self._leaving: list[RunFolder] = []
        self._tell = tell
        self.exit_code = 0
        """That of ``argosy run`` of the last one that did not succeed."""
        self.place = f"local:{socket.gethostname()}:{state_dir}"

    # What a Starter does.

    def start(self, decision: Decision) -> None:
        """Keep it among what is to be run."""
        # The name of its data, too: a store that is another one than before counts its decisions from 1 again.
        path = self._folder / f"{Path(seq_name(decision.seq)).stem}-{decision.workflow}.json"
        if not (self._ended / path.name).exists() and not path.exists():
            record = {"workflow": decision.workflow, "parameters": decision.parameters}
            write_whole(path, json.dumps(record).encode())

    def running(self) -> list[str]:
        """What runs or waits here, and runs of this name that somebody started by hand."""
        waiting = [self._read(path)[0] for path in self._waiting()]
        by_hand = [
            folder.name
            for folder in every_run(self._state_dir)
            if (folder.state().get("annotations") or {}).get(RUN_NAME) == self._name and folder.engine_runs()
        ]
        return waiting + [name for name in by_hand if name not in waiting]

    def stop(self, workflow: str) -> None:
        """End it for good: what has not begun never does."""
        for path in self._waiting():
            if self._read(path)[0] == workflow:
                if path == self._current and self._child is not None:
                    self._child.terminate()
                self._end(path)
        # One that somebody started by hand, or that a watch before us began, is no child of ours.
        folder = self._run(workflow)
        try:
            if folder.stop_engine():
                self._leaving.append(folder)
        except InputError as error:
            self._tell(f"warning: {error}")

    # What a watch does besides.

    def turn(self) -> bool:
        """Begin, go on or end one; whether there is anything left to do."""
        if self._child is not None:
            if self._child.poll() is None:
                return True
            self._judge(self._child.returncode)
        self._leaving = [folder for folder in self._leaving if folder.engine_runs()]
        if self._leaving:
            return True
        left = self._waiting()
        if left:
            self._begin(left[0])
        return bool(left)

    def leave(self) -> None:
        """Ask the run to stop where it can go on, and wait for it."""
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()
            self._child.wait()

    @property
    def _log(self) -> Path:
        return self._folder / "last.log"

    def _waiting(self) -> list[Path]:
        return sorted(self._folder.glob("0*.json"))

    def _run(self, workflow: str) -> RunFolder:
        return RunFolder(self._state_dir / "runs" / workflow, self._state_dir)

    def _read(self, path: Path) -> tuple[str, dict[str, str]]:
        record = json.loads(path.read_bytes())
        return str(record["workflow"]), dict(record["parameters"])

    def _begin(self, path: Path) -> None:
        workflow, parameters = self._read(path)
        folder = self._run(workflow)
        phase = folder.state().get("phase")
        if phase in ENDED and not folder.engine_runs():
            return self._ended_as(path, folder, phase, 1)
        if folder.engine_runs():
            return  # a watch before us was killed, its run was not
        kept = folder.path / "workflow.yaml"
        given = [word for name, value in parameters.items() for word in ("-p", f"{name}={value}")]
        command = [sys.executable, "-m", "argosy.workflows.cli.main", "run", str(kept if kept.exists() else self._yaml),
                   "--name", workflow, *given, "--state-dir", str(self._state_dir)]  # fmt: skip
        self._current = path
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ)
        self._tell(f"{workflow}: runs; {folder.command('logs', '-f', workflow)} shows what it writes")

    def _judge(self, code: int) -> None:
        path, self._child, self._current = self._current, None, None
        if path is None or not path.exists():
            return
        tries = self._tries[path.name] = self._tries.get(path.name, 0) + 1
        workflow, _ = self._read(path)
        folder = self._run(workflow)
        phase = folder.state().get("phase")
        if phase in ENDED or code == 2 or tries >= _TRIES:
            self._ended_as(path, folder, phase, code)

    def _ended_as(self, path: Path, folder: RunFolder, phase: str | None, code: int) -> None:
        self._end(path)
        if phase not in ENDED:
            self.exit_code = code if code > 0 else 1
            return self._tell(f"{folder.name}: could not be started; {self._log} has what it wrote")
        record, _ = as_far_as_known(folder)
        code = exit_code(record)
        self.exit_code = code or self.exit_code
        why = f"; {folder.command('explain', folder.name)} tells why" if code else ""
        self._tell(f"{folder.name}: {outcome(record)[0]}{why}")

    def _end(self, path: Path) -> None:
        path.replace(self._ended / path.name)
