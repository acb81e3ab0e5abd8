"""What the script is told after a restore: the folder, the only file, or what was written last."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError
from argosy.steps.launch.restoring import restore
from argosy.steps.store import open_store
from tests.launch.committing import committed_folder


@pytest.mark.parametrize(
    ("files", "include", "argument", "expected"),
    [
        (["ckpt.pt"], "*.pt", "{path}", "out/ckpt.pt"),
        (["ckpt.pt"], "*.pt", "--load={newest}", "--load=out/ckpt.pt"),
        (["epoch_2.pt", "epoch_10.pt"], "*.pt", "{path}", "out"),
        (["epoch_2.pt", "epoch_10.pt"], "*.pt", "{newest}", "out/epoch_10.pt"),
        (["epoch_10.pt", "epoch_2.pt"], "*.pt", "{newest}", "out/epoch_2.pt"),
        (["checkpoint-9/a/x.pt", "checkpoint-10/state.json"], "checkpoint-*/**/*", "{newest}", "out/checkpoint-10"),
        (["version_1/c/a.ckpt", "version_0/c/b.ckpt"], "version_*/c/*.ckpt", "{newest}", "out/version_0/c/b.ckpt"),
        (["global_step5/x.pt", "latest"], "**/*", "{newest}", "out/global_step5"),
        (["ckpt.pt"], "*.pt", "{other}", "{other}"),
        (["m_2.pt", "m_10.pt", "opt_10.pt"], "*.pt", "{newest:m_*.pt}", "out/m_10.pt"),
        (["a/m_0010.pt", "a/opt_0010.pt"], "**/*.pt", "--n={step:a/m_*.pt}", "--n=10"),
        (["v2_e_007.pt", "final.pt"], "*.pt", "{step:v*_e_*.pt}", "7"),
        (["m_2.pt"], "*.pt", "{newest:x_*.pt}", "out/m_2.pt"),
    ],
)
def test_placeholders(files: list[str], include: str, argument: str, expected: str, tmp_path: Path) -> None:
    """``files`` are written in this order, a second apart."""
    out = tmp_path / "work" / "out"
    for number, name in enumerate(files):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(name)
        moment = time.time() - 100 + number
        os.utime(out / name, (moment, moment))
    checkpoints = CheckpointStore(open_store(f"file://{tmp_path}/store"), "run/runs/r1")
    claim = checkpoints.claim("test")
    made = committed_folder(checkpoints, claim, 1, out, files)
    given = restored(
        tmp_path, checkpoints, made.digest, checkpoint_include=(include,), resume_arg=("--resume", argument)
    )
    assert given == ["--resume", expected]
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()) == sorted(files)


def test_a_link_to_the_newest_file_does_not_hide_the_name_that_tells_its_step(tmp_path: Path) -> None:
    (out := tmp_path / "work" / "out").mkdir(parents=True)
    (out / "ckpt_9.pt").write_text("x")
    os.utime(out / "ckpt_9.pt", (1e9, 1e9))
    (out / "last.pt").symlink_to("ckpt_9.pt")
    checkpoints = CheckpointStore(open_store(f"file://{tmp_path}/store"), "run/runs/r1")
    made = committed_folder(checkpoints, checkpoints.claim("test"), 1, out, ["ckpt_9.pt", "last.pt"])
    given = restored(tmp_path, checkpoints, made.digest, resume_arg=("{newest}", "{newest:*.pt}"))
    assert given == ["out/ckpt_9.pt"] * 2


def test_what_a_checkpointer_saved_is_no_folder_of_a_script(tmp_path: Path) -> None:
    checkpoints = CheckpointStore(open_store(f"file://{tmp_path}/store"), "run/runs/r1")
    claim = checkpoints.claim("test")
    part = checkpoints.part(name := checkpoints.new_save(claim, 7), 0)
    part.add_bytes("state.json", b"{}")
    made = checkpoints.commit(claim, name, 7, [part.finish()], kind="tensors", world_size=1, final=False)
    with pytest.raises(
        StepError, match=r'of step 7 holds a Checkpointer\'s state.* set checkpoint.mode to "checkp'
    ) as stop:
        restored(tmp_path, checkpoints, made.digest)
    assert stop.value.cause == Cause.CHECKPOINT_MISMATCH
    assert not (tmp_path / "work").exists()


def restored(folder: Path, checkpoints: CheckpointStore, digest: str, **fields: Any) -> list[str]:
    """What the next start's script is given."""
    store = f"file://{folder}/store"
    args = LaunchArgs(store_uri=store, name="run", checkpoint_mode="opaque", checkpoint_path="out", **fields)
    told = Assignment(
        restart=1, attempt=1, node_rank=0, nnodes=1, master_addr="", master_port=0, run_id="r1", workflow="w",
        generation=2, log_seq=2, resume_digest=digest, resume_step=1, dataset_digest="", args=[],
    )  # fmt: skip
    return restore(args, told, checkpoints, folder / "work", {})
