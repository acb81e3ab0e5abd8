"""Nodes with networks of their own on one machine (root): namespaces on a bridge, whose links can be slow or dead."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.network import throttle
from tests.cluster.process import run

MASTER_PORT = 29871
STORE = """
import sys, time
from datetime import timedelta
from torch.distributed import TCPStore
store = TCPStore("0.0.0.0", int(sys.argv[1]), is_master=True, wait_for_workers=False, timeout=timedelta(seconds=60))
print("ready", flush=True)
time.sleep(600)
"""


class Network:
    """``nodes`` namespaces on a bridge, node k at 10.213.0.(k+1); ``prefix`` keeps networks apart (7 characters)."""

    def __init__(self, nodes: int, prefix: str) -> None:
        self.nodes, self.prefix = nodes, prefix

    def namespace(self, node: int) -> str:
        """Its name."""
        return f"{self.prefix}-{node}"

    def address(self, node: int) -> str:
        """Where a node is reached."""
        return f"10.213.0.{node + 1}"

    @contextlib.contextmanager
    def up(self) -> Iterator[None]:
        """Make it; taken away at the end."""
        try:
            self._hub()
            for node in range(self.nodes):
                self._attach(node)
            yield
        finally:
            for name in (*map(self.namespace, range(self.nodes)), self.prefix):
                subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def _hub(self) -> None:
        run("ip", "netns", "add", self.prefix)
        run("ip", "-n", self.prefix, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self.prefix, "link", "set", "bridge", "up")

    def _attach(self, node: int) -> None:
        name = self.namespace(node)
        run("ip", "netns", "add", name)
        run(*f"ip -n {self.prefix} link add port{node} type veth peer name eth0 netns {name}".split())
        run(*f"ip -n {self.prefix} link set port{node} master bridge up".split())
        run(*f"ip -n {name} addr add {self.address(node)}/24 dev eth0".split())
        run(*f"ip -n {name} link set eth0 up".split())
        run(*f"ip -n {name} link set lo up".split())

    def slow(self, node: int, rate: str) -> None:
        """Let at most ``rate`` (tc's word) through a node's cable, each way."""
        throttle(self.prefix, f"port{node}", rate)
        throttle(self.namespace(node), "eth0", rate)

    def cut(self, one: int, other: int) -> None:
        """Nothing gets from one to the other, or back."""
        run(*f"ip -n {self.namespace(one)} route add blackhole {self.address(other)}/32".split())
        run(*f"ip -n {self.namespace(other)} route add blackhole {self.address(one)}/32".split())

    def preflight(self, mode: str = "warn") -> list[str]:
        """Run the checks with one rank on each node; what rank 0 said of them."""
        with tempfile.TemporaryDirectory() as folder, self._store():
            logs = [Path(folder, str(node)) for node in range(self.nodes)]
            ranks = [self._rank(node, mode, log) for node, log in enumerate(logs)]
            try:
                for rank in ranks:
                    rank.wait(timeout=240)
            finally:
                for rank in ranks:
                    rank.kill()
            said = [log.read_text() for log in logs]
            assert all("trained" in text for text in said), said
            return [line for line in said[0].splitlines() if "preflight" in line]

    def _rank(self, node: int, mode: str, log: Path) -> subprocess.Popen[bytes]:
        own = {
            "RANK": node, "WORLD_SIZE": self.nodes, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "OMP_NUM_THREADS": 1,
            "MASTER_ADDR": self.address(0), "MASTER_PORT": MASTER_PORT, "GLOO_SOCKET_IFNAME": "eth0",
            "ARGOSY_NODE_NAME": f"node-{node}",
        }  # fmt: skip
        enter = ["ip", "netns", "exec", self.namespace(node), sys.executable, "-m", "argosy.steps.preflight"]
        environ = {**os.environ, **{name: str(value) for name, value in own.items()}}
        with log.open("wb") as out:
            return subprocess.Popen([*enter, f"--mode={mode}", "--", "echo", "trained"], env=environ, stdout=out,
                                    stderr=out)  # fmt: skip

    @contextlib.contextmanager
    def _store(self) -> Iterator[None]:
        """The store of torchrun's agent, on node 0."""
        enter = ["ip", "netns", "exec", self.namespace(0), sys.executable, "-c", STORE, str(MASTER_PORT)]
        with subprocess.Popen(enter, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            try:
                yield
            finally:
                process.kill()
