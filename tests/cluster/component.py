"""A program of the control plane: started, asked for its health, stopped, frozen and started again."""

from __future__ import annotations

import contextlib
import signal
import ssl
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.process import Process
from tests.cluster.progress import ClusterError, wait_for

UNVERIFIED = ssl._create_unverified_context()
"""Health is asked of servers whose certificates nobody but the cluster knows."""
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=UNVERIFIED))


@dataclass(frozen=True)
class Component:
    """``cluster.component("etcd")``."""

    name: str
    folder: Path
    namespace: str
    command: Sequence[str | Path]
    health: str
    """URL that answers 200 when it serves."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def process(self) -> Process:
        """Its process, also when another program started it."""
        return Process(self.name, self.folder)

    @property
    def log(self) -> Path:
        """Its log."""
        return self.process.log

    @property
    def healthy(self) -> bool:
        """Whether it says so now."""
        with contextlib.suppress(OSError), DIRECT.open(self.health, timeout=2) as answer:
            return bool(answer.status == 200)
        return False

    def start(self) -> None:
        """Start it; ``wait`` tells when it serves."""
        self.process.start(self.command, self.namespace, self.environment)

    def wait(self, seconds: float = 60) -> None:
        """Until it is healthy. Raises ClusterError with the end of its log, at once when it has ended."""

        def ready() -> bool:
            if self.process.pid is None:
                raise ClusterError(f"{self.name} has ended:\n{self._last_lines()}")
            return self.healthy

        try:
            wait_for(f"{self.name} at {self.health}", ready, seconds, f"log: {self.log}")
        except ClusterError as error:
            if self.process.pid is not None:
                raise ClusterError(f"{error}\n{self._last_lines()}") from None
            raise

    def _last_lines(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-12:])

    def kill(self) -> None:
        """SIGKILL, and gone."""
        self.process.kill()

    def restart(self) -> None:
        """Killed, started again, and healthy."""
        self.kill()
        self.start()
        self.wait()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self.process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.process.signal(signal.SIGCONT)
