"""Whole nodes whose ranks write what NCCL would: what launch sets, reads, says and does about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.transport import ExpectedTransport
from argosy.steps.launch.arithmetic import visible_gpus
from argosy.steps.launch.nccl_logs import SUBSYSTEMS, choose_logs
from argosy.steps.launch.pod_facts import link_of
from argosy.steps.launch.transport_watch import transport_watch
from argosy.steps.nccl.effective import POD, Variable

if TYPE_CHECKING:
    from tests.launch.conftest import Gang

EXPECTED = ExpectedTransport("IB", True, 8, 400, False, 0.0, "ib-sriov").to_json()
SOCKETS = """
import os, socket, sys, time
path = os.environ.get("NCCL_DEBUG_FILE", "").replace("%h", socket.gethostname()).replace("%p", str(os.getpid()))
log = open(path, "w", buffering=1) if path else sys.stdout
head = f"{socket.gethostname()}:{os.getpid()}:{os.getpid()} [0]"
print(f"\\n[2026-11-22 02:00:00] {head} net.cc:1 (f) NCCL WARN NET/IB : Unable to open device mlx5_0", file=log)
for text in ("NET/IB : No device found.", "Using network Socket"):
    print(f"{head} NCCL INFO {text}", file=log, flush=True)
for step in range(1, 2000 if len(sys.argv) > 1 else 4):
    print(f"step {step} loss 1.0", flush=True)
    time.sleep(0.02)
"""
SILENT = """
import os
chosen = sorted(name for name in os.environ if name.startswith("NCCL_"))
for step in range(1, 4):
    print(f"step {step} loss 1.0 {chosen}", flush=True)
"""


def write(gang: Gang, text: str) -> None:
    for index in range(gang.nnodes):
        (gang.workspace(index) / "train.py").write_text(text)


def finish(gang: Gang) -> list[dict[str, object]]:
    gang.until(lambda: set(gang.phases().values()) == {"finished"}, 60, "end")
    events = gang.events("transport")
    gang.order("exit")
    assert gang.exit_codes() == [0] * gang.nnodes
    return events


def test_a_fallback_is_said_with_its_reason_and_the_run_goes_on(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(2)
    write(gang, SOCKETS)
    gang.start(script="train.py", launcher="plain", expected_transport=EXPECTED)
    gang.assign()
    events = finish(gang)
    assert {(event["node"], event["state"], event["profile"]) for event in events} == {
        ("node-0", "wrong", "ib-sriov"),
        ("node-1", "wrong", "ib-sriov"),
    }
    why = 'expected NET/IB with GDR, got NET/Socket because "NET/IB : Unable to open device mlx5_0"'
    assert {event["sentence"] for event in events} == {why}
    log = gang.pods[0].text()
    assert f"argosy: warning: transport: {why}. Ask for the RDMA resource" in log
    assert f"NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS={SUBSYSTEMS}, NCCL_DEBUG_FILE=" in log
    assert "[nccl] NET/IB : Unable to open device mlx5_0" in log
    assert "[rank 0] " in log
    assert "NCCL INFO" not in log


def test_enforced_it_ends_the_run_also_when_nccl_writes_to_stdout(
    make_gang: Callable[[int], Gang], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "info")
    monkeypatch.setenv("NCCL_TIMEOUT", "3600")
    gang = make_gang(2)
    write(gang, SOCKETS)
    gang.start(script="train.py", launcher="plain", arg=("long",), expected_transport=EXPECTED, transport="enforce")
    gang.assign()
    gang.until(lambda: len({error["pod"] for error in gang.errors()}) == 2, 60, "errors")
    error = gang.errors()[0]
    assert (error["cause"], error["code"]) == ("nccl_network_init", 78)
    assert error["quote"].startswith("expected NET/IB with GDR, got NET/Socket because ")
    assert gang.phases() == {"pod-0": "failed", "pod-1": "failed"}
    told = gang.events("environment")
    assert [event["variables"] for event in told] == [["NCCL_DEBUG=info (pod)", "NCCL_TIMEOUT=3600 (pod)"]] * 2
    assert all(len(event["findings"]) == 1 for event in told)
    assert "argosy: environment: error NCCL001: no NCCL and no torch ever read NCCL_TIMEOUT" in gang.pods[0].text()
    gang.order("exit", 78)
    assert gang.exit_codes() == [78, 78]
    assert "NCCL_DEBUG_FILE=" not in gang.pods[0].text()


def test_ranks_without_nccl_leave_it_unknown(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    write(gang, SILENT)
    tcp = ExpectedTransport("Socket", False, 0, 0, False, 0.0, "tcp").to_json()
    batch = {"micro_batch_size": 8, "accumulation_steps": 2, "effective_batch_size": 32, "learning_rate": "0.003"}
    gang.start(script="train.py", launcher="plain", nproc_per_node=2, expected_transport=tcp, **batch)
    gang.assign()
    events = finish(gang)
    log = gang.pods[0].text()
    assert "argosy: batch: 8 samples x 2 micro steps x 2 ranks = 32 per optimizer step; learning rate 0.003" in log
    assert gang.events("environment") == []
    assert [event["state"] for event in events] == ["unknown"]
    assert "NCCL has written nothing (ranks that use gloo never do)" in log


@pytest.mark.parametrize("given", [{}, {"expected_transport": EXPECTED, "transport": "off"}])
def test_nothing_is_set_where_nothing_is_expected(given: dict[str, str], tmp_path: Path) -> None:
    args = LaunchArgs(store_uri="file:///x", name="n", script="t.py", **given)  # type: ignore[arg-type]
    environ: dict[str, str] = {}
    found = transport_watch(args, None, [], (tmp_path, tmp_path), environ, None)  # type: ignore[arg-type]
    assert (found, environ) == (None, {})


def test_a_batch_for_another_number_of_ranks_ends_the_run_before_it_begins(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    write(gang, SILENT)
    gang.start(script="train.py", launcher="plain", nproc_per_node=2, micro_batch_size=8, effective_batch_size=40)
    gang.assign()
    gang.until(lambda: bool(gang.errors()), 30, "error")
    assert gang.errors()[0]["cause"] == "launcher_usage"
    assert "2 ranks (1 nodes x 2) take in one micro step: 8 samples x 2 = 16;" in gang.errors()[0]["quote"]
    gang.order("exit", 78)
    assert gang.exit_codes() == [78]


@pytest.mark.parametrize(
    ("chosen", "pattern", "why"),
    [
        ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "/logs/%h-100%%.%p"}, "/logs/*-100%.*", ""),
        ({"NCCL_DEBUG": "TRACE", "NCCL_DEBUG_FILE": "out/[n].%p"}, "/w/out/[[]n].*", ""),
        ({"NCCL_DEBUG": "Info"}, "/ranks/rank-*.log", ""),
        ({"NCCL_DEBUG": "WARN"}, "", "NCCL_DEBUG = WARN is set, so NCCL does not tell its network"),
        ({"NCCL_DEBUG_FILE": "/logs/x"}, "", "NCCL_DEBUG_FILE without NCCL_DEBUG is set"),
    ],
)
def test_what_somebody_has_chosen_stays(chosen: dict[str, str], pattern: str, why: str) -> None:
    effective = [Variable(name, value, POD) for name, value in chosen.items()]
    logs = choose_logs(effective, Path("/ranks"), Path("/w"))
    assert (logs.variables, logs.pattern, logs.owned) == ({}, pattern, False)
    assert logs.why.startswith(why)
    assert bool(logs.why) == bool(why)


@pytest.mark.parametrize(("layer", "link"), [("InfiniBand", "ib"), ("Ethernet", "roce"), ("Unspecified", "unknown")])
def test_the_link_is_what_the_adapters_speak(layer: str, link: str, tmp_path: Path) -> None:
    port = tmp_path / "mlx5_0" / "ports" / "1"
    port.mkdir(parents=True)
    (port / "link_layer").write_text(f"{layer}\n")
    assert link_of(tmp_path) == link
    (tmp_path / "drivers" / "efa").mkdir(parents=True)
    (tmp_path / "a_0" / "device").mkdir(parents=True)
    (tmp_path / "a_0" / "device" / "driver").symlink_to(tmp_path / "drivers" / "efa")
    assert link_of(tmp_path) == "efa"
    assert link_of(tmp_path / "absent") == "unknown"


def test_gpus_are_counted_by_their_device_files(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia11", "nvidiactl", "nvidia-uvm", "nvidia-caps", "null"):
        (tmp_path / name).touch()
    assert visible_gpus(tmp_path) == 2
    assert visible_gpus(tmp_path / "absent") == 0
