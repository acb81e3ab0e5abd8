"""The channel over real HTTP, and the ledger with two supervisors."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment, Ending, Orders, Part, Report, Save, StandBy
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.trouble import Trouble
from argosy.steps.gang.host import Endpoint
from argosy.steps.guarded import STRANGERS
from argosy.steps.launch import channel_client, reporter
from argosy.steps.launch.channel_client import ChannelClient
from argosy.steps.launch.identity import Identity
from argosy.steps.runlog import RunLog, read_events
from argosy.steps.store import open_store
from argosy.steps.store.base import StoreError
from argosy.steps.store.files import FileStore
from argosy.steps.store.leaving import LeavableStore
from argosy.steps.supervisor import channel
from argosy.steps.supervisor.channel import Channel
from argosy.steps.supervisor.ledger import Ledger
from argosy.steps.supervisor.record import Record
from argosy.steps.supervisor.server import ChannelServer


class Wire:
    """A channel, its server, and requests to it."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.endpoint = Endpoint(host="127.0.0.1", port=port, url=f"http://127.0.0.1:{port}", token="secret")
        self.kept: list[tuple[str, Report]] = []
        self.store_is_away = False
        self.channel = Channel(self._keep, nproc=2)
        self.server = ChannelServer(self.endpoint, self.channel)

    def _keep(self, gang: str, report: Report) -> None:
        if self.store_is_away:
            raise StepError(Cause.S3_THROTTLE, "away")
        self.kept.append((gang, report))

    def post(self, path: str, body: bytes | dict[str, Any], token: str = "secret") -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.endpoint.port, timeout=30)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, data, {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found

    def check_in(self, index: int, last: int = -1) -> tuple[int, dict[str, Any]]:
        message = {"pod": f"p{index}", "node": f"n{index}", "pod_index": index, "address": "127.0.0.1",
                   "free_port": 1000 + index, "nproc": 1, "last_restart": last, "from_the_future": 1}  # fmt: skip
        return self.post("/v1/check-in", message)

    def report(self, index: int, restart: int, **given: Any) -> tuple[int, dict[str, Any]]:
        message = {"pod": f"p{index}", "node": f"n{index}", "node_rank": index, "restart": restart,
                   "phase": "running", **given}  # fmt: skip
        return self.post("/v1/report", message)

    def assign(self, restart: int, pods: int) -> None:
        parts = {
            f"p{index}": Assignment(
                restart=restart, attempt=1, node_rank=index, nnodes=pods, master_addr="127.0.0.1", master_port=1000,
                run_id="r", workflow="w", generation=1, log_seq=1, resume_digest="", resume_step=0, dataset_digest="",
                args=[],
            )
            for index in range(pods)
        }  # fmt: skip
        self.channel.assign(restart, parts)


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    with made.server:
        yield made


def test_nobody_starts_before_all_have_checked_in(wire: Wire) -> None:
    wire.channel.expect("g", frozenset({"p0", "p1"}))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(wire.check_in, 0)
        while "p0" not in wire.channel.check_ins():
            wire.channel.wait(1)
        assert not first.done()
        second = pool.submit(wire.check_in, 1)
        while set(wire.channel.check_ins()) != {"p0", "p1"}:
            wire.channel.wait(0.02)
        wire.assign(0, 2)
        assert [found.result()[1]["node_rank"] for found in (first, second)] == [0, 1]


def test_a_lost_answer_is_given_again_and_the_next_restart_is_waited_for(wire: Wire) -> None:
    wire.channel.expect("g", frozenset({"p0"}))
    wire.assign(0, 1)
    assert wire.check_in(0)[1]["restart"] == 0
    assert wire.check_in(0)[1]["restart"] == 0
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wire.check_in, 0, 0)
        while not wire.channel.check_ins():
            wire.channel.wait(0.02)
        wire.assign(1, 1)
        assert waiting.result()[1]["restart"] == 1


def test_orders_reach_reports_and_an_older_restart_is_stopped(wire: Wire) -> None:
    wire.channel.expect("g", frozenset({"p0"}))
    wire.assign(3, 1)
    assert wire.report(0, 3)[1]["command"] == "continue"
    wire.channel.order(Orders(command="stop", root=Trouble(cause="hang")))
    assert wire.report(0, 3)[1]["root"]["cause"] == "hang"
    assert wire.report(0, 2)[1]["command"] == "stop"
    wire.channel.order(Orders(command="exit", exit_code=76))
    answer = wire.check_in(0, 3)[1]
    assert answer == {
        "command": "exit",
        "exit_code": 76,
        "root": None,
        "step": 0,
        "save": None,
        "commits": -1,
        "parts": [],
    }
    assert [report.restart for report in wire.channel.drain()] == [3, 3]


def test_evidence_is_stored_before_it_is_answered(wire: Wire) -> None:
    wire.channel.expect("g", frozenset({"p0"}))
    wire.assign(0, 1)
    ending = {"rank": 0, "time": 1.0, "exit_code": 1, "signal": None, "stopped": False}
    wire.store_is_away = True
    step = {"rank": 0, "step": 3, "time": 1.0}
    assert wire.report(0, 0, phase="failed", endings=[ending], steps=[step])[0] == 503
    (heard,) = wire.channel.drain()
    assert (heard.endings, heard.steps) == ([Ending.from_json(ending)], []), "it was silent, or told its steps twice"
    wire.store_is_away = False
    assert wire.report(0, 0, phase="failed", endings=[ending])[0] == 200
    assert [(gang, report.endings) for gang, report in wire.kept] == [("g", [Ending.from_json(ending)])]


def test_how_a_pod_ended_is_heard_with_its_last_steps(wire: Wire) -> None:
    """By them it is known since when a loss was no number, and what was saved: it was judged without."""
    wire.channel.expect("g", frozenset({"p0"}))
    wire.assign(0, 1)
    wire.channel._keep = lambda gang, report: time.sleep(0.2)
    ending = {"rank": 0, "time": 1.0, "exit_code": 0, "signal": None, "stopped": False}
    heard: list[Report] = []
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(wire.report, 0, 0, endings=[ending], steps=[{"rank": 0, "step": 7}])
        while not heard:
            wire.channel.wait(0.02)
            heard = wire.channel.drain()
        assert told.result(30)[0] == 200
    assert [(len(report.endings), len(report.steps)) for report in heard] == [(1, 1)]


def test_who_waits_for_the_store_is_heard_all_the_while(wire: Wire) -> None:
    """A cut of a minute made a lost node of a pod whose last report was being stored."""
    wire.channel.expect("g", frozenset({"p0"}))
    wire.assign(0, 1)
    stored = threading.Event()
    wire.channel._keep = lambda gang, report: bool(stored.wait(30)) and None
    ending = {"rank": 0, "time": 1.0, "exit_code": 0, "signal": None, "stopped": False}
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(wire.report, 0, 0, endings=[ending])
        while not wire.channel.drain():
            wire.channel.wait(0.02)
        assert [report.pod for report in wire.channel.drain()] == ["p0"]
        stored.set()
        assert told.result(30)[0] == 200
    wire.channel.drain()
    assert wire.channel.drain() == []


def test_a_pod_that_can_only_wait_is_answered_when_it_is_decided(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.channel.expect("g", frozenset({"p0"}))
    wire.assign(0, 1)
    endings = [{"rank": rank, "time": 1.0, "exit_code": 1, "signal": None, "stopped": False} for rank in (0, 1)]
    monkeypatch.setattr(channel, "REPORT_SECONDS", 60.0)
    assert wire.report(0, 0, endings=endings[:1])[1]["command"] == "continue"
    for told in ({"endings": endings}, {"phase": "failed"}):
        wire.channel.drain()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(wire.report, 0, 0, **told)
            while not wire.channel.drain():
                wire.channel.wait(0.02)
            assert not waiting.done()
            wire.channel.order(Orders(command="stop"))
            assert waiting.result(30)[1]["command"] == "stop"
        wire.channel.order(Orders(command="continue"))
    monkeypatch.setattr(channel, "REPORT_SECONDS", 0.1)
    assert wire.report(0, 0, phase="failed")[1]["command"] == "continue"


def test_who_has_told_all_says_nothing_when_it_leaves(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "REPORT_SECONDS", 60.0)
    wire.channel.expect("g", frozenset({"p0"}))
    for restart, late in enumerate(([], ["staged"])):
        wire.assign(restart, 1)
        wire.channel.order(Orders(command="stop"))
        assignment = Assignment.from_json(wire.check_in(0, restart - 1)[1])
        identity = Identity("p0", "n0", 0, wire.endpoint.url, "secret")
        told = reporter.Reporter(ChannelClient(wire.endpoint.url, "secret"), identity, assignment)
        told.start()
        while told.orders() is None:
            told.wait(1)
        for kind in late:
            told.event(kind)
        told.close()
        assert [[event["kind"] for event in each.events] for each in wire.channel.drain()] == [[], *[[e] for e in late]]


def test_evidence_that_is_told_again_is_stored_once(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    ending = Ending(rank=0, time=1.0, exit_code=1, signal=None, stopped=False)
    first = Report(pod="p0", node="n0", node_rank=0, restart=0, phase="running", endings=[ending])
    with RunLog(store, "r/runs/a", "supervisor") as log:
        record = Record(store, "r/runs/a", log, 1, 0, LeavableStore(store, threading.Event()))
        for report, stored in (
            (first, True),
            (replace(first, phase="failed"), False),
            (replace(first, error=Trouble(cause="hang")), True),
            (replace(first, endings=[ending, ending]), True),
            (replace(first, restart=1), True),
        ):
            record.keep("g", report)
            found = [info.key for info in store.list("r/runs/a/attempts")]
            assert bool(found) == stored
            for key in found:
                store.delete(key)
        record.keep("g2", replace(first, pod="q0"))
        assert list(record._kept) == ["q0"], "what the pods of every gang wrote last was kept for ever"


def test_a_starting_supervisor_disturbs_nobody_and_strangers_are_refused(wire: Wire) -> None:
    assert wire.report(0, 5)[0] == wire.check_in(0)[0] == 503
    wire.channel.expect("g", frozenset({"p0"}))
    assert wire.report(0, 5)[1]["command"] == "continue"
    assert wire.report(7, 0)[0] == wire.check_in(7)[0] == 410


@pytest.mark.parametrize(
    ("path", "body", "token", "status"),
    [
        ("/v1/report", b"{}", "wrong", 401),
        ("/v1/report", b"{}", "", 401),
        ("/v1/report", b"{}", "secret", 400),
        ("/v1/report", b"[]", "secret", 400),
        ("/v1/report", b"\xff{", "secret", 400),
        ("/v1/check-in", b'{"pod": 1}', "secret", 400),
        ("/v1/other", b"{}", "secret", 404),
        ("/v1/report", b" " * (5 << 20), "secret", 413),
    ],
)
def test_what_is_no_message_is_refused(wire: Wire, path: str, body: bytes, token: str, status: int) -> None:
    wire.channel.expect("g", frozenset({"p0"}))
    if status == 413:
        with socket.create_connection(("127.0.0.1", wire.endpoint.port)) as raw:
            raw.sendall(f"POST {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n".encode())  # fmt: skip
            assert b" 413 " in raw.recv(4096)
    else:
        assert wire.post(path, body, token)[0] == status
    assert wire.check_in(7)[0] == 410, "the server went away"


def test_a_taken_port_is_waited_for(wire: Wire) -> None:
    def let_go() -> None:
        time.sleep(0.3)
        blocker.close()

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    blocker = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=let_go).start()
    endpoint = Endpoint(host="127.0.0.1", port=port, url="", token="t")
    with ChannelServer(endpoint, wire.channel):
        socket.create_connection(("127.0.0.1", port)).close()


def test_the_later_supervisor_owns_the_ledger(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    first = Ledger(store, "r/runs/a", "uid-1")
    first.append("gang", gang="g", attempt=1, nnodes=2, excluded=[])
    second = Ledger(store, "r/runs/a", "uid-1")
    assert second.last_attempt() == 1
    with pytest.raises(StepError) as raised:
        first.append("gang", gang="g2", attempt=2, nnodes=2, excluded=[])
    assert raised.value.code == 73
    second.append("excluded", node="node-1", cause="hang")
    assert not first.is_ours()
    with pytest.raises(StepError, match="another supervisor owns this run now"):
        first.append("ended", exit_code=73, cause="fenced")  # behind the other's entries: it ended the other's run
    second.append("gang_deleted", gang="g", attempt=1)
    third = Ledger(store, "r/runs/a", "uid-2", "again-x7k2p")
    assert third.excluded() == ("node-1",)
    with pytest.raises(StepError) as raised:
        second.append("gang", gang="g3", attempt=3, nnodes=2, excluded=[])
    assert raised.value.quote == "that of workflow again-x7k2p has begun since"
    Ledger(store, "r/runs/a", "uid-3", "again-x7k2p")  # it was sent to look at itself
    with pytest.raises(StepError) as raised:
        third.append("gang", gang="g4", attempt=4, nnodes=2, excluded=[])
    assert raised.value.quote.startswith("that of workflow again-x7k2p of uid uid-3, another of that name (in another ")


class Together(FileStore):
    """Answers only when eight ask at once."""

    together = threading.Barrier(8)

    def get(self, key: str) -> bytes:
        self.together.wait(20)
        return super().get(key)


def test_a_long_ledger_is_read_by_many_at_once(tmp_path: Path) -> None:
    """One entry after the other, a supervisor of a month of restarts took ten minutes to begin."""
    store = f"file://{tmp_path}/store"
    ledger = Ledger(open_store(store), "r/runs/a", "uid-1")
    for attempt in range(1, 16):
        ledger.append("gang", gang=f"g{attempt}", attempt=attempt, nnodes=2, excluded=[])
    assert [entry["attempt"] for entry in Ledger(Together(store), "r/runs/a", "uid-1").of("gang")] == [*range(1, 16)]


class Forgetful(FileStore):
    """A store that fails after it has written: the answer is lost, the object is there."""

    loses_answers = False

    def put_if_absent(self, key: str, data: bytes | Path) -> bool:
        created = super().put_if_absent(key, data)
        if self.loses_answers:
            self.loses_answers = False
            raise StoreError(Cause.S3_THROTTLE, "the answer was lost")
        return created


def test_a_lost_answer_fences_nobody(tmp_path: Path) -> None:
    store = Forgetful(f"file://{tmp_path}/store")
    ledger = Ledger(store, "r/runs/a", "uid-1")
    store.loses_answers = True
    with pytest.raises(StepError, match="the answer was lost"):
        ledger.append("gang", gang="g", attempt=1, nnodes=2, excluded=[])
    ledger.append("gang_deleted", gang="g", attempt=1)
    assert [entry["kind"] for entry in ledger.of("gang", "gang_deleted")] == ["gang", "gang_deleted"]


def test_events_that_the_store_refused_are_written_later(tmp_path: Path) -> None:
    store = FileStore(f"file://{tmp_path}/store")
    (tmp_path / "store/r").mkdir(parents=True)
    (tmp_path / "store/r/events").write_text("in the way")
    with RunLog(store, "r", "supervisor") as log:
        log.append("finalized", status="first")
        with pytest.raises(StoreError):
            log.flush()
        (tmp_path / "store/r/events").unlink()
        log.append("finalized", status="second")
    assert [event.fields["status"] for event in read_events(store, "r")] == ["first", "second"]


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "POST"])
@pytest.mark.parametrize(
    "token", ["", "Bearer ", "Bearer wrong", "Bearer secre", "Bearer secret2", "Basic secret", "é"]
)
def test_nothing_without_the_token(wire: Wire, verb: str, token: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", wire.endpoint.port, timeout=10)
    connection.request(verb, "/v1/check-in", b"{}", {"Authorization": token.encode()} if token else {})
    answer = connection.getresponse()
    assert answer.status == (401 if verb == "POST" else 501)
    assert b"secret" not in answer.read()
    connection.close()


@pytest.mark.parametrize("length", [b"-1", b"\xb2", b"9" * 5000, b"5000000", b"0x10", b""])
def test_a_body_has_a_length_that_we_can_hold(wire: Wire, length: bytes) -> None:
    with socket.create_connection(("127.0.0.1", wire.endpoint.port), timeout=10) as raw:
        raw.sendall(
            b"POST /v1/report HTTP/1.1\r\nAuthorization: Bearer secret\r\nContent-Length: " + length + b"\r\n\r\n"
        )
        assert raw.recv(4096).startswith(b"HTTP/1.1 413")


def test_slow_strangers_take_nothing_from_a_pod(wire: Wire) -> None:
    before = threading.active_count()
    with contextlib.ExitStack() as idle:
        strangers = []
        for _ in range(STRANGERS + 200):
            raw = idle.enter_context(socket.create_connection(("127.0.0.1", wire.endpoint.port), timeout=10))
            raw.sendall(b"POST /v1/check-in HTTP/1.1\r\nX-Slow: ")
            strangers.append(raw)
        wire.channel.expect("g", frozenset({"p0"}))
        assert wire.report(0, 0)[0] == 200
        for raw in strangers[:100]:  # the oldest were hung up on
            assert raw.recv(1) == b""
        deadline = time.monotonic() + 20
        while threading.active_count() - before > STRANGERS + 20 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert threading.active_count() - before <= STRANGERS + 20


def test_a_save_of_several_nodes_is_passed_on(wire: Wire) -> None:
    """Reports repeat what they say: neither order nor the supervisor's memory matters. Node 0 looks at the names."""
    wire.channel.expect("g", frozenset({"p0", "p1", "p2"}))
    wire.assign(0, 3)
    first, second = (asdict(Save(name=name, unit="u", last=False)) for name in ("a", "b"))

    def part(name: str, node: int) -> dict[str, Any]:
        return asdict(Part(save=name, node=f"n{node}", node_rank=node, state="given"))

    def report(node: int, restart: int = 0, **news: Any) -> dict[str, Any]:
        base = {"pod": f"p{node}", "node": f"n{node}", "node_rank": node, "restart": restart, "phase": "running"}
        return wire.post("/v1/report", {**base, **news})[1]

    assert report(1)["save"] is None
    assert report(0, save=first)["parts"] == []
    assert report(1)["save"] == first
    report(2, part=part("a", 2))
    assert report(0, save=first)["parts"] == [part("a", 2)]
    assert report(0, save=second)["parts"] == [part("a", 2)]
    report(1, part=part("b", 1))
    report(1, part=part("a", 1))  # a report that was under way for long
    assert report(0, save=second)["parts"] == [part("a", 1), part("a", 2)]
    report(1, part=part("b", 1))  # and is repeated
    assert report(0, save=second)["parts"] == [part("b", 1), part("a", 2)]
    assert report(0)["parts"] == []
    assert report(1)["save"] is None
    wire.assign(1, 3)
    report(0, 1, save=first)
    report(2, 0, part=part("a", 2))  # of the restart before
    assert report(0, 1, save=first)["parts"] == []


def test_a_pod_without_a_rank_is_told_to_stand_by_at_once_and_is_missed_when_it_asks_no_more(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "LONG_POLL_SECONDS", 0.3)
    monkeypatch.setattr(channel, "SLACK_SECONDS", 0.2)
    wire.channel.expect("g", frozenset({"p0", "p1"}))
    wire.channel.stand_by(StandBy(nnodes=1, workflow="w", dataset_digest="d"))
    wire.assign(0, 1)
    asked = {"nnodes": 1, "workflow": "w", "dataset_digest": "d", "node_rank": 0}
    assert wire.check_in(1)[1] == {"wait": True, "stand_by": asked}
    assert wire.check_in(1)[1]["wait"]  # after a long poll: it has been told
    assert wire.check_in(0)[1]["restart"] == 0
    while "p1" not in wire.channel.silent():
        wire.report(0, 0)
        wire.channel.wait(0.05)
        wire.channel.drain()
    assert wire.channel.silent() == {"p1"}


def test_who_stands_by_waits_on_when_a_restart_begins(wire: Wire) -> None:
    """Forgotten until its long poll was over, it was missed when the restart failed before, and the gang was deleted"""
    wire.channel.expect("g", frozenset({"p0", "p1"}))
    wire.channel.stand_by(StandBy(nnodes=1, workflow="w", dataset_digest="d"))
    wire.assign(0, 1)
    assert wire.check_in(1)[1]["wait"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wire.check_in, 1)
        while "p1" not in wire.channel.check_ins():
            wire.channel.wait(0.02)
        wire.channel.expect("g", frozenset({"p0", "p1"}), 1)
        wire.assign(1, 1)
        assert not waiting.done()
        assert set(wire.channel.check_ins()) == {"p1"}
        wire.channel.close()


def test_a_pod_that_came_later_is_admitted_without_disturbing_the_restart(wire: Wire) -> None:
    wire.channel.expect("g", frozenset({"p0"}))
    wire.assign(0, 1)
    wire.channel.order(Orders(command="continue", root=Trouble(cause="hang")))
    assert wire.check_in(1)[0] == 410
    wire.channel.admit(frozenset({"p1"}))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wire.check_in, 1)
        while "p1" not in wire.channel.check_ins():
            wire.channel.wait(0.02)
        assert wire.report(0, 0)[1]["root"]["cause"] == "hang"
        wire.channel.order(Orders(command="exit", exit_code=0))
        assert waiting.result()[1]["command"] == "exit"


def test_news_are_noted_once_however_often_they_are_sent(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that takes a report's evidence only after the pod has given its answer up had them told twice."""
    monkeypatch.setattr(channel_client, "_ANSWER_SECONDS", 0.2)
    wire.channel.expect("g", frozenset({"p0"}))
    wire.assign(0, 1)
    asked, stored = threading.Semaphore(0), threading.Event()

    def keep(_gang: str, _report: Report) -> None:
        asked.release()
        stored.wait(30)

    wire.channel._keep = keep
    assignment = Assignment.from_json(wire.check_in(0)[1])
    told = reporter.Reporter(
        ChannelClient(wire.endpoint.url, "secret"), Identity("p0", "n0", 0, wire.endpoint.url, "secret"), assignment
    )
    told.event("staged", node="n0")
    told.step({"rank": 0, "step": 1})
    told.ending(Ending(rank=0, time=1.0, exit_code=1, signal=None, stopped=False))
    told.start()
    assert asked.acquire(timeout=30)
    told.event("restored", node="n0")
    assert asked.acquire(timeout=30), "it is not sent again"
    assert asked.acquire(timeout=30), "it is not sent again with what came since"
    stored.set()
    told.step({"rank": 0, "step": 2})
    told.close()
    until = time.monotonic() + 30
    heard: list[Report] = []
    while [step["step"] for report in heard for step in report.steps][-1:] != [2] and time.monotonic() < until:
        wire.channel.wait(0.1)
        heard += wire.channel.drain()
    assert [event["kind"] for report in heard for event in report.events] == ["staged", "restored"]
    assert [step["step"] for report in heard for step in report.steps] == [1, 2]
