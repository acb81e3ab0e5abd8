"""The rank shim as a process of its own, against a real hub; no torch."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.launch.rank_hub import RankHub
from argosy.steps.launch.records import RankRecords
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.saves import Saves
from argosy.steps.launch.wire import SHIM, ShimSettings, connect, encode
from argosy.steps.pods import processes
from argosy.steps.pods.processes import is_running
from argosy.steps.verdict.standing import standing_of
from argosy.workflows.diagnosis.excerpt import excerpt
from argosy.workflows.diagnosis.verdict import diagnose

LOST = (
    "print('Traceback (most recent call last):\\n  File x\\n'"
    "'RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.4]:29123', flush=True)"
)


class Shims:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: list[dict[str, Any]] = []
        self.hub = RankHub(folder, self.records.append)
        self.running: list[subprocess.Popen[str]] = []

    def start(self, code: str, *, rank: int = 1, **settings: Any) -> subprocess.Popen[str]:
        shim = ShimSettings(folder=str(self.folder), pod="pod-0", node="node-0", **settings)
        started = subprocess.Popen(
            [sys.executable, "-P", "-m", "argosy.steps.launch.rank", "--", sys.executable, "-u", "-c", code],
            env={**os.environ, SHIM: shim.to_json(), "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.running.append(started)
        return started

    def until(self, kind: str, seconds: float = 10) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            for record in self.records:
                if record["type"] == kind:
                    return record
            assert time.monotonic() < deadline, self.records
            time.sleep(0.005)

    def ending(self) -> dict[str, Any]:
        ending = self.until("ending")["ending"]
        assert isinstance(ending, dict)
        return ending


@pytest.fixture
def shims(tmp_path: Path) -> Iterator[Shims]:
    # Longer than a unix socket's path may be.
    folder = tmp_path / ("deep-" * 20) / "ranks"
    made = Shims(folder)
    yield made
    for started in made.running:
        if started.poll() is None:
            started.kill()
        started.wait()
        assert started.stdout is not None
        started.stdout.close()
    made.hub.close()


def output(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.read()


@pytest.mark.parametrize(
    ("code", "exit_code", "number", "seen"),
    [
        ("print('hello')", 0, None, 0),
        ("import sys; print('bye'); sys.exit(7)", 7, None, 7),
        ("import os, signal; print('x'); os.kill(os.getpid(), signal.SIGKILL)", None, signal.SIGKILL, 137),
        ("import os, signal; print('x'); os.kill(os.getpid(), signal.SIGSEGV)", None, signal.SIGSEGV, 139),
    ],
)
def test_endings_are_told_as_they_were(
    shims: Shims, code: str, exit_code: int | None, number: int | None, seen: int
) -> None:
    before = time.time()
    started = shims.start(code)
    assert started.wait(10) == seen
    ending = shims.ending()
    assert (ending["rank"], ending["exit_code"], ending["signal"]) == (1, exit_code, number)
    assert (ending["pod"], ending["node"], ending["stopped"]) == ("pod-0", "node-0", False)
    assert before <= ending["time"] <= time.time()


def test_output_is_prefixed_kept_and_the_last_lines_sent(shims: Shims) -> None:
    started = shims.start("import sys\nfor i in range(100): print('line', i)\nsys.stderr.write('no newline')")
    text = output(started)
    assert text.splitlines()[0] == "[rank 1] line 0"
    assert text.splitlines()[-1] == "[rank 1] no newline"
    assert len(text.splitlines()) == 101
    tail = shims.ending()["tail"]
    assert len(tail) == 60
    assert tail[-2:] == ["line 99", "no newline"]
    assert (shims.folder / "rank-1.log").read_text().splitlines()[0] == "line 0"


def test_a_lost_peer_waits_for_the_root(shims: Shims) -> None:
    started = shims.start(f"{LOST}; raise SystemExit(1)", root_wait_seconds=30.0)
    shims.ending()
    time.sleep(0.5)
    assert started.poll() is None
    began = time.monotonic()
    shims.hub.release()
    assert started.wait(10) == 1
    assert time.monotonic() - began < 10


def test_a_lost_peer_waits_no_longer_than_told(shims: Shims) -> None:
    started = shims.start(f"{LOST}; raise SystemExit(1)", root_wait_seconds=0.5)
    shims.ending()
    began = time.monotonic()
    assert started.wait(10) == 1
    assert 0.3 < time.monotonic() - began < 10


@pytest.mark.parametrize("code", ["raise KeyError('x')", "import os; os.kill(os.getpid(), 9)"])
def test_a_root_does_not_wait(shims: Shims, code: str) -> None:
    started = shims.start(code, root_wait_seconds=60.0)
    assert started.wait(10) != 0


def test_sigterm_is_forwarded_and_marked(shims: Shims) -> None:
    started = shims.start(SAVES)
    assert started.stdout is not None
    assert started.stdout.readline() == "[rank 1] ready\n"
    started.terminate()
    assert started.wait(10) == 0
    ending = shims.ending()
    assert ending["stopped"]
    assert ending["tail"][-1] == "saved"


def test_a_killed_shim_takes_its_rank_with_it(shims: Shims) -> None:
    started = shims.start("import os, time; print(os.getpid()); time.sleep(60)")
    assert started.stdout is not None
    rank = int(started.stdout.readline().split()[-1])
    started.kill()
    started.wait()
    deadline = time.monotonic() + 5
    while is_running(rank) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(rank)


def test_without_launch_the_rank_ends(shims: Shims) -> None:
    started = shims.start("import time; print('x'); time.sleep(60)")
    assert started.stdout is not None
    started.stdout.readline()
    for client in list(shims.hub._clients):
        client.shutdown(2)
    assert started.wait(10) == 128 + signal.SIGKILL


REPORTS = """
import time
from argosy import report
for step in range(1, 200):
    report(step, loss=1.5)
    print("step", step * 1000, "loss 9.9")
    time.sleep(0.005)
"""
PRINTS = REPORTS.replace("    report(step, loss=1.5)\n", "").replace("step * 1000", "step")
SAVES = """
import signal, sys, time
signal.signal(15, lambda *_: (print('saved'), sys.exit(0)))
print('ready')
time.sleep(60)
"""


@pytest.mark.parametrize(("name", "number"), [("kill", 9), ("segv", 11)])
@pytest.mark.parametrize("code", [REPORTS, PRINTS], ids=["reports", "prints"])
def test_injected_signals(shims: Shims, name: str, number: int, code: str) -> None:
    fault = {"fault": name, "rank": 1, "step": 20, "code": None}
    shims.start(code, fault=fault).wait(20)
    ending = shims.ending()
    assert ending["signal"] == number
    assert 20 <= ending["last_step"] < 150
    assert shims.until("injected")["fault"] == name


def test_a_silent_rank_is_hit_when_the_gang_reaches_the_step(shims: Shims) -> None:
    fault = {"fault": "kill", "rank": 1, "step": 20, "code": None}
    started = shims.start("print('up', flush=True); import time; time.sleep(60)", fault=fault)
    assert started.stdout is not None
    assert "up" in started.stdout.readline()
    shims.hub.gang_step(19)
    shims.hub.gang_step(23)
    started.wait(20)
    assert (shims.ending()["signal"], shims.until("injected")["step"]) == (9, 23)


def test_a_rank_that_prints_nothing_is_hit_when_its_time_has_come(shims: Shims) -> None:
    fault = {"fault": "kill", "rank": 1, "step": 0, "seconds": 1, "code": None}
    began = time.monotonic()
    shims.start("import time; time.sleep(60)", fault=fault).wait(20)
    assert 1 <= time.monotonic() - began < 20
    assert shims.until("injected")["fault"] == "kill"
    assert shims.ending()["signal"] == 9


@pytest.mark.parametrize(
    ("phase", "code", "tail"),
    [
        ("start", "import time; time.sleep(60)", []),
        (
            "save",
            "open({0!r} + '/log', 'w').close(); print('up'); f = open({0!r} + '/a.pt', 'w'); time.sleep(60)",
            ["up"],
        ),
        ("save", "progress.entered('restore'); print('up'); progress.entered('save'); time.sleep(60)", ["up"]),
        ("restore", "f = open({0!r} + '/a.pt', 'w'); print('up'); g = open({0!r} + '/a.pt'); time.sleep(60)", ["up"]),
    ],
)
def test_a_rank_is_hit_in_a_phase(
    shims: Shims, phase: str, code: str, tail: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGOSY_CHECKPOINT_PATH", str(tmp_path))
    fault = {"fault": "kill", "rank": 1, "step": 0, "phase": phase, "include": ["*.pt"], "code": None}
    code = "import time; from argosy.steps import progress; " + code.format(str(tmp_path))
    shims.start(code, fault=fault).wait(20)
    assert shims.until("injected")["phase"] == phase
    ending = shims.ending()
    assert ending["signal"] == 9
    assert ending["tail"] == tail


def test_a_fault_of_another_rank_is_not_ours(shims: Shims) -> None:
    fault = {"fault": "kill", "rank": 0, "step": 20, "code": None}
    assert shims.start(PRINTS, fault=fault).wait(20) == 0


def test_injected_exit_is_done_by_the_rank_itself(shims: Shims) -> None:
    fault = {"fault": "exit", "rank": 1, "step": 20, "code": 42}
    assert shims.start(REPORTS, fault=fault).wait(20) == 42
    ending = shims.ending()
    assert (ending["exit_code"], ending["last_step"]) == (42, 20)
    assert shims.until("injected")["step"] == 20


def test_injected_hang_stops_the_process_and_stacks_are_printed(shims: Shims) -> None:
    fault = {"fault": "hang", "rank": 1, "step": 20, "code": None}
    os.environ["PYTHONFAULTHANDLER"] = "1"
    try:
        started = shims.start(PRINTS, fault=fault)
    finally:
        del os.environ["PYTHONFAULTHANDLER"]
    shims.until("injected")
    rank = shims.until("started")["pid"]
    while processes.state(rank) != "T":
        time.sleep(0.001)
    shims.hub.stacks()
    started.wait(10)
    ending = shims.ending()
    assert ending["stopped"]
    assert any("most recent call first" in line for line in ending["tail"])
    stands = standing_of(Ending.from_json(ending))
    assert (stands.state, stands.waits) == ("T", False)
    # Whoever reads its log is told whose SIGABRT that was.
    with (shims.folder / "rank-1.log").open("rb") as log:
        found = diagnose([excerpt(log, "rank-1.log")])
    assert (found.root.cause, found.rank) == (Cause.HANG, None)


WOKEN = """\
import socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("step 1 loss 1.0", flush=True)
peer.recv(1)
while True:
    pass
"""


def test_a_peer_that_is_asked_first_and_wakes_a_rank_does_not_hide_where_that_slept(shims: Shims) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        started = shims.start(WOKEN.replace("sys.argv[1]", str(server.getsockname()[1])))
        peer = server.accept()[0]
        rank = shims.until("started")["pid"]
        shims.until("step")
        seen = _turns(started.pid)
        deadline = time.monotonic() + 60
        while _turns(started.pid) < seen + 3:  # so often it has looked at a rank that is quiet
            assert time.monotonic() < deadline
            time.sleep(0.02)
        peer.close()
        while processes.sleeps_in(rank):
            time.sleep(0.001)
    shims.hub.stacks()
    started.wait(10)
    assert shims.ending()["sleeps_in"] in ("wait_woken", "sk_wait_data")


def _turns(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def test_a_fault_that_never_came_is_said(shims: Shims) -> None:
    fault = {"fault": "kill", "rank": 1, "step": 5000, "code": None}
    assert shims.start(PRINTS, fault=fault).wait(20) == 0
    assert "did not happen" in shims.until("note")["message"]


def test_reported_steps_win_over_printed_ones(shims: Shims) -> None:
    assert shims.start(REPORTS).wait(20) == 0
    shims.until("ending")
    steps = [record for record in shims.records if record["type"] == "step"]
    reported = [record["step"] for record in steps if record.get("loss") == 1.5]
    assert reported == list(range(1, 200))


def test_a_command_that_cannot_start_is_one_line(shims: Shims) -> None:
    shim = ShimSettings(folder=str(shims.folder), pod="p", node="n")
    done = subprocess.run(
        [sys.executable, "-m", "argosy.steps.launch.rank", "--", "/no/such/program"],
        env={**os.environ, SHIM: shim.to_json(), "RANK": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 127
    assert done.stderr == "argosy: launcher_usage: cannot start /no/such/program: No such file or directory\n"


def test_the_shim_starts_lean() -> None:
    code = "import sys, argosy.steps.launch.rank; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    ours = ("argosy.steps.verdict", "argosy.steps.launch.rank_faults")
    for heavy in (*ours, "torch", "http.client", "argparse", "obstore", "tarfile"):
        assert f"'{heavy}'" not in loaded


def test_settings_survive_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ShimSettings(folder="/x", pod="p", node="n", fault={"fault": "kill", "rank": 1, "step": 2})
    monkeypatch.setenv(SHIM, settings.to_json())
    assert ShimSettings.from_environment() == settings
    assert SHIM not in os.environ
    assert json.loads(settings.to_json())["pod"] == "p"


def test_the_socket_needs_no_working_directory_that_the_user_may_read(tmp_path: Path) -> None:
    code = """if True:
        import os, sys, tempfile
        from pathlib import Path
        from argosy.steps.launch.wire import connect, listen
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            os.chdir(sys.argv[1])
            os.chmod(sys.argv[1], 0)
            if os.getuid() == 0:
                os.seteuid(65534)  # as a container's that has /root as its WORKDIR and another user
            with listen(Path(folder) / "ranks"), connect(Path(folder) / "ranks"):
                pass
            if os.getuid() == 0:
                os.seteuid(0)
    """
    own = tmp_path / "own"
    own.mkdir()
    subprocess.run([sys.executable, "-c", code, str(own)], env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
                   check=True)  # fmt: skip
    own.chmod(0o700)


def test_a_shim_that_was_killed_before_it_was_heard_silences_no_other(tmp_path: Path) -> None:
    free, heard = threading.Event(), []

    def on_record(record: dict[str, Any]) -> None:
        heard.append(record["type"])
        free.wait(10)

    hub = RankHub(tmp_path, on_record)
    try:
        hub.release()
        first = connect(tmp_path)
        first.sendall(encode({"type": "first"}))
        while not heard:
            time.sleep(0.001)
        connect(tmp_path).close()
        last = connect(tmp_path)
        last.sendall(encode({"type": "last"}))
        free.set()
        first.close()
        last.close()
        until = time.monotonic() + 10
        while len(heard) < 2 and time.monotonic() < until:
            time.sleep(0.001)
        assert heard == ["first", "last"]
    finally:
        hub.close()


def test_a_report_of_nonsense_costs_only_itself(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []

    class Told(Reporter):
        def __init__(self) -> None:
            """Nothing to report to."""

        def step(self, record: dict[str, Any], *, anew: bool = False) -> None:
            told.append(record)

    saves = Saves(LaunchArgs(store_uri="", name="r"), None, None, tmp_path, None)  # type: ignore[arg-type]
    records = RankRecords(Told(), saves, None, "node-0")  # type: ignore[arg-type]
    for step in ("x", None, [], float("inf"), 3.0):
        records({"type": "step", "rank": 0, "step": step, "time": 1.0, "loss": 2, "tokens": None})
    records({"type": "step", "rank": 0, "step": 4, "tokens": "many"})
    assert told == [{"rank": 0, "step": 3, "time": 1.0, "loss": 2.0}]
