"""versitygw tells ``argosy watch --listen`` of an upload by its own notification; no look would have seen it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest

from tests.cluster.cluster import Cluster

RUN = """
name = "fed"
module = "json.tool"
[dataset]
uri = "s3://lake/corpus"
[gang]
nnodes = 1
launcher = "plain"
[trigger]
poll_seconds = 3600
max_starts_per_hour = 100
"""
KEYS = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def until(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_an_upload_starts_a_run(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s3, hook = free_port(), free_port()
    (tmp_path / "s3").mkdir()
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{s3}")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    command = [cluster.instance.folder / "bin" / "versitygw", "--port", f"127.0.0.1:{s3}", "--region", "us-east-1",
               "--event-webhook-url", f"http://127.0.0.1:{hook}/", "posix", tmp_path / "s3"]  # fmt: skip
    watch = [sys.executable, "-m", "argosy.workflows.cli.main", "watch", "run.toml", "--listen", f"127.0.0.1:{hook}"]
    keys = {"ROOT_ACCESS_KEY": "access", "ROOT_SECRET_KEY": "secret"}
    (tmp_path / "s3" / "lake").mkdir()

    def told() -> str:
        return (tmp_path / "log").read_text()

    with (tmp_path / "log").open("ab") as log, ended(subprocess.Popen(watch, cwd=tmp_path, stdout=log, stderr=log)):
        until("the watch to listen", lambda: answers(hook))
        environment = {**os.environ, **keys}
        with ended(subprocess.Popen(command, env=environment, stdout=log, stderr=log)):
            until("versitygw to serve", lambda: answers(s3))
            client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{s3}", region_name="us-east-1")
            baseline = tmp_path / ".argosy"
            until("the first look", lambda: any(baseline.rglob("trigger/baseline.json")), 150)
            client.put_object(Bucket="lake", Key="corpus/v 1+ü/part-0", Body=b"[]")
            runs = tmp_path / ".argosy" / "runs"
            assert not runs.exists()
            client.put_object(Bucket="lake", Key="corpus/v 1+ü/_SUCCESS", Body=b"")
            until("the run", lambda: runs.exists() and any(runs.iterdir()), 120)
    assert "start s3://lake/corpus/v 1+ü" in told(), told()
    assert "Traceback" not in told()
