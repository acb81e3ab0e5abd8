"""The end: claim settled, summary left, webhook told; and nothing of it can fail the run."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from argosy.steps import finalize
from argosy.steps.contract.arguments import AdmitArgs, FinalizeArgs
from argosy.steps.contract.layout import run_prefix
from argosy.steps.runlog import RunLog

EVENT: dict[str, Any] = {"run_digest": "r", "dataset_digest": "d", "event": "e1"}


def ran(pods: Any, workflow: str, decision: str = "promote") -> None:
    pods.run(AdmitArgs, workflow, **EVENT | {"dataset_digest": workflow})
    with RunLog(pods.store, run_prefix("run", workflow), "train") as log:
        log.append("restart_began", attempt=1, restart=0, generation=1, restored_step=0)
        log.append(
            "restart_ended", attempt=1, restart=0, cause="native_crash", signal=9, rank=1, node="n1", last_step=40
        )
        log.append("restart_began", attempt=1, restart=1, generation=1, restored_step=30)
        log.append("step", attempt=1, restart=1, rank=0, step=100, loss=1.0)
        log.append("train_ended", exit_code=0, checkpoint_digest="c" * 64)
        log.append("evaluated", metric="bpb", value=2.0, checkpoint_digest="c" * 64)
        log.append("gated", decision=decision, reason="bpb 2 ...", metric="bpb", value=2.0, floor=2.2)
        if decision == "promote":
            log.append("promoted", pointer="production", digest="c" * 64, previous="", rollback=False)


@pytest.mark.parametrize("decision", ["promote", "refuse"])
def test_summary(decision: str, any_pods: Any) -> None:
    ran(any_pods, "wf-1", decision)
    told = any_pods.run(FinalizeArgs, status="Succeeded")
    assert told.code == 0, told.err
    summary = any_pods.json("run/runs/wf-1/summary.json")
    assert summary["phase"] == "Succeeded"
    assert summary["metric"] == {"name": "bpb", "value": 2.0}
    assert summary["promoted_digest"] == ("c" * 64 if decision == "promote" else "")
    assert summary["checkpoint_digest"] == "c" * 64
    first, second = summary["attempts"]
    assert (first["cause"], first["signal"], first["node"], first["last_step"]) == ("native_crash", 9, "n1", 40)
    assert (second["cause"], second["last_step"], second["restored_step"]) == (None, 100, 30)
    assert any_pods.events("wf-1", "finalized")[0].fields == {"status": "Succeeded"}


def test_a_gang_that_never_came_together_is_an_attempt_too(pods: Any) -> None:
    """It has no ``restart_began``: the agents were never started."""
    pods.run(AdmitArgs, "wf-1", **EVENT)
    with RunLog(pods.store, run_prefix("run", "wf-1"), "train") as log:
        log.append("restart_ended", attempt=1, restart=0, cause="unschedulable", quote="0/3 nodes")
        log.append("restart_began", attempt=2, restart=0, generation=1, restored_step=0)
    pods.run(FinalizeArgs, status="Failed")
    attempts = pods.json("run/runs/wf-1/summary.json")["attempts"]
    assert [(each["attempt"], each["gang"], each["cause"]) for each in attempts] == [
        (None, 1, "unschedulable"),
        (1, 2, None),
    ]


def test_a_run_that_died_before_admission_has_a_summary(pods: Any) -> None:
    assert pods.run(FinalizeArgs, status="Failed").code == 0
    summary = pods.json("run/runs/wf-1/summary.json")
    assert (summary["phase"], summary["attempts"], summary["metric"]) == ("Failed", [], None)


def test_a_duplicate_with_the_same_run_id_overwrites_nothing(pods: Any) -> None:
    pods.run(AdmitArgs, "wf-1", run_id="stable", **EVENT)
    pods.run(FinalizeArgs, "wf-1", run_id="stable", status="Succeeded")
    pods.run(AdmitArgs, "wf-2", run_id="stable", **EVENT)
    assert pods.run(FinalizeArgs, "wf-2", run_id="stable", status="Succeeded").code == 0
    assert pods.json("run/runs/stable/summary.json")["workflow"] == "wf-1"


class Receiver(BaseHTTPRequestHandler):
    got: ClassVar[list[Any]] = []
    answer = 200

    def do_POST(self) -> None:
        Receiver.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(Receiver.answer)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def webhook() -> Iterator[str]:
    Receiver.got = []
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/secret-path"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("answer", [200, 500, 403])
def test_webhook_is_told_and_cannot_fail_the_run(answer: int, webhook: str, pods: Any) -> None:
    Receiver.answer = answer
    ran(pods, "wf-1")
    pods.env["ARGOSY_WEBHOOK_URL"] = webhook
    told = pods.run(FinalizeArgs, status="Succeeded", webhook=True)
    assert told.code == 0
    (body,) = Receiver.got
    assert body["text"].startswith("run (wf-1): Succeeded, promoted cccccccccccc")
    assert "secret-path" not in told.out + told.err
    assert ("refused" in told.err) == (answer != 200)


@pytest.mark.parametrize(
    "url", ["", "file:///etc/passwd", "http://127.0.0.1:1/x", "http://[", "https://\x00"[:8], "http://a b/"]
)
def test_a_webhook_that_cannot_be_reached_is_said(url: str, pods: Any) -> None:
    pods.env["ARGOSY_WEBHOOK_URL"] = url
    told = pods.run(FinalizeArgs, status="Failed", webhook=True)
    assert (told.code, told.err.count("\n")) == (0, 1)
    assert not url or url not in told.err


def test_without_the_flag_nobody_is_told(webhook: str, pods: Any) -> None:
    pods.env["ARGOSY_WEBHOOK_URL"] = webhook
    pods.run(FinalizeArgs, status="Succeeded")
    assert Receiver.got == []


@pytest.mark.parametrize("status", ["Succeeded", "Failed"])
def test_a_store_that_stays_away_neither_fails_nor_holds_up_the_end(
    status: str, webhook: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stopped run waited minutes for it, and one that had trained was Failed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": nobody}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("ARGOSY_WEBHOOK_URL", webhook)
    monkeypatch.setattr(finalize, {"Succeeded": "WAIT_SECONDS", "Failed": "BRIEF_SECONDS"}[status], 0.5)
    given = FinalizeArgs(
        store_uri="s3://lake/store", name="run", workflow="wf-1", workflow_uid="u", status=status, webhook=True
    )
    began = time.monotonic()
    finalize.finalize(given)
    assert time.monotonic() - began < 60, "it waited for the store"
    told = capsys.readouterr()
    assert "the end of the run is not recorded: cannot read s3://lake/store" in told.err
    assert told.out.startswith(f"run (wf-1): {status}\n")
    assert [body["phase"] for body in Receiver.got] == [status]
