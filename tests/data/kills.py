"""A stager in a process of its own, struck at some moment while it stages from a slow S3."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.s3 import S3Server, Seen

BUCKET = "argosy-tests"
PROGRAM = """
import sys
from pathlib import Path
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.data.staging import stage_objects
manifest = DatasetManifest.from_bytes(Path(sys.argv[1]).read_bytes())
print("fetched", stage_objects(manifest, manifest, Path(sys.argv[2]), workers=int(sys.argv[3])).fetched_bytes)
"""


class Stager:
    """``python -c PROGRAM`` with an S3 server as its store."""

    def __init__(self, server: S3Server, manifest: Path, into: Path, workers: int = 2) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        known = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
        environ |= {name: os.environ.get(name, value) for name, value in known.items()}
        environ["AWS_ENDPOINT_URL"] = server.endpoint
        command = [sys.executable, "-c", PROGRAM, str(manifest), str(into), str(workers)]
        self.process = subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def workers(self) -> list[int]:
        """Pids of its children."""
        try:
            text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        except OSError:
            return []
        return [int(pid) for pid in text.split()]

    def wait_for(self, reached: Callable[[], bool]) -> bool:
        """Until something is so; False when the stager ended before."""
        while not reached():
            if self.process.poll() is not None:
                return False
            time.sleep(0.001)
        return True

    def kill(self, draw: random.Random) -> str:
        """SIGKILL: itself, or itself and its workers; in words what was done."""
        workers, victims = self.workers(), [self.process.pid]
        if draw.random() < 0.5:
            victims += workers
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        for pid in workers:  # whoever was stopped and is no victim goes on, and sees that its parent is gone
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.process.communicate()
        return f"{len(victims)} processes"

    def stop(self) -> None:
        """SIGSTOP: itself and its workers."""
        for pid in (self.process.pid, *self.workers()):
            os.kill(pid, signal.SIGSTOP)

    def fetched(self) -> int:
        """Bytes that it says it fetched, after a good end."""
        out, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, err
        return int(out.split()[-1])


def served(server: S3Server) -> int:
    """Bytes of objects that left the server since the log was last begun."""
    return sum(seen.served for seen in server.requests if seen.operation == "GetObject")


def under_way(server: S3Server) -> int:
    """Bytes that the kernel holds between the server and its readers: sent, and read by nobody (proc_net_tcp(5))."""
    port, held = int(server.endpoint.rpartition(":")[2]), 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        sent, unread = (int(queue, 16) for queue in queues.split(":"))
        if int(local[9:], 16) == port:
            held += sent
        if int(remote[9:], 16) == port:
            held += unread
    return held


def slowly(seen: Seen) -> str:
    """A plan: every object drips."""
    return "slow" if seen.operation == "GetObject" else ""


def strays(into: Path) -> list[str]:
    """What staging left beside data and state that it needs."""
    state = into / ".argosy-stage"
    names = ["/".join(path.relative_to(state).parts) for path in state.rglob("*") if path.is_file()]
    settled = {"lock", "complete.json"}
    return [name for name in names if name not in settled and not (name[:8] == "records/" and name[-5:].isdigit())]
