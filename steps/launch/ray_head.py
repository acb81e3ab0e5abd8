"""What KubeRay's workers wait for: an init container that KubeRay puts into their pods asks until Ray's head answers.

launch is the command in every pod, the head's too. So it starts a head that only answers, and ends it as soon as all
nodes have checked in: what trains, with Ray or without, begins after that.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from argosy.steps.child_python import die_with_parent
from argosy.steps.contract.errors import InputError
from argosy.steps.paths import resolve
from argosy.steps.pods import processes

GENERATED = "KUBERAY_GEN_RAY_START_CMD"
"""KubeRay's own command, which it tells to containers that keep theirs."""
MARK = "ARGOSY_RAY_HEAD"
"""By which its processes are known, whoever is their parent."""
_PORT = "RAY_PORT"
_FOLDER = "/argosy/tmp/ray-head"
_END_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_TAIL_CHARACTERS = 2000
SMALLEST = ("--object-store-memory=78643200", "--include-dashboard=false", "--disable-usage-stats")


class AnsweringHead:
    """A Ray head without room for any work."""

    def __init__(self, program: str, environ: Mapping[str, str]) -> None:
        self._folder, self._mark = resolve(_FOLDER), secrets.token_hex(8)
        self._folder.mkdir(parents=True, exist_ok=True)
        own = {name: value for name, value in environ.items() if not name.startswith("ARGOSY_")}
        words = ["--head", f"--port={environ.get(_PORT, '6379')}", "--num-cpus=0", "--num-gpus=0", *SMALLEST]
        with self._log.open("wb") as log:
            self._process = start(program, words, {**own, MARK: self._mark}, self._folder, log.fileno())
        self._ends = False
        self._watcher = threading.Thread(target=self._tell, name="ray-head", daemon=True)
        self._watcher.start()

    @property
    def _log(self) -> Path:
        return self._folder / "start.log"

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

    def _tell(self) -> None:
        self._process.wait()
        if not self._ends:
            said = self._log.read_text(errors="replace")[-_TAIL_CHARACTERS:]
            print(f"argosy: Ray's head, for which KubeRay's workers wait, has ended:\n{said}", flush=True)

    def end(self) -> None:
        """Nobody waits for it any more."""
        self._ends = True
        self._process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _END_SECONDS
        while self._left() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        processes.kill_all(self._left)
        self._watcher.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _left(self) -> set[int]:
        return processes.carrying(MARK, self._mark, whole=True)


def start(
    program: str, words: Sequence[str], environ: Mapping[str, str], folder: Path, log: int
) -> subprocess.Popen[bytes]:
    """``ray start``, in the foreground, with its session below ``folder``.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(
        [program, "start", "--block", f"--temp-dir={folder}", *words],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=die_with_parent(),
    )
