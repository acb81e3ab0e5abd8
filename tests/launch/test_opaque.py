"""Opaque mode end to end: a script that only writes ckpt.pt is committed, torn files never, and restored."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.store import open_store
from tests.launch.committing import committed_folder

if TYPE_CHECKING:
    from tests.launch.conftest import Gang
    from tests.launch.nodes import Cluster

# Writes in two halves: a kill between them leaves a torn file.
TRAIN = """
import json, os, pathlib, sys, time
out = pathlib.Path("out"); out.mkdir(exist_ok=True)
rank = int(os.environ["RANK"])
first = 1
if "--resume" in sys.argv:
    saved = json.loads(pathlib.Path(sys.argv[sys.argv.index("--resume") + 1]).read_text())
    first = saved["step"] + 1
    print("resumed", saved["step"], flush=True)
elif list(out.iterdir()):
    print("STALE FILES", list(out.iterdir()), flush=True)
for step in range(first, 61):
    if step % 10 == 0 and rank == 0:
        text = json.dumps({"step": step, "pad": "x" * 100000})
        with open(out / "ckpt.json", "w") as target:
            target.write(text[:50000]); target.flush()
            if step == 40 and first == 1:
                print(f"step {step} loss 0.5", flush=True)
                time.sleep(60)
            target.write(text[50000:])
    print(f"step {step} loss {1 / step:.3f}", flush=True)
    time.sleep(0.05)
(out / "export").mkdir(exist_ok=True)
(out / "export" / "model.bin").write_text("what was trained")
"""
OPTIONS = {
    "script": "train.py",
    "launcher": "plain",
    "nproc_per_node": 1,
    "checkpoint_mode": "opaque",
    "checkpoint_path": "out",
    "checkpoint_include": ("*.json",),
    "resume_arg": ("--resume", "{path}"),
}


def saved_step(store: CheckpointStore, digest: str, folder: Path) -> int:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    store.fetch(store.by_digest(digest), folder)
    step = json.loads((folder / "ckpt.json").read_text())["step"]
    assert isinstance(step, int)
    return step


def test_committed_when_complete_restored_after_a_kill(make_gang: Callable[[int], Gang], tmp_path: Path) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(TRAIN)
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    claim = checkpoints.claim("first")
    gang.start(**OPTIONS)
    # Killed while half of the file of step 40 is written.
    fault = {"fault": "kill", "rank": 0, "step": 40, "code": None}
    gang.assign(0, fault=fault, generation=claim.generation, log_seq=claim.seq)
    gang.until(lambda: gang.phases() == {"pod-0": "failed"}, 60, "failure")
    gang.until(lambda: gang.endings()[0]["signal"] == 9, 5, "signal")

    commits = checkpoints.commits()
    assert [saved_step(checkpoints, one.digest, tmp_path / "look") for one in commits] == [10, 20, 30][-len(commits) :]
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.step == 30  # though it saves before it prints
    assert not newest.final
    labels = [event["step"] for event in gang.events("checkpoint_committed")]
    assert labels == [10, 20, 30]  # the files tell, whenever their lines are read

    claim = checkpoints.claim("second")
    gang.order("stop", root={"cause": "unknown", "rank": 0, "node": "node-0", "quote": ""})
    gang.reports.clear()
    gang.assign(
        1,
        generation=claim.generation,
        log_seq=claim.seq,
        resume_digest=newest.digest,
        resume_step=newest.step,
    )
    gang.until(lambda: gang.phases() == {"pod-0": "finished"}, 60, "end")
    text = gang.pods[0].text()
    assert "resumed 30" in text
    assert "STALE FILES" not in text
    assert min(step["step"] for step in gang.steps()) == 31
    last = checkpoints.newest()
    assert last is not None
    assert (last.step, last.final) == (60, True)
    assert sorted(file.path for file in last.files) == ["ckpt.json", "export/model.bin"], "what is left at the end, too"
    assert saved_step(checkpoints, last.digest, tmp_path / "look") == 60
    gang.order("exit", 0)
    assert gang.exit_codes() == [0]


UNEVEN = """
import json, os, pathlib, time
rank, out = int(os.environ["RANK"]), pathlib.Path("out")
if rank == 0:
    out.mkdir()
    (out / "ckpt.json").write_text(json.dumps({"step": 10}))
    print("step 10 loss 0.5", flush=True)
while rank == 1 and not pathlib.Path("go").exists():
    time.sleep(0.02)
"""


def test_the_last_save_of_a_rank_that_ended_well_is_committed_while_another_hangs_at_its_end(
    make_gang: Callable[[int], Gang],
) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(UNEVEN)
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    claim = checkpoints.claim("first")
    gang.start(**{**OPTIONS, "nproc_per_node": 2})
    gang.assign(0, generation=claim.generation, log_seq=claim.seq)
    gang.until(lambda: [each.step for each in checkpoints.commits()] == [10], 60, "commit")
    assert gang.phases() == {"pod-0": "running"}
    (gang.workspace(0) / "go").touch()
    gang.until(lambda: gang.phases() == {"pod-0": "finished"}, 60, "end")
    gang.order("exit", 0)
    assert gang.exit_codes() == [0]


AHEAD = """
import json, os, pathlib, time
out = pathlib.Path("out"); out.mkdir()
def save(name, text):
    (out / ".new").write_text(text); os.utime(out / ".new", (4e9, 4e9)); (out / ".new").rename(out / name)
for step in (1, 2):
    save("ckpt.json", json.dumps({"step": step}))
    print(f"step {step} loss 0.5", flush=True)
    while step == 1 and not pathlib.Path("go").exists():
        time.sleep(0.02)
save("model.bin", "what was trained")
"""


def test_times_of_files_that_lie_ahead_of_the_clock_hold_no_commit_back(make_gang: Callable[[int], Gang]) -> None:
    """A file server's clock, or one that was set back: nothing was committed while it ran, and the end was waited for
    until the clock had come there.
    """
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(AHEAD)
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    claim = checkpoints.claim("first")
    gang.start(**OPTIONS)
    gang.assign(0, generation=claim.generation, log_seq=claim.seq)
    gang.until(lambda: [event["step"] for event in gang.events("checkpoint_committed")] == [1], 30, "commit")
    (gang.workspace(0) / "go").touch()
    gang.until(lambda: gang.phases() == {"pod-0": "finished"}, 30, "end")
    last = checkpoints.newest()
    assert last is not None
    assert (last.step, last.final, sorted(file.path for file in last.files)) == (2, True, ["ckpt.json", "model.bin"])
    gang.order("exit", 0)
    assert gang.exit_codes() == [0]


def test_what_a_script_saved_is_nothing_that_a_checkpointer_goes_on_from(
    make_gang: Callable[[int], Gang], tmp_path: Path
) -> None:
    """A script without one began at its first step, and the attempt was said to go on from step 7."""
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(TRAIN)
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    (tmp_path / "ckpt.json").write_text('{"step": 7}')
    time_settled(tmp_path / "ckpt.json")
    made = committed_folder(checkpoints, claim := checkpoints.claim("first"), 7, tmp_path, ["ckpt.json"])
    gang.start(script="train.py", checkpoint_mode="checkpointer")
    gang.assign(1, generation=claim.generation, log_seq=claim.seq, resume_digest=made.digest, resume_step=7)
    gang.until(lambda: bool(gang.errors()), 30, "error")
    error = gang.errors()[0]
    assert error["cause"] == "checkpoint_mismatch"
    assert (
        'of step 7 holds files of a script, not a Checkpointer\'s state: set checkpoint.mode to "opaque" again'
        in (error["message"])
    )
    assert gang.steps() == []
    gang.order("exit", 78)
    assert gang.exit_codes() == [78]


def test_from_scratch_no_argument_is_added_and_nothing_stale_is_seen(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(TRAIN.replace("61", "6"))
    (gang.workspace(0) / "out").mkdir()
    (gang.workspace(0) / "out" / "ckpt.json").write_text("torn")
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    claim = checkpoints.claim("first")
    gang.start(**OPTIONS)
    gang.assign(0, generation=claim.generation, log_seq=claim.seq)
    gang.until(lambda: gang.phases() == {"pod-0": "finished"}, 60, "end")
    assert "STALE FILES" not in gang.pods[0].text()
    assert "resumed" not in gang.pods[0].text()
    assert checkpoints.newest() is None  # the script never saved: there is nothing to commit
    gang.order("exit", 0)
    assert gang.exit_codes() == [0]


def test_corrupt_checkpoint_is_reported_with_its_digest(make_gang: Callable[[int], Gang], tmp_path: Path) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(TRAIN)
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    claim = checkpoints.claim("first")
    source = tmp_path / "source"
    source.mkdir()
    (source / "ckpt.json").write_text(json.dumps({"step": 7, "pad": "y" * 1000}))
    time_settled(source / "ckpt.json")
    done = committed_folder(checkpoints, claim, 7, source, ["ckpt.json"])
    shards = [path for path in (tmp_path / "store/run/runs/run-1/data").rglob("*") if path.is_file()]
    shard = max(shards, key=lambda path: path.stat().st_size)
    raw = bytearray(shard.read_bytes())
    raw[500] ^= 1
    shard.write_bytes(bytes(raw))
    claim = checkpoints.claim("second")
    gang.start(**OPTIONS)
    gang.assign(0, generation=claim.generation, log_seq=claim.seq, resume_digest=done.digest, resume_step=7)
    gang.until(lambda: bool(gang.errors()), 30, "error")
    error = gang.errors()[0]
    assert (error["cause"], error["digest"]) == ("checkpoint_corrupt", done.digest)
    assert gang.steps() == []
    gang.order("exit", 72)
    assert gang.exit_codes() == [72]


def test_a_slow_node_still_finds_what_all_go_on_from(cluster: Callable[..., Cluster]) -> None:
    """Node 0's script saved before its first collective and ``keep`` was 1: the other one's restore ended the run."""
    gang = cluster(nproc=1, checkpoint_expect=(), checkpoint_keep=1)

    def save(step: int, left: list[int]) -> None:
        gang.nodes[0].save(0, step)
        gang.until(lambda: [each.step for each in gang.store.commits()] == left, f"{left} alone")

    gang.begin()
    save(10, [10])
    gang.begin()
    save(20, [10, 20])
    gang.nodes[0].saves.stop()  # what followed the commit is over
    assert [each.step for each in gang.store.commits()] == [10, 20]
    gang.begin()
    save(30, [10, 20, 30])
    save(40, [40])


def time_settled(path: Path) -> None:
    """As a file that was written a while ago."""

    os.utime(path, (path.stat().st_mtime - 10, path.stat().st_mtime - 10))
