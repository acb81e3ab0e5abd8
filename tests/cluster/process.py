"""A process of the cluster: started in a network namespace, known by pid and start time, so that any later program
can stop it without ever striking a stranger that got the same pid."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.progress import ClusterError, wait_for

CLEAN = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE")
"""What components inherit: no proxies, no settings of the caller's."""


def start_time(pid: int) -> int | None:
    """Clock ticks between boot and the start of ``pid``; None when it is gone or only waits to be reaped.

    The first thread may wait to be reaped while others end, and until they have its ports are taken (proc(5)).
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" and int(fields[17]) <= 1 else int(fields[19])


@dataclass(frozen=True)
class Process:
    """``name`` in the instance's run folder."""

    name: str
    folder: Path

    @property
    def _record(self) -> Path:
        return self.folder / "run" / f"{self.name}.json"

    @property
    def log(self) -> Path:
        """Everything it ever wrote, over all its starts."""
        return self.folder / "log" / f"{self.name}.log"

    def start(
        self, command: Sequence[str | Path], namespace: str, environment: Mapping[str, str] | None = None
    ) -> None:
        """Run it in the network namespace, detached from the caller; nothing when it runs already."""
        if self.pid is not None:
            return
        inherited = {key: os.environ[key] for key in CLEAN if key in os.environ}
        with self.log.open("ab") as log:
            started = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{namespace}", "--", *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**inherited, **(environment or {})},
                start_new_session=True,
                cwd="/",
            )
        self._record.write_text(json.dumps({"pid": started.pid, "started": start_time(started.pid)}))
        _children.append(started)

    @property
    def pid(self) -> int | None:
        """Its pid while it lives."""
        try:
            record = json.loads(self._record.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        pid = int(record["pid"])
        return pid if record["started"] is not None and start_time(pid) == record["started"] else None

    def signal(self, number: int) -> None:
        """Send a signal. Raises ClusterError when it does not run."""
        if (pid := self.pid) is None:
            raise ClusterError(f"{self.name} does not run; its log: {self.log}")
        os.kill(pid, number)

    def kill(self) -> None:
        """End it at once (SIGKILL) and wait until it is gone; nothing when it does not run."""
        if (pid := self.pid) is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        wait_for(f"{self.name} to be gone", lambda: self.pid is None, 20)
        for child in _children:
            child.poll()


_children: list[subprocess.Popen[bytes]] = []
"""Those that this program started: kept so that they are reaped."""


def run(*command: str | Path, stdin: str | None = None, timeout: float = 60) -> str:
    """Standard output of a short command. Raises ClusterError with what it said when it fails."""
    try:
        done = subprocess.run([*map(str, command)], input=stdin, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{' '.join(map(str, command))}: no end after {timeout:g} s") from error
    if done.returncode:
        raise ClusterError(
            f"{' '.join(map(str, command))}: exit {done.returncode}\n{(done.stderr or done.stdout)[-2000:]}"
        )
    return done.stdout
