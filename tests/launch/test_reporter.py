"""The reporter against a real channel: what was told arrives before the pod may go."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from argosy.steps.contract.channel import Assignment, Ending, Orders, Report
from argosy.steps.gang.host import Endpoint
from argosy.steps.launch.channel_client import ChannelClient
from argosy.steps.launch.identity import Identity
from argosy.steps.launch.reporter import BATCH, Reporter
from argosy.steps.supervisor.channel import Channel
from argosy.steps.supervisor.server import ChannelServer

TOLD = 10 * BATCH
"""As a gang tells that trained on while its supervisor was away."""


@pytest.fixture
def channel() -> Iterator[tuple[Channel, Endpoint]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    endpoint = Endpoint(host="127.0.0.1", port=port, url=f"http://127.0.0.1:{port}", token="secret")
    made = Channel(lambda gang, report: None)
    made.expect("g", frozenset(["p"]))
    made.assign(0, {})
    with ChannelServer(endpoint, made):
        yield made, endpoint


@pytest.mark.parametrize("code", [0, 1])
def test_steps_that_were_told_arrive_all_of_them_however_the_ranks_ended(
    channel: tuple[Channel, Endpoint], code: int
) -> None:
    supervisor, endpoint = channel
    told = {"restart": 0, "attempt": 1, "node_rank": 0, "nnodes": 1, "master_addr": "", "master_port": 0, "run_id": "r",
            "workflow": "w", "generation": 1, "log_seq": 1, "resume_digest": "", "resume_step": 0}  # fmt: skip
    assignment = Assignment(dataset_digest="", args=[], **told)  # type: ignore[arg-type]
    identity = Identity("p", "node", 0, endpoint.url, endpoint.token)
    reporter = Reporter(ChannelClient(endpoint.url, endpoint.token), identity, assignment)
    for step in range(1, TOLD + 1):
        reporter.step({"rank": 0, "step": step, "time": float(step), "loss": 1.0})
    reporter.ending(Ending(rank=0, time=1.0, exit_code=code, signal=None, stopped=False))
    reporter.enter("failed" if code else "finished")
    reporter.start()
    heard: list[Report] = []
    while not any(report.phase in ("finished", "failed") for report in heard):
        supervisor.wait(1.0)
        heard += supervisor.drain()
    arrived = sum(len(report.steps) for report in heard)
    assert code or arrived == TOLD, "who has finished has nothing more to tell"
    supervisor.order(Orders(command="stop" if code else "exit"))
    until = time.monotonic() + 30
    while reporter.wait(0.1) is None:
        assert time.monotonic() < until
    reporter.close()
    heard += supervisor.drain()
    assert [step["step"] for report in heard for step in report.steps] == [*range(1, TOLD + 1)]
