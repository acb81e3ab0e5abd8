"""In the pod of KubeRay's head launch answers the workers' init containers, and nothing of it is left afterwards."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.steps.contract import env as names
from argosy.steps.contract.errors import InputError
from argosy.steps.launch.ray_head import AnsweringHead
from argosy.steps.pods import processes

BESIDE = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
GENERATED = "ray start --head  --block  --dashboard-host=0.0.0.0  --metrics-export-port=8080 "
"""As KubeRay 1.5.1 writes it."""


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A pod's: Ray's sockets lie below it, whose paths have at most 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv(names.POD_ROOT, folder)
        yield Path(folder)


def test_a_worker_that_waits_as_kuberay_does_is_answered(root: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    environ = {**os.environ, "PATH": BESIDE, "KUBERAY_GEN_RAY_START_CMD": GENERATED, "RAY_PORT": str(port)}
    environ["OF_THIS_TEST"] = str(port)
    head = AnsweringHead.where_asked(environ)
    assert head is not None
    address = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()[0]
    asks = [str(Path(sys.executable).with_name("ray")), "health-check", "--address", f"{address}:{port}"]
    try:
        deadline = time.monotonic() + 120
        while (done := subprocess.run(asks, capture_output=True, text=True)).returncode:
            assert time.monotonic() < deadline, done.stderr
        (session,) = {os.getsid(pid) for pid in processes.carrying("OF_THIS_TEST", str(port), whole=True)}
    finally:
        head.end()
    of_session = ["ps", "-o", "stat=,args=", "-s", str(session)]  # one of them writes over its environment
    left = subprocess.run(of_session, capture_output=True, text=True).stdout.splitlines()
    assert [line for line in left if not line.startswith("Z")] == []
    assert not (root / "argosy/tmp/ray-head").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address, port))


def test_one_that_ends_says_why_and_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(names.POD_ROOT, str(tmp_path / ("long" * 30)))
    head = AnsweringHead.where_asked({**os.environ, "PATH": BESIDE, "KUBERAY_GEN_RAY_START_CMD": GENERATED})
    assert head is not None
    said, deadline = "", time.monotonic() + 120
    while said.count("AF_UNIX path length") < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
        said += capfd.readouterr().out
    head.end()
    assert said.count("for which KubeRay's workers wait, has ended") >= 2


@pytest.mark.parametrize("generated", ["", "ray start --address=gang-head-svc.ns.svc.cluster.local:6379  --block "])
def test_in_other_pods_there_is_none(generated: str) -> None:
    assert AnsweringHead.where_asked({"PATH": BESIDE, "KUBERAY_GEN_RAY_START_CMD": generated}) is None


def test_an_image_without_ray_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no ray on PATH.*use an image with Ray"):
        AnsweringHead.where_asked({"PATH": str(tmp_path), "KUBERAY_GEN_RAY_START_CMD": GENERATED})
