"""What ranks saved into shared memory is there for the ranks after them, and nobody takes other bytes for it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.checkpoint.kept import Kept
from argosy.steps.checkpoint.manifest import ShardFile, sha256
from argosy.steps.checkpoint.peers import Peers
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.launch.keeper import Keeper
from argosy.steps.launch.kept import KeptMemory
from argosy.steps.store import open_store

if TYPE_CHECKING:
    from tests.launch.conftest import Gang

DATA = b"bytes of a file" * 500
FILE = ShardFile(path="f", key="k", size=len(DATA), sha256=sha256(DATA))

NUMBERS = 125_000
SAVES = f"""
import torch, torch.distributed as dist
from argosy import Checkpointer, report
dist.init_process_group("gloo")
saver = Checkpointer()
state = {{name: torch.arange({NUMBERS}, dtype=torch.float32) for name in "vw"}}  # each rank saves one
found = saver.restore(into=state)
first = found.step + 1 if found else 1
for each in state.values():
    assert torch.equal(each, torch.arange({NUMBERS}) + float(sum(range(1, first)))), "other bytes than were saved"
for step in range(first, 31):
    dist.barrier()
    for each in state.values():
        each += step
    if step % 10 == 0:
        saver.save(step, state, final=step == 30, wait=True)
    report(step, loss=0.5, end_step=30)
dist.destroy_process_group()
"""
BYTES = NUMBERS * 4 * 2


def memories(gang: Gang) -> dict[int, Path]:
    """Of the pods' launch processes, by inode: what opens it."""
    found = {}
    for pod in gang.pods:
        for handle in Path(f"/proc/{pod.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                if "argosy-arena" in os.readlink(handle):
                    found[handle.stat().st_ino] = handle
    return found


def spoil(one: Path, other: Path) -> None:
    """As a snapshot that was begun, and as memory that is gone."""
    with one.open("r+b") as memory:
        memory.seek(os.fstat(memory.fileno()).st_size // 2)
        memory.write(b"\1" * 1000)
    os.truncate(other, 10_000)


@pytest.mark.torch
def test_ranks_that_are_started_anew_ask_the_store_for_what_no_node_holds(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(2)
    for index in range(2):
        (gang.workspace(index) / "train.py").write_text(SAVES)
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")

    def train(restart: int, **changes: Any) -> None:
        """Ranks of a restart, to their end: the last one's is that of the training."""
        claim = checkpoints.claim(f"start {restart}")
        if restart < 2:
            changes["fault"] = {"fault": "exit", "rank": 1, "step": 15 + 10 * restart, "code": 42}
        gang.assign(restart, generation=claim.generation, log_seq=claim.seq, **changes)
        gang.reports.clear()
        phase = "failed" if restart < 2 else "finished"
        gang.until(lambda: gang.phases() == dict.fromkeys(gang.names, phase), 60, phase)

    gang.start(script="train.py", nproc_per_node=1)
    train(0)
    for restart, asked in ((1, 0), (2, BYTES)):
        newest = checkpoints.newest()
        assert newest is not None
        assert newest.step == 10 * restart
        held = memories(gang)
        assert len(held) == 2
        if asked:
            spoil(*held.values())
        gang.order("stop", root={"cause": "unknown"})
        train(restart, resume_digest=newest.digest, resume_step=newest.step)
        assert min(step["step"] for step in gang.steps()) == newest.step + 1
        told = gang.events("restored")
        assert sorted(event["rank"] for event in told) == [0, 1]
        for event in told:
            assert event["bytes"] > BYTES
            assert 0 <= event["fetched_bytes"] - asked < 20_000, "and the small files, which never lay there"
        assert not held.keys() & memories(gang).keys(), "what the ranks before had is given back"
    last = checkpoints.newest()
    assert last is not None
    assert (last.step, last.final) == (30, True)
    gang.order("exit", 0)
    assert gang.exit_codes() == [0, 0]


@pytest.fixture
def memory() -> Iterator[int]:
    """Shared memory as a rank's writer has it, with one file behind a page."""
    handle = os.memfd_create("argosy-arena")
    os.pwrite(handle, DATA, 4096)
    yield handle
    os.close(handle)


def told(handle: int, name: str = "save-1", *, pid: int = 0, files: bool = True) -> dict[str, Any]:
    placed = [[FILE.sha256, 4096, len(DATA)]] if files else []
    return {"rank": 0, "pid": pid or os.getpid(), "handle": handle, "name": name, "files": placed}


def given(
    memory: KeptMemory, folder: Path, monkeypatch: pytest.MonkeyPatch, others: Sequence[str] = ()
) -> bytes | None:
    """What ranks that begin now get of the file."""
    memory.turn()
    monkeypatch.delenv("ARGOSY_KEPT_FILES", raising=False)
    for name, value in memory.offer(folder, others).items():
        monkeypatch.setenv(name, value)
    into = bytearray(len(DATA))
    return bytes(into) if Kept.given().read(FILE, memoryview(into)) else None


def test_it_is_there_until_the_ranks_begin_to_train(
    memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptMemory()
    assert given(kept, tmp_path, monkeypatch) is None
    kept.take(told(memory))
    assert given(kept, tmp_path, monkeypatch) == DATA
    assert given(kept, tmp_path, monkeypatch) == DATA, "for the ranks after those that ended before they had it"
    kept.let_go()
    into = bytearray(len(DATA))
    assert not Kept.given().read(FILE, memoryview(into)), "whoever read the index before"


def test_what_a_later_save_overwrites_is_not_offered(
    memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptMemory()
    kept.take(told(memory))
    kept.take(told(memory, "save-2", files=False))
    assert given(kept, tmp_path, monkeypatch) is None


def test_more_than_the_pod_has_room_for_again_is_let_go(
    memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptMemory()
    os.truncate(memory, 1 << 50)
    kept.take(told(memory))
    assert given(kept, tmp_path, monkeypatch) == DATA
    kept.look()
    assert given(kept, tmp_path, monkeypatch) is None


def test_another_file_under_the_handle_s_number_is_not_taken_for_it(
    memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptMemory()
    kept.take(told(memory))
    kept.turn()
    kept.offer(tmp_path)
    (place,) = json.loads((tmp_path / "kept.json").read_text())["places"].values()
    number = int(place[0].rpartition("/")[2])
    into = memoryview(bytearray(len(DATA)))
    monkeypatch.setenv("ARGOSY_KEPT_FILES", str(tmp_path / "kept.json"))
    reader, writer = os.pipe()
    os.dup2(reader, number)
    assert not Kept.given().read(FILE, into)
    for handle in (reader, writer):
        os.close(handle)


def test_a_writer_that_ends_before_it_is_looked_at_has_told_of_memory_that_is_held(
    memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    kept = KeptMemory()
    kept.take(told(memory, pid=ended.pid))
    assert given(kept, tmp_path, monkeypatch) is None, "never seen"
    kept.take(told(memory, files=False))
    kept.take(told(memory, pid=ended.pid))
    assert given(kept, tmp_path, monkeypatch) == DATA


# ---- other nodes


@pytest.fixture
def holder(memory: int) -> KeptMemory:
    kept = KeptMemory("secret")
    kept.take(told(memory))
    kept.turn()
    return kept


def test_a_node_that_is_new_gets_it_from_one_that_holds_it(
    holder: KeptMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Keeper(holder, None).address("127.0.0.1")
    assert given(KeptMemory("secret"), tmp_path, monkeypatch, [address]) == DATA
    assert given(KeptMemory("another"), tmp_path, monkeypatch, [address]) is None
    assert (tmp_path / "kept.json").stat().st_mode & 0o077 == 0, "whoever reads it may ask other nodes"


def test_what_goes_wrong_on_the_way_means_the_store(
    memory: int, holder: KeptMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Keeper(holder, None).address("127.0.0.1")
    new = KeptMemory("secret")
    os.pwrite(memory, b"!", 5000)
    assert given(new, tmp_path, monkeypatch, [address]) is None, "overwritten"
    os.truncate(memory, 4096 + 10)
    assert given(new, tmp_path, monkeypatch, [address]) is None, "cut"
    environ = new.offer(tmp_path, [address])
    assert environ
    holder.let_go()
    into = memoryview(bytearray(len(DATA)))
    assert not Kept.given().read(FILE, into), "let go after it was offered"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        there = f"127.0.0.1:{silent.getsockname()[1]}"
        assert given(new, tmp_path, monkeypatch, [there]) is None, "no answer"
    assert given(new, tmp_path, monkeypatch, [there]) is None, "nobody listens"
    assert given(new, tmp_path, monkeypatch, ["no address"]) is None


def test_files_of_a_script_s_folder(tmp_path: Path) -> None:
    folder, part = tmp_path / "out", tmp_path / "part"
    (folder / "step-3").mkdir(parents=True)
    (folder / "step-3" / "a b.pt").write_bytes(DATA)
    (tmp_path / "secret").write_bytes(DATA)
    (folder / "link.pt").symlink_to("../secret")
    modified = (folder / "step-3" / "a b.pt").stat().st_mtime_ns
    holds_nothing = KeptMemory("secret")
    near = Peers(holds_nothing.token).near([Keeper(holds_nothing, folder).address("127.0.0.1")])
    committed = replace(FILE, path="step-3/a b.pt", modified_ns=modified)
    assert near(committed, part)
    assert part.read_bytes() == DATA
    assert not near(replace(committed, modified_ns=modified + 1), part)
    assert not near(replace(committed, sha256="0" * 64), part)
    assert not near(replace(FILE, path="link.pt"), part)
    assert not near(replace(FILE, path="step-3/other.pt"), part)
    outside = Peers(holds_nothing.token).near([Keeper(holds_nothing, folder / "step-3").address("127.0.0.1")])
    assert not outside(SimpleNamespace(**asdict(FILE) | {"path": "../link.pt"}), part)  # type: ignore[arg-type]


WRITES = """
import hashlib, os, pathlib, sys, time
out = pathlib.Path("out/state.pt")
if "--resume" in sys.argv:
    print("found", hashlib.sha256(out.read_bytes()).hexdigest(), flush=True)
else:
    if os.environ["RANK"] == "0":
        out.parent.mkdir(exist_ok=True)
        out.write_bytes(os.urandom(300_000))
    for step in range(1, 1000):
        print(f"step {step} loss 0.5", flush=True)
        time.sleep(0.05)
"""


@pytest.mark.parametrize("changed", [False, True])
def test_a_folder_on_the_first_node_s_disk_is_given_to_the_others(
    changed: bool, make_gang: Callable[[int], Gang]
) -> None:
    gang = make_gang(2)
    for index in range(2):
        (gang.workspace(index) / "train.py").write_text(WRITES)
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    claim = checkpoints.claim("first")
    gang.start(
        script="train.py", launcher="plain", nproc_per_node=1, checkpoint_mode="opaque", checkpoint_path="out",
        checkpoint_include=("*.pt",), resume_arg=("--resume", "{path}"),
    )  # fmt: skip
    gang.assign(0, generation=claim.generation, log_seq=claim.seq)
    gang.until(lambda: checkpoints.newest() is not None, 30, "commit")
    newest = checkpoints.newest()
    assert newest is not None
    claim = checkpoints.claim("second")
    gang.order("stop", root={"cause": "unknown"})
    gang.until(lambda: set(gang.channel.check_ins()) == set(gang.names), 30, "check-in")
    if changed:  # by a rank that was dying, and nobody sees it by size or time
        path = gang.workspace(0) / "out" / "state.pt"
        before = path.stat()
        with path.open("r+b") as target:
            target.write(b"!")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    gang.reports.clear()
    gang.assign(1, generation=claim.generation, log_seq=claim.seq, resume_digest=newest.digest, resume_step=1)
    found = f"found {newest.files[0].sha256}"
    gang.until(lambda: all(found in pod.text() for pod in gang.pods), 30, "the committed bytes on both nodes")
    fetched = {event["node"]: event["fetched_bytes"] for event in gang.events("restored")}
    assert fetched["node-0"] == (300_000 if changed else 0)
    assert changed or fetched["node-1"] == 0, "else it may have asked before the first node had it again, or after"
    gang.order("exit", 0)
    gang.exit_codes()
