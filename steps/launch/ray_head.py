"""What KubeRay's workers wait for: an init container that KubeRay puts into their pods asks until Ray's head answers.

launch is the command in every pod, the head's too. So it starts a head that only answers, and ends it as soon as all
nodes have checked in: what trains, with Ray or without, begins after that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from typing import Self

from argosy.steps.child_python import die_with_parent
from argosy.steps.contract.errors import InputError
from argosy.steps.paths import resolve
from argosy.steps.pods import processes

GENERATED = "KUBERAY_GEN_RAY_START_CMD"
"""KubeRay's own command, which it tells to containers that keep theirs."""
_FOLDER = "/argosy/tmp/ray-head"
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_TAIL_CHARACTERS = 2000
_SMALLEST = ("--num-cpus=0", "--num-gpus=0", "--object-store-memory=78643200", "--include-dashboard=false")
_ALONE = ("--include-log-monitor=false", "--disable-usage-stats")


class AnsweringHead:
    """A Ray head without room for any work, started again where it ends by itself."""

    def __init__(self, program: str, environ: Mapping[str, str]) -> None:
        self._folder = resolve(_FOLDER)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._environ = {name: value for name, value in environ.items() if not name.startswith("ARGOSY_")}
        port = environ.get("RAY_PORT", "6379")
        session = ("--head", "--block", f"--port={port}", f"--temp-dir={self._folder}")
        self._command = [program, "start", *session, *_SMALLEST, *_ALONE]
        self._session = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ray-head", daemon=True)
        self._thread.start()

    @classmethod
    def where_asked(cls, environ: Mapping[str, str] = os.environ) -> Self | None:
        """One in the head's pod of KubeRay's; None in every other pod.

        Raises:
            InputError: the image has no Ray.
        """
        if "--head" not in environ.get(GENERATED, "").split():
            return None
        program = shutil.which("ray", path=environ.get("PATH"))
        if program is None:
            raise InputError(
                "runtime = 'rayjob': no ray on PATH, for which KubeRay's workers wait; use an image with Ray"
            )
        return cls(program, environ)

    def _run(self) -> None:
        """On a busy node Ray's parts give up waiting for each other."""
        log, pause = self._folder / "start.log", _FIRST_PAUSE_SECONDS
        while not self._ended.is_set():
            with log.open("wb") as said:
                process = subprocess.Popen(
                    self._command,
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                    preexec_fn=die_with_parent(),
                )
            self._session = process.pid
            process.wait()
            if not self._ended.is_set():
                words = log.read_text(errors="replace")[-_TAIL_CHARACTERS:]
                print(f"argosy: Ray's head, for which KubeRay's workers wait, has ended:\n{words}", flush=True)
                processes.kill_all(self._left)
            self._ended.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def end(self) -> None:
        """Nobody waits for it any more; it has nothing to save."""
        self._ended.set()
        while self._thread.is_alive():
            processes.kill_all(self._left)
            self._thread.join(_LOOK_SECONDS)
        processes.kill_all(self._left)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _left(self) -> set[int]:
        """Its session's: whoever is their parent, and one of them writes over its environment."""
        return {pid for pid in processes.all_pids() if self._session and _session(pid) == self._session}


def _session(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid)
    return 0
