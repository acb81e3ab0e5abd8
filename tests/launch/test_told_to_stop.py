"""A pod that is told to stop goes, though its store does not answer, whatever it does there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract import env
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment, StandBy
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang.host import Endpoint
from argosy.steps.launch.evidence import STORE_SECONDS
from argosy.steps.supervisor.channel import Channel
from argosy.steps.supervisor.server import ChannelServer

CODE = {"code_digest": "b" * 64}
FOLDER = {"checkpoint_mode": "opaque", "checkpoint_path": "out", "checkpoint_include": ("*.pt",)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("who", "options", "text", "code"),
    [
        ("spare", CODE, "", ExitCode.PREEMPTED),
        ("rank", CODE, "", ExitCode.PREEMPTED),
        ("rank", FOLDER, "", ExitCode.PREEMPTED),
        ("failed", {}, "raise SystemExit(3)", ExitCode.PREEMPTED),
    ],
    ids=["a spare that fetches the code", "fetching the code", "restoring", "storing what it knows of a failure"],
)
def test_a_store_that_is_away_is_not_waited_for(
    who: str, options: dict[str, Any], text: str, code: ExitCode, tmp_path: Path
) -> None:
    port = free_port()
    endpoint = Endpoint(host="127.0.0.1", port=port, url=f"http://127.0.0.1:{port}", token="secret")
    channel = Channel(lambda gang, report: None)
    channel.expect("g", frozenset(["p", "other"]))
    workdir = tmp_path / "argosy" / "work"
    workdir.mkdir(parents=True)
    (workdir / "train.py").write_text(text)
    args = LaunchArgs(
        store_uri="s3://bucket/x", name="run", script="train.py", workdir="/argosy/work", launcher="plain",
        grace_seconds=5, **options,
    )  # fmt: skip
    told = {"restart": 0, "attempt": 1, "node_rank": 0, "nnodes": 1, "master_addr": "127.0.0.1", "run_id": "r"}
    assignment = Assignment(
        master_port=free_port(), workflow="w", generation=1, log_seq=1, resume_step=0, dataset_digest="", args=[],
        resume_digest="a" * 64 if options is FOLDER else "", **told,
    )  # type: ignore[arg-type]  # fmt: skip
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent, ChannelServer(endpoint, channel):
        asked = f"http://127.0.0.1:{silent.getsockname()[1]}"
        pod = subprocess.Popen(
            [sys.executable, "-P", "-m", "argosy.steps.launch", *args.to_argv()],
            env={
                **os.environ, env.CHANNEL_URL: endpoint.url, env.CHANNEL_TOKEN: "secret", env.POD_NAME: "p",
                env.GANG_NAME: "g", env.POD_ROOT: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path),
                "AWS_ENDPOINT_URL": asked, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x",
                "AWS_REGION": "us-east-1",
            },
        )  # fmt: skip
        try:
            if who == "spare":
                channel.assign(0, {"other": assignment})
                channel.stand_by(StandBy(nnodes=1, workflow="w", dataset_digest=""))
            else:
                channel.assign(0, {"p": assignment})
            silent.settimeout(60)
            connection, _ = silent.accept()  # it asks, and hears nothing
            with connection:
                pod.send_signal(signal.SIGTERM)
                began = time.monotonic()
                assert pod.wait(60) == code
                assert time.monotonic() - began < STORE_SECONDS + 15
        finally:
            pod.kill()
            pod.wait()
    assert not any(report.error for report in channel.drain())


IN_A_FINALIZER = """
import gc, os, signal, sys

def collected(phase, info):
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_check_in":
        frame = frame.f_back
    if frame is not None and frame.f_locals.get("heard"):
        gc.callbacks.remove(collected)
        print("stopped while it collects", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

gc.callbacks.append(collected)
gc.set_threshold(1)
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.launch.node import launch
sys.exit(launch(LaunchArgs.from_argv(sys.argv[1:])))
"""


def test_a_stop_that_comes_while_memory_is_collected_is_heard(tmp_path: Path) -> None:
    args = LaunchArgs(store_uri=f"file://{tmp_path}/store", name="run", script="train.py", launcher="plain")
    away = f"http://127.0.0.1:{free_port()}"
    pod = subprocess.Popen(
        [sys.executable, "-P", "-c", IN_A_FINALIZER, *args.to_argv()],
        env={**os.environ, env.CHANNEL_URL: away, env.CHANNEL_TOKEN: "secret", env.POD_NAME: "p", env.GANG_NAME: "g",
             env.POD_ROOT: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        said, _ = pod.communicate(timeout=30)
    finally:
        pod.kill()
        pod.wait()
    assert said == b"stopped while it collects\n"
    assert pod.returncode == ExitCode.PREEMPTED
