"""``gang.preload``: a rank that is forked from what waits in the pod finds what a Python of its own finds."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.contract import env as names
from argosy.steps.pods import processes

if TYPE_CHECKING:
    from tests.launch.conftest import Gang

pytestmark = pytest.mark.torch

LOOKS = """
import sys
imported = {"torch", "torch._dynamo"} <= sys.modules.keys()
import atexit, json, multiprocessing, os, signal, stat, threading
import numpy

class Own:
    pass

def square(number):
    return number * number

def last():
    print("at exit", flush=True)

if __name__ == "__main__":
    atexit.register(last)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        squares = pool.map(square, [3])
    numbers = [int(name) for name in os.listdir("/proc/self/fd") if int(name) < 100]
    said = {
        "argv": sys.argv, "file": __file__, "own": Own.__module__, "path": sys.path, "cwd": os.getcwd(),
        "environ": {**os.environ}, "squares": squares,
        "stdin": os.readlink("/proc/self/fd/0"), "one pipe": os.fstat(1) == os.fstat(2),
        "progress": stat.S_ISFIFO(os.fstat(int(os.environ["ARGOSY_PROGRESS_FD"])).st_mode),
        "leads its group": os.getpgid(0) == os.getpid(),
        "signals": {number: str(signal.getsignal(number)) for number in (2, 13, 15, 17)},
        "threads": threading.active_count(), "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    }
    print("SAID " + json.dumps({"imported": imported, "draw": numpy.random.rand(), "said": said}), flush=True)
    os.kill(os.getpid(), signal.SIGKILL) if "kill" in sys.argv else None
    raise SystemExit(7) if "leave" in sys.argv else ValueError("wrong on purpose")
"""


def _said(gang: Gang, index: int = 0) -> list[dict[str, Any]]:
    return [json.loads(text) for text in re.findall(r"SAID (.*)", gang.pods[index].text())]


def _alike(said: dict[str, Any]) -> dict[str, Any]:
    """Without what differs between any two starts: ports, times, numbers of file handles."""
    pipe = ("ARGOSY_PROGRESS_FD", "ARGOSY_PROGRESS_PIPE")
    own = (*pipe, "ARGOSY_CHANNEL", "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RUN_ID", "ARGOSY_RESTART")
    kept = {key: value for key, value in said["environ"].items() if key not in own}
    return {**said, "environ": {key: value for key, value in kept.items() if "PORT" not in key}}


def _failed(gang: Gang, start: dict[str, str], preload: tuple[str, ...]) -> tuple[list[dict[str, Any]], list[str]]:
    """What the ranks of a gang said, and rank 0's traceback."""
    (gang.workspace(0) / "train.py").write_text(LOOKS)
    gang.start(**start, arg=("a", "--b=c d"), nproc_per_node=2, preload=preload)
    gang.assign(0)
    gang.until(lambda: bool(gang.endings()), 90, "endings")
    gang.order("exit", 75)
    assert gang.exit_codes() == [75]
    text = gang.pods[0].text()
    assert "at exit" in text
    assert not list(gang.workspace(0).glob("__pycache__/train.*")) or "module" in start
    gang.look()
    if gang.endings().get(0, {"stopped": True})["stopped"]:
        return _said(gang), []  # torchrun ended it amid its work, since the other one had failed
    return _said(gang), re.findall(r"\[rank 0\] ((?:Traceback|  File|ValueError).*)", text)


@pytest.mark.parametrize("start", [{"script": "train.py"}, {"module": "train"}], ids=["script", "module"])
def test_it_finds_what_a_python_of_its_own_finds(make_gang: Callable[[int], Gang], start: dict[str, str]) -> None:
    own, trace = _failed(make_gang(1), start, ())
    forked, forked_trace = _failed(make_gang(1), start, ("torch", "json"))
    assert not any(each["imported"] for each in own)
    assert forked
    assert all(each["imported"] for each in forked)
    assert len({each["draw"] for each in forked}) == len(forked)
    expected = {each["said"]["environ"]["RANK"]: _alike(each["said"]) for each in own}
    found = {each["said"]["environ"]["RANK"]: _alike(each["said"]) for each in forked}
    both = expected.keys() & found.keys()  # torchrun ends the second rank when it sees the first one fail
    assert both
    assert {rank: found[rank] for rank in both} == {rank: expected[rank] for rank in both}
    if trace and forked_trace:
        assert [line for line in trace if "runpy" not in line] == forked_trace


def test_its_end_is_seen_as_it_was(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(LOOKS)
    gang.start(script="train.py", preload=("torch",))
    for restart, (word, ending) in enumerate((("leave", (7, None)), ("kill", (None, 9)))):
        gang.assign(restart, args=[word])
        gang.reports.clear()
        gang.until(lambda: bool(gang.endings()), 60, "endings")
        assert (gang.endings()[0]["exit_code"], gang.endings()[0]["signal"]) == ending
        gang.order("stop", root={"cause": "unknown"})
    gang.order("exit", 75)
    assert gang.exit_codes() == [75]
    # The pod's log holds torchrun's own traceback too, which says no more than that a rank has ended.
    command = [sys.executable, "-m", "argosy.workflows.cli.main", "diagnose", str(gang.pods[0].log), "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert "Traceback" in gang.pods[0].text()
    assert told["cause"] == "unknown"


WAITS = """
import os, pathlib, signal, sys, time
def stop(*_):
    pathlib.Path("saved").write_text("yes")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
pathlib.Path("pid").write_text(str(os.getpid()))
for step in range(1, 10000):
    print(f"step {step} loss 1.0", flush=True)
    time.sleep(0.01)
"""


def test_it_saves_when_the_pod_is_told_to_stop(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(WAITS)
    gang.start(script="train.py", preload=("torch",), grace_seconds=10)
    gang.assign(0)
    gang.until(lambda: bool(gang.steps()), 60, "steps")
    os.kill(gang.pods[0].process.pid, signal.SIGTERM)
    assert gang.exit_codes() == [76]
    assert (gang.workspace(0) / "saved").exists()


def test_it_does_not_outlive_who_started_it(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(WAITS)
    gang.start(script="train.py", preload=("torch",))
    for restart, victim in enumerate(("shim", "standby", "pod")):
        gang.assign(restart)
        gang.reports.clear()
        gang.until(lambda: bool(gang.steps()), 60, "steps")
        rank = int((gang.workspace(0) / "pid").read_text())
        began = processes.start_time(rank)
        assert began is not None
        mine = processes.carrying(names.POD_TOKEN, f"{gang.folder}-0")
        words = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in mine - {rank}}
        waits = {pid for pid, line in words.items() if b"launch.standby" in line}
        found = {
            "shim": [pid for pid, line in words.items() if b"argosy.steps.launch.rank" in line],
            "standby": [pid for pid in waits if rank in processes.descendants(pid)],
            "pod": [gang.pods[0].process.pid],
        }
        os.kill(found[victim][0], signal.SIGKILL)
        gang.until(lambda: not processes.is_alive(rank, began), 20, "end of the rank")  # noqa: B023
        gang.order("stop", root={"cause": "unknown"})


def test_a_module_that_is_not_there_is_named(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(WAITS)
    gang.start(script="train.py", preload=("torhc",))
    gang.assign(0)
    gang.until(lambda: bool(gang.errors()), 60, "error")
    assert "No module named 'torhc' (gang.preload names torhc)" in str(gang.errors()[0])
    gang.order("exit", 78)
    assert gang.exit_codes() == [78]
