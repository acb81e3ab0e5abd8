"""Writer processes of several ranks: one part per node, one outcome for all, whoever dies, stalls or disagrees."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.pods import processes
from argosy.steps.store import open_store


def test_two_nodes_store_one_part_each_and_all_learn(gang: Callable[..., Any]) -> None:
    writers = gang(4, 2)
    for number in (1, 2):
        for rank in range(4):
            writers.save(rank, number)
        writers.await_outcome(number)
    newest = writers.store.newest()
    assert (newest.step, newest.world_size, len(newest.files)) == (20, 4, 4)
    writers.store.verify(newest)
    assert {outcomes[2]["saved"]["digest"] for outcomes in writers.outcomes} == {newest.digest}
    parts = [info.key for info in writers.store.store.list(f"data/{newest.name}/parts")]
    assert [key.rsplit("/", 1)[1] for key in parts] == ["000000.json", "000002.json"]

    # Who does not know the token is hung up on, and nobody is disturbed.
    with socket.create_connection(writers.address, timeout=10) as stranger:
        stranger.sendall(b'{"token":"guess","rank":2}\n{"is":"left","ranks":[0,1,2,3],"why":"a lie"}\n')
        assert stranger.recv(1) == b""
    # SIGTERM reaches every process of a pod in the middle of a save: it is finished.
    for rank in range(4):
        writers.signal(rank, signal.SIGSTOP)
        writers.save(rank, 3)
        writers.signal(rank, signal.SIGTERM)
        writers.signal(rank, signal.SIGCONT)
    writers.await_outcome(3)
    assert writers.store.newest().step == 30


def test_a_zombie_is_fenced_on_all_ranks_at_one_step(gang: Callable[..., Any]) -> None:
    writers = gang(2, 2)
    for rank in range(2):
        writers.writers[rank].arena.note_step(40 + rank)
        writers.save(rank, 1)
    writers.await_outcome(1)
    writers.store.claim("a newer gang")
    for rank in range(2):
        writers.save(rank, 2)
    writers.await_outcome(2)
    assert [(f["cause"], f["code"]) for f in writers.failures()] == [("fenced", 73)] * 2
    stops = {writer.failure["stop_at"] for writer in writers.writers}
    assert len(stops) == 1
    assert stops.pop() > 41
    assert writers.store.newest().step == 10


def test_a_killed_writer_ends_the_save_by_name(gang: Callable[..., Any]) -> None:
    writers = gang(3, 1)
    writers.signal(1, signal.SIGSTOP)
    for rank in range(3):
        writers.save(rank, 1)
    writers.until(lambda: all(writers.writers[rank].stored == 1 for rank in (0, 2)), [0, 2])
    writers.signal(1, signal.SIGKILL)
    writers.await_outcome(1, [0, 2])
    assert [f["cause"] for f in writers.failures([0, 2])] == ["peer_lost"] * 2
    assert "rank 1 left before save 1" in writers.failures([0])[0]["message"]
    assert writers.store.newest() is None

    # Of the same node, before and after the others have stored: nobody waits for the timeout.
    for kill_first in (True, False):
        again = gang(3, 3, timeout=900.0)
        again.signal(1, signal.SIGSTOP)
        if kill_first:
            again.signal(1, signal.SIGKILL)
        for rank in (0, 2):
            again.save(rank, 1)
        again.until(lambda node=again: all(node.writers[rank].stored == 1 for rank in (0, 2)), [0, 2])
        again.signal(1, signal.SIGKILL)
        again.await_outcome(1, [0, 2])
        assert [f["cause"] for f in again.failures([0, 2])] == ["peer_lost"] * 2
        assert "rank 1 left before save 1" in again.failures([0])[0]["message"]

    # The coordinator itself.
    again = gang(2, 1)
    again.signal(0, signal.SIGKILL)
    again.save(1, 1)
    again.await_outcome(1, [1])
    assert "coordinator" in again.failures([1])[0]["message"]
    assert again.store.newest() is None


def test_slow_and_differing_ranks_are_named(gang: Callable[..., Any]) -> None:
    writers = gang(3, 3, timeout=0.5)
    writers.signal(2, signal.SIGSTOP)
    for rank in range(3):
        writers.save(rank, 1)
    writers.await_outcome(1, [0, 1])
    assert [f["cause"] for f in writers.failures([0, 1])] == ["hang"] * 2
    assert "rank 2 did not store save 1 within" in writers.failures([0])[0]["message"]
    assert writers.store.newest() is None

    for given, words in (({"fingerprint": "other"}, "rank 0 and rank 1 differ"), ({"step": 11}, "rank 1 step 11")):
        for per_node in (1, 2):
            again = gang(2, per_node)
            again.save(0, 1)
            again.save(1, 1, **given)
            again.await_outcome(1)
            assert [f["code"] for f in again.failures()] == [70, 70]
            assert words in again.failures()[0]["message"]
            assert again.store.newest() is None
            again.close()


SCRIPT = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tests.checkpointer.conftest import Gang
gang = Gang(sys.argv[2], 2, 2)
child = os.fork() if sys.argv[3] == "forked" else -1
if child == 0:
    os.close(1)
    sys.stdin.read()  # holds the script's ends of all sockets, as a loader's worker does
    os._exit(0)
for rank in range(2):
    if rank == 0 or sys.argv[3] != "incomplete":
        gang.save(rank, 1)
print(gang.pid(0), gang.pid(1), flush=True)
sys.stdin.read()
"""


def test_a_killed_script_leaves_a_whole_checkpoint_or_none_and_no_process(tmp_path: Path) -> None:
    for kind in ("complete", "forked", "incomplete"):
        uri = f"file://{tmp_path}/{kind}"
        command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[2]), uri, kind]
        script = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert script.stdout is not None
        assert script.stdin is not None
        pids = [int(pid) for pid in script.stdout.readline().split()]
        script.kill()
        script.wait()
        deadline = time.monotonic() + 20
        while any(processes.start_time(pid) is not None for pid in pids):
            assert time.monotonic() < deadline, "a writer outlived its script"
            time.sleep(0.02)
        script.stdin.close()
        script.stdout.close()
        store = CheckpointStore(open_store(uri), "")
        newest = store.newest()
        assert (newest is not None) == (kind != "incomplete"), kind
        if newest is not None:
            store.verify(newest)


TINY = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x00020000) or libc.mount(b"none", b"/", None, 0x44000, None):
    sys.exit(77)
if libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=64k"):
    sys.exit(77)
assert os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize == 65536
from tests.checkpointer.conftest import Gang
gang = Gang(sys.argv[2], 1, 1)
gang.save(0, 1)
gang.await_outcome(1)
assert gang.store.newest().step == 10
gang.close()
"""


def test_the_arena_does_not_need_dev_shm(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TINY, str(Path(__file__).parents[2]), f"file://{tmp_path}/store"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        pytest.skip("this machine lets us make no mount namespace")
    assert done.returncode == 0, done.stderr
