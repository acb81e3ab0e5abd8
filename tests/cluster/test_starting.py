"""What a start leaves when it is killed, and numbers that name no instance."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import network
from tests.cluster.cluster import Cluster, why_not
from tests.cluster.images import CHECKOUT
from tests.cluster.instance import LARGEST, Instance
from tests.cluster.process import start_time
from tests.cluster.progress import wait_for

COMMAND = [sys.executable, "-m", "tests.cluster"]


def test_what_a_killed_start_leaves_is_ended_by_the_next_verb() -> None:
    if reason := why_not():
        pytest.skip(reason)
    instance = Instance(LARGEST)
    environment = {**os.environ, "ARGOSY_CLUSTER": str(LARGEST)}
    with subprocess.Popen([*COMMAND, "up"], cwd=CHECKOUT, env=environment, stderr=subprocess.DEVNULL) as starter:
        try:
            nodes = Cluster(instance).nodes.values()
            wait_for("nodes to be switched on", lambda: all(node.init for node in nodes), 300)
        finally:
            starter.send_signal(signal.SIGKILL)
    left = network.members(instance)
    assert len(left) > 6, "etcd, the API server, S3 and the nodes outlive their starter"
    done = subprocess.run([*COMMAND, "down"], cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert network.namespaces(instance) == []
    assert not Path("/sys/class/net", instance.name).exists()
    assert list(Path("/sys/fs/cgroup").glob(f"*/{instance.name}")) == []
    # Their starter is dead: where process 1 reaps nobody, as in many containers, they stay in /proc.
    assert [pid for pid in left if start_time(pid) is not None] == []


@pytest.mark.parametrize("number", ["0", "32", "-1", "two", "1.5"])
def test_numbers_that_name_no_instance(number: str) -> None:
    environment = {**os.environ, "ARGOSY_CLUSTER": number}
    done = subprocess.run([*COMMAND, "down"], cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "1 to 31" in done.stderr
    assert "Traceback" not in done.stderr
