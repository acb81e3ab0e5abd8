"""What Prometheus is told, over real HTTP."""

from __future__ import annotations

import contextlib
import http.client
import math
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from argosy.steps.guarded import STRANGERS
from argosy.steps.runlog import RunLog
from argosy.steps.store import open_store
from argosy.steps.supervisor.metrics import Metrics, MetricsServer


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[RunLog, MetricsServer]]:
    metrics = Metrics('gpt"\n')
    with (
        RunLog(open_store(tmp_path.as_uri()), "gpt/runs/a", "supervisor", metrics.absorb) as log,
        MetricsServer("127.0.0.1", 0, metrics) as server,
    ):
        yield log, server


def ask(port: int, verb: str = "GET", path: str = "/metrics") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request(verb, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def figures(port: int) -> dict[str, float]:
    """Sample's name, with the cause where there is one, and its value."""
    status, text = ask(port)
    assert status == 200
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert {sample.labels["run"] for sample in samples} <= {'gpt"\n'}
    return {f"{sample.name} {sample.labels.get('cause', '')}".strip(): sample.value for sample in samples}


def test_the_figures_follow_the_log(log: tuple[RunLog, MetricsServer]) -> None:
    events, server = log
    assert "argosy_step" not in figures(server.port)  # nothing is told of what is not known yet
    events.append("gang_created", attempt=1, gang="g", nnodes=2, nproc_per_node=8)
    events.append("restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    events.append("step", attempt=1, restart=0, rank=0, step=20, loss=2.5, end_step=200, tokens_per_second=1e6)
    events.append("step", attempt=1, restart=0, rank=0, step=21, loss=float("nan"))
    events.append("checkpoint_committed", step=20, digest="a" * 64, bytes=7, seconds=0.5, generation=1, final=False)
    for cause in ("host_oom", "nccl_timeout", "host_oom"):
        events.append("restart_ended", attempt=1, restart=0, cause=cause, last_step=21)
    told = figures(server.port)
    assert told["argosy_nodes"] == 2
    assert told["argosy_ranks_per_node"] == 8
    assert told["argosy_step"] == 21
    assert told["argosy_end_step"] == 200
    assert math.isnan(told["argosy_loss"])
    assert told["argosy_tokens_per_second"] == 1e6
    assert told["argosy_attempts_total"] == 1
    assert told["argosy_failures_total host_oom"] == 2
    assert told["argosy_failures_total nccl_timeout"] == 1
    assert told["argosy_checkpoint_step"] == 20
    assert told["argosy_checkpoints_total"] == 1
    assert told["argosy_checkpoint_timestamp_seconds"] > 1.7e9


def test_nothing_else_is_told(log: tuple[RunLog, MetricsServer]) -> None:
    _, server = log
    assert ask(server.port, path="/v1/report")[0] == 404
    assert ask(server.port, "POST")[0] == 501
    with contextlib.ExitStack() as idle:
        for _ in range(STRANGERS + 50):
            raw = idle.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            raw.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        assert ask(server.port)[0] == 200
