"""Both scripts without argosy's supervisor: killed by SIGKILL and started again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.steps.contract import env
from argosy.steps.pods.leftovers import sweep

pytestmark = [pytest.mark.torch, pytest.mark.variant]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TORCHRUN = str(Path(sys.executable).parent / "torchrun")
LINE = re.compile(r"step (\d+) loss ([\d.]+)")


def lines_of(command: list[str], cwd: Path) -> Iterator[str]:
    """The output as it comes; leaving the iterator early kills every process of the command with signal 9.

    torchrun gives each rank a session of its own, so all are found by a value in their environment.
    """
    token = f"test-training-{uuid.uuid4().hex}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", env.POD_TOKEN: token}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    finished = False
    try:
        yield from process.stdout
        finished = True
    finally:
        if not finished:
            sweep(token)
        process.stdout.close()
        code = process.wait()
    assert code == 0


def losses(lines: list[str]) -> dict[int, str]:
    return {int(found[1]): found[2] for line in lines if (found := LINE.search(line))}


def until_step(step: int, lines: Iterator[str]) -> list[str]:
    """The lines up to the one of ``step``; then the processes are killed."""
    seen = []
    for line in lines:
        seen.append(line)
        found = LINE.search(line)
        if found and int(found[1]) >= step:
            break
    lines.close()  # type: ignore[attr-defined]
    return seen


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    command = [sys.executable, str(EXAMPLES / "stdlib-gpt/prepare.py"), "--limit-mb", "1"]
    subprocess.run([*command, "--out", f"file://{tmp_path}/corpus"], check=True, capture_output=True)
    return tmp_path / "corpus"


def test_a_killed_gpt_training_ends_with_the_same_bits(corpus: Path, tmp_path: Path) -> None:
    import torch

    import argosy

    def command(checkpoints: str) -> list[str]:
        options = ["--steps", "12", "--checkpoint-every", "4", "--log-every", "1", "--warmup", "3", "--batch", "2"]
        script = str(EXAMPLES / "stdlib-gpt/train.py")
        return [sys.executable, script, "--data", str(corpus / "train"), "--checkpoints", checkpoints, *options]

    straight = losses(list(lines_of(command("straight"), tmp_path)))
    before = losses(until_step(9, lines_of(command("killed"), tmp_path)))
    after = list(lines_of(command("killed"), tmp_path))

    # Saving step 8 waited for the commit of step 4; its own may or may not have come before the kill.
    begin = next(step for step in (5, 9) if f"from step {step}\n" in after[0] + "\n")
    assert before | losses(after) == straight
    assert sorted(losses(after)) == list(range(begin, 13))
    ends = [argosy.Checkpointer(tmp_path / name).restore() for name in ("straight", "killed")]
    first, second = (end.state for end in ends if end is not None)
    assert first["model"].keys() == second["model"].keys()
    assert all(torch.equal(first["model"][name], second["model"][name]) for name in first["model"])
    moments = [(first["optimizer"]["state"][i], second["optimizer"]["state"][i]) for i in first["optimizer"]["state"]]
    assert moments
    assert all(torch.equal(one["exp_avg_sq"], two["exp_avg_sq"]) for one, two in moments)


def test_a_plain_script_on_two_ranks_resumes_by_its_own_flag(tmp_path: Path) -> None:
    import torch

    command = [TORCHRUN, "--standalone", "--nproc-per-node", "2", str(EXAMPLES / "ddp-plain/train.py")]
    command += ["--epochs", "1", "--width", "128", "--save-every", "20"]
    before = losses(until_step(30, lines_of(command, tmp_path)))
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / "ckpt.pt"]
    after = list(lines_of([*command, "--resume"], tmp_path))

    assert "resumed from step 20" in "".join(after)
    assert min(losses(after)) == 30
    assert losses(after)[30] == before[30]
    assert float(losses(after)[60]) < float(before[10])
    assert torch.load(tmp_path / "out/ckpt.pt", weights_only=True)["step"] == 64
