"""Who holds the others up in a hang, by the stacks that faulthandler prints."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from argosy.steps.contract.channel import Ending
from argosy.steps.pods import processes
from argosy.steps.verdict.standing import one_apart, standing_of, where_all_stand

LIBRARY = "def all_reduce():\n    import signal\n    print('up', flush=True), signal.pause()\n"
# Saying so and waiting are one line: SIGABRT may find the process in either.
SCRIPT = """\
import sys, threading
from torch.distributed import distributed_c10d

def reads_a_batch():
    print('up', flush=True), threading.Event().wait()

def steps():
    if sys.argv[1] == "waits": distributed_c10d.all_reduce()
    if sys.argv[1] == "reads": reads_a_batch()
    if sys.argv[1] == "elsewhere":
        distributed_c10d.all_reduce()

steps()
"""


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What real processes print that stand in a collective, in their own code, or in another collective."""
    folder = tmp_path_factory.mktemp("stacks")
    package = folder / "site-packages" / "torch" / "distributed"
    package.mkdir(parents=True)
    for each in (package.parent / "__init__.py", package / "__init__.py"):
        each.touch()
    (package / "distributed_c10d.py").write_text(LIBRARY)
    (folder / "train.py").write_text(SCRIPT)
    return {how: _stack(folder, how) for how in ("waits", "reads", "elsewhere")}


def _stack(folder: Path, how: str) -> list[str]:
    command = [sys.executable, "-X", "faulthandler", "train.py", how]
    environ = {"PYTHONPATH": str(folder / "site-packages")}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environ, **options) as started:  # type: ignore[call-overload]
        assert started.stdout.readline() == "up\n"
        started.send_signal(signal.SIGABRT)
        return str(started.stdout.read()).splitlines()


CASES = {
    "one is not in the collective": ("waits waits reads", "", 2, "train.py:5 in reads_a_batch"),
    "of two": ("reads waits", "", 0, "train.py:5 in reads_a_batch"),
    "one was stopped": ("waits waits waits", "ST", 1, "stopped by a signal (state T)"),
    "one is in another collective": ("waits elsewhere waits", "", 1, "train.py:11 in steps"),
    "of two in different collectives nobody knows": ("waits elsewhere", "", None, ""),
    "all wait": ("waits waits waits", "", None, ""),
    "two are elsewhere": ("reads reads waits", "", None, ""),
    "alone": ("reads", "", None, ""),
}


@pytest.mark.parametrize(("ranks", "states", "rank", "text"), CASES.values(), ids=CASES)
def test_the_one_that_the_others_wait_for(
    stacks: dict[str, list[str]], ranks: str, states: str, rank: int | None, text: str
) -> None:
    endings = [
        Ending(
            rank=number,
            time=0,
            exit_code=None,
            signal=6,
            stopped=True,
            tail=stacks[how],
            state=states[number : number + 1],
        )
        for number, how in enumerate(ranks.split())
    ]
    found = one_apart(endings)
    assert (None if found is None else found.rank) == rank, [standing_of(ending) for ending in endings]
    assert text in ("" if found is None else found.text)


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ("reads", "; rank 0 at train.py:5 in reads_a_batch"),
        ("reads reads", "; every rank stands at train.py:5 in reads_a_batch"),
        ("waits elsewhere elsewhere", "; rank 0 at train.py:8 in steps, rank 1 and 1 more at train.py:11 in steps"),
        ("mute reads", ""),
    ],
)
def test_where_all_stand_of_whom_nobody_is_apart(stacks: dict[str, list[str]], ranks: str, said: str) -> None:
    tails = enumerate(stacks.get(how, []) for how in ranks.split())
    endings = [Ending(rank=at, time=0, exit_code=None, signal=6, stopped=True, tail=tail) for at, tail in tails]
    assert where_all_stand(endings) == said


SOCKETS = """\
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))

def accepts():
    server.accept()

def receives():
    peer = socket.create_connection(server.getsockname())
    server.accept()[0].recv(1)

def thinks():
    time.sleep(600)

globals()[sys.argv[1]]()
"""


@pytest.mark.parametrize(("ranks", "rank"), [("accepts thinks receives", 1), ("accepts receives receives", None)])
def test_ranks_that_meet_by_sockets_of_their_own(tmp_path: Path, ranks: str, rank: int | None) -> None:
    """No library that is known lets them meet; where the kernel lets each sleep tells who waits for another."""
    (tmp_path / "train.py").write_text(SOCKETS)
    endings = []
    for number, how in enumerate(ranks.split()):
        command = [sys.executable, "-X", "faulthandler", "train.py", how]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as started:
            deadline = time.monotonic() + 30
            while (asleep := processes.sleeps_in(started.pid)) not in KERNEL[how]:
                assert time.monotonic() < deadline, asleep
                time.sleep(0.02)
            started.send_signal(signal.SIGABRT)
            tail = str(started.stderr.read()).splitlines()
        endings.append(Ending(rank=number, time=0, exit_code=None, signal=6, stopped=True, tail=tail, sleeps_in=asleep))
    found = one_apart(endings)
    assert (None if found is None else found.rank) == rank, [standing_of(ending) for ending in endings]


KERNEL = {
    "accepts": ("inet_csk_accept",),
    "receives": ("wait_woken", "sk_wait_data"),
    "thinks": ("hrtimer_nanosleep", "common_nsleep"),
}
