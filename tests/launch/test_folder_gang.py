"""Two nodes of two ranks each, real launch: every rank writes its own file, on its own node's disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.store import open_store

if TYPE_CHECKING:
    from tests.launch.conftest import Gang

# Rank 3 is slow and writes in two halves; rank 0 says ``latest`` at once, as DeepSpeed does. Now and then all wait for
# each other, as a collective would.
TRAIN = """
import json, os, pathlib, sys, time
out, sync, rank = pathlib.Path("out"), pathlib.Path(sys.argv[1]), int(os.environ["RANK"])
out.mkdir(exist_ok=True)
first = 1
if len(sys.argv) > 2:
    mine = json.loads((pathlib.Path(sys.argv[-1]) / f"rank_{rank:02d}.json").read_text())
    assert mine["rank"] == rank
    first = mine["step"] + 1
    print("resumed", mine["step"], flush=True)
def wait(pattern, count):
    while len(list(sync.glob(pattern))) < count:
        time.sleep(0.01)
for step in range(first, 61):
    if step % 10 == 5:
        (sync / f"{first}-{step}-{rank}").touch()
        wait(f"{first}-{step}-*", 4)
        if step == 35:
            wait("go", 1)
    if step % 10 == 0:
        folder = out / f"global_step{step}"
        folder.mkdir(exist_ok=True)
        text = json.dumps({"step": step, "rank": rank, "pad": "x" * 100000})
        time.sleep(0.2 * (rank == 3))
        with open(folder / f"rank_{rank:02d}.json", "w") as target:
            target.write(text[:50000]); target.flush()
            if rank == 3 and step == 40 and first == 1:
                wait("wrote-40-*", 3)
                print(f"step {step} loss 0.5", flush=True)
                time.sleep(60)
            target.write(text[50000:])
        (sync / f"wrote-{step}-{rank}").touch()
        if rank == 0:
            (out / "latest").write_text(f"global_step{step}")
    print(f"step {step} loss {1 / step:.3f}", flush=True)
    time.sleep(0.02)
if rank == 0:
    (out / "model.bin").write_text("what was trained")
"""
OPTIONS: dict[str, Any] = {
    "script": "train.py",
    "launcher": "plain",
    "nproc_per_node": 2,
    "checkpoint_mode": "opaque",
    "checkpoint_path": "out",
    "checkpoint_include": ("global_step*/**/*", "latest"),
    "checkpoint_writers": "every",
    "checkpoint_expect": ("rank_{rank:02d}.json",),
    "resume_arg": ("{newest}",),
}


def step_of(store: CheckpointStore, checkpoint: Checkpoint, look: Path) -> int:
    """The one step that every rank's file in the checkpoint is of."""
    shutil.rmtree(look, ignore_errors=True)
    store.fetch(checkpoint, look)
    found = [json.loads(path.read_text()) for path in look.rglob("rank_*.json")]
    assert sorted(record["rank"] for record in found) == [0, 1, 2, 3]
    assert len({record["step"] for record in found}) == 1, found
    step = found[0]["step"]
    assert (look / "argosy-node-000000/latest").read_text() == f"global_step{step}"
    return int(step)


def test_one_step_of_all_ranks_or_nothing(make_gang: Callable[[int], Gang], tmp_path: Path) -> None:
    gang = make_gang(2)
    for index in range(2):
        (gang.workspace(index) / "train.py").write_text(TRAIN)
    store = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    claim = store.claim("first")
    (tmp_path / "sync").mkdir()
    gang.start(**OPTIONS, arg=(str(tmp_path / "sync"),))
    # Killed while half of its file of step 40 is written, and all else of that step is there.
    fault = {"fault": "kill", "rank": 3, "step": 40, "code": None}
    gang.assign(0, fault=fault, generation=claim.generation, log_seq=claim.seq)

    def committed() -> list[int]:
        return [step_of(store, each, tmp_path / "look") for each in store.commits()]

    gang.until(lambda: committed()[-1:] == [30], 60, "commit of step 30")
    (tmp_path / "sync" / "go").touch()
    gang.until(lambda: gang.phases().get("pod-1") == "failed", 60, "the killed rank")
    assert set(committed()) <= {10, 20, 30}
    commits = store.commits()
    assert [each.step for each in commits] == committed()  # from the folders' names: the script saves, then tells

    claim = store.claim("second")
    gang.order("stop", root={"cause": "unknown", "rank": 3, "node": "node-1", "quote": ""})
    gang.reports.clear()
    newest = commits[-1]
    again = {
        "generation": claim.generation,
        "log_seq": claim.seq,
        "resume_digest": newest.digest,
        "resume_step": newest.step,
    }
    gang.assign(1, **again)
    gang.until(lambda: set(gang.phases().values()) == {"finished"}, 60, "end")
    assert [pod.text().count(f"resumed {newest.step}\n") for pod in gang.pods] == [2, 2]
    last = store.newest()
    assert last is not None
    assert (step_of(store, last, tmp_path / "look"), last.step, last.final) == (60, 60, True)
    assert (tmp_path / "look/argosy-node-000000/model.bin").read_text() == "what was trained"
    gang.order("exit", 0)
    assert gang.exit_codes() == [0, 0]
