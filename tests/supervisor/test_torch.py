"""The whole way with real ranks: torchrun, gloo, a script that has never heard of us."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.store import open_store
from argosy.workflows.code import pack, push

if TYPE_CHECKING:
    from conftest import Rig

SCRIPT = Path(__file__).parents[2] / "examples/ddp-plain/train.py"


@pytest.mark.torch
def test_a_killed_rank_of_a_plain_script_resumes_and_finishes(rig: Rig) -> None:
    code = rig.folder / "code"
    code.mkdir()
    (code / "train.py").write_text(SCRIPT.read_text())
    archive = pack(code)
    push(archive, open_store(rig.plan["store"]), "r")
    args = LaunchArgs(
        store_uri=rig.plan["store"], name="r", script="train.py", code_digest=archive.digest, nproc_per_node=1,
        arg=("--epochs", "1", "--width", "1280", "--save-every", "15"), checkpoint_mode="opaque", checkpoint_path="out",
        checkpoint_include=("ckpt.pt",), resume_arg=("--resume",), grace_seconds=5,
    )  # fmt: skip
    rig.command = [sys.executable, "-m", LaunchArgs.MODULE, *args.to_argv()]
    rig.inject = ("kill:rank=0@step=50",)
    assert rig.run(120) == 0, rig.log()
    ended = [event.fields for event in rig.events("restart_ended")]
    assert [(fields["signal"], fields["rank"]) for fields in ended] == [(9, 0)]
    began = [event.fields["restored_step"] for event in rig.events("restart_began")]
    assert began[0] == 0 < began[1] < 50 <= ended[0]["last_step"]
    steps = [(event.fields["restart"], event.fields["step"]) for event in rig.events("step")]
    assert max(step for _, step in steps) in (60, 64)
    for _, of_restart in itertools.groupby(steps, key=lambda pair: pair[0]):
        listed = [step for _, step in of_restart]
        assert listed == sorted(listed)
    newest = CheckpointStore(open_store(rig.plan["store"]), "r/runs/r-abc").newest()
    assert newest is not None
    assert newest.final
    assert rig.output("checkpoint-digest") == newest.digest
    assert rig.processes() == set()
