"""A gang of real ``argosy.steps.launch`` processes against the supervisor's own channel and HTTP server."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract import env as names
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment, Orders, Report
from argosy.steps.contract.trouble import Trouble
from argosy.steps.gang.host import Endpoint
from argosy.steps.pods import processes
from argosy.steps.supervisor.channel import Channel
from argosy.steps.supervisor.server import ChannelServer
from tests.launch.nodes import Cluster, hang_up
from tests.starts import Started

TOKEN = "token-of-the-test"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Pod:
    process: Started
    root: Path
    log: Path

    def text(self) -> str:
        return self.log.read_text(errors="replace")


@dataclass
class Gang:
    """``nnodes`` pods and the channel they talk to."""

    folder: Path
    nnodes: int
    channel: Channel
    endpoint: Endpoint
    server: ChannelServer | None = None
    pods: list[Pod] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [f"pod-{index}" for index in range(self.nnodes)]

    @property
    def store_uri(self) -> str:
        return f"file://{self.folder}/store"

    def root(self, index: int) -> Path:
        return self.folder / f"root-{index}"

    def workspace(self, index: int) -> Path:
        path = self.root(index) / "argosy" / "workspace"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def start(self, **options: Any) -> None:
        self.channel.expect("run-gang", frozenset(self.names))
        self.pods += [self.pod(index, **options) for index in range(self.nnodes)]

    def pod(self, index: int, **options: Any) -> Pod:
        """Start one; in place of one that is lost, too."""
        args, name = LaunchArgs(store_uri=self.store_uri, name="run", **options), self.names[index]
        self.workspace(index)
        environ = {
            **{key: value for key, value in os.environ.items() if not key.startswith("ARGOSY_")},
            names.POD_ROOT: str(self.root(index)),
            names.GANG_HOST: "processes",
            names.CHANNEL_URL: self.endpoint.url,
            names.CHANNEL_TOKEN: self.endpoint.token,
            names.POD_NAME: name,
            names.NODE_NAME: f"node-{index}",
            names.POD_TOKEN: f"{self.folder}-{index}",
            "JOB_COMPLETION_INDEX": str(index),
        }
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = Started("-m", args.MODULE, *args.to_argv(), env=environ, log=output.fileno())
        return Pod(process, self.root(index), log)

    def lose(self, index: int) -> None:
        """SIGKILL all of a pod, at once."""
        self.pods[index].process.send_signal(signal.SIGKILL)
        self.pods[index].process.wait(20)
        token = f"{self.folder}-{index}"
        processes.kill_all(lambda: processes.carrying(names.POD_TOKEN, token))

    def assign(self, restart: int = 0, **changes: Any) -> None:
        """Wait until all have checked in, then hand out the parts."""
        self.until(lambda: set(self.channel.check_ins()) == set(self.names), 20, "check-in")
        here = self.channel.check_ins()
        first = here[self.names[0]]
        common: dict[str, Any] = {
            "restart": restart,
            "attempt": 1,
            "nnodes": self.nnodes,
            "master_addr": first.address,
            "master_port": first.free_port,
            "run_id": "run-1",
            "workflow": "run-abc",
            "generation": 1,
            "log_seq": 1,
            "resume_digest": "",
            "resume_step": 0,
            "dataset_digest": "",
            "args": [],
        }
        common["keepers"] = [here[name].keeps for name in self.names]
        parts = {name: Assignment(node_rank=here[name].pod_index, **{**common, **changes}) for name in self.names}
        self.channel.assign(restart, parts)
        self.look()  # what the restart before said as it ended is no word of this one

    def restart_supervisor(self, away_seconds: float) -> None:
        """The channel's server goes, and later comes back on its port with an empty memory."""
        assert self.server is not None
        self.server.__exit__(None, None, None)
        hang_up(self.endpoint.port)
        time.sleep(away_seconds)
        self.channel = Channel(lambda gang, report: None)
        self.channel.expect("run-gang", frozenset(self.names))
        self.channel.assign(0, {}, released=False)
        self.server = ChannelServer(self.endpoint, self.channel)
        self.server.__enter__()

    def order(self, command: Any, exit_code: int = 0, root: dict[str, Any] | None = None) -> None:
        self.channel.order(Orders(command=command, exit_code=exit_code, root=Trouble(**root) if root else None))

    def look(self) -> None:
        self.reports += self.channel.drain()

    def until(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while True:
            self.look()
            if ready():
                return
            logs = "\n".join(pod.text()[-3000:] for pod in self.pods)
            assert time.monotonic() < deadline, f"no {what} within {seconds} s\n{logs}"
            self.channel.wait(0.05)

    def phases(self) -> dict[str, str]:
        return {report.pod: report.phase for report in self.reports}

    def steps(self) -> list[dict[str, Any]]:
        return [step for report in self.reports for step in report.steps]

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for report in self.reports for event in report.events if event["kind"] == kind]

    def errors(self) -> list[dict[str, Any]]:
        return [asdict(report.error) for report in self.reports if report.error]

    def endings(self) -> dict[int, dict[str, Any]]:
        return {ending.rank: asdict(ending) for report in self.reports for ending in report.endings}

    def exit_codes(self, seconds: float = 20) -> list[int]:
        return [pod.process.wait(seconds) for pod in self.pods]


@pytest.fixture
def make_gang(tmp_path: Path) -> Iterator[Callable[[int], Gang]]:
    """Make one gang per test; afterwards nothing of it runs."""
    made: list[Gang] = []

    def make(nnodes: int) -> Gang:
        port = free_port()
        endpoint = Endpoint(host="127.0.0.1", port=port, url=f"http://127.0.0.1:{port}", token=TOKEN)
        channel = Channel(lambda gang, report: None)
        gang = Gang(tmp_path, nnodes, channel, endpoint, ChannelServer(endpoint, channel))
        gang.server.__enter__()
        made.append(gang)
        return gang

    yield make
    for gang in made:
        for index in range(len(gang.pods)):
            gang.lose(index)
        gang.server.__exit__(None, None, None)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Cluster]]:
    """Make clusters whose savers run in this process; afterwards nothing of them runs."""
    monkeypatch.setattr("argosy.steps.launch.reporter.REPORT_SECONDS", 0.05)
    made: list[Cluster] = []

    def make(**options: Any) -> Cluster:
        made.append(Cluster(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
