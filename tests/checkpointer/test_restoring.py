"""What a restore refuses to load, one rank; several ranks are in tests/state/ranks.py."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.checkpointer import Checkpointer, Stopped
from argosy.steps.contract import env
from argosy.steps.contract.causes import Cause
from argosy.steps.state.files import STATE_PATH, state_bytes
from argosy.steps.state.random_generators import capture, random_path
from argosy.steps.store import open_store

torch = pytest.importorskip("torch")


pytestmark = pytest.mark.usefixtures("outside")


def store_of(folder: Path) -> CheckpointStore:
    return CheckpointStore(open_store(f"file://{folder}"), "")


@pytest.mark.parametrize("file", ["tensors/rank-00000-000.safetensors", STATE_PATH])
def test_a_changed_byte_is_found_before_anything_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    checkpointer = Checkpointer(tmp_path)
    first = checkpointer.save(1, {"w": torch.ones(1000), "note": "aaaa"})
    second = checkpointer.save(2, {"w": torch.full((1000,), 2.0), "note": "aaaa"})
    checkpointer.close()
    damaged = next(tmp_path.glob(f"data/0000000002-*/files/{file}"))
    raw = damaged.read_bytes()
    at = raw.find(b"aaaa") if file == STATE_PATH else len(raw) - 4
    damaged.write_bytes(raw[:at] + b"b" + raw[at + 1 :])  # still a file that can be read
    # Inside argosy every rank ends, and argosy restarts from the one before.
    monkeypatch.setenv(env.RUN_URI, f"file://{tmp_path}")
    monkeypatch.setenv(env.RESUME_DIGEST, second.digest)
    with pytest.raises(Stopped) as stopped:
        Checkpointer().restore()
    assert stopped.value.code == 72
    assert f"checkpoint_corrupt digest={second.digest}" in capsys.readouterr().err
    monkeypatch.delenv(env.RUN_URI)
    # Outside the one before is loaded at once.
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert (restored.step, restored.digest) == (1, first.digest)
    assert restored.state["w"].tolist() == [1.0] * 1000
    assert list(store_of(tmp_path).quarantined()) == [second.digest]


def saved_in_two_files(folder: Path, step: int, **state: Any) -> None:
    """Each tensor has 1,000 bytes and a file of its own."""
    Checkpointer(folder, asynchronous=False).save(step, {name: torch.full((250,), n) for name, n in state.items()})
    assert len(list(folder.glob(f"data/{step:010d}-*/files/tensors/*"))) == len(state)


def damage(folder: Path, step: int, name: str) -> None:
    [path] = [p for p in folder.glob(f"data/{step:010d}-*/files/tensors/*") if f'"{name}'.encode() in p.read_bytes()]
    path.write_bytes(path.read_bytes()[:-1] + b"!")


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.steps.state.plan.PIECE_BYTES", 1000)
    monkeypatch.setattr("argosy.steps.state.plan.FILE_BYTES", 1000)


def zeros(*names: str) -> dict[str, Any]:
    return {name: torch.zeros(250) for name in names}


@pytest.mark.usefixtures("small_files")
def test_nobody_starts_from_scratch_with_half_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved_in_two_files(tmp_path, 1, a=1.0, b=2.0)
    damage(tmp_path, 1, "b")
    into = zeros("a", "b")
    with pytest.raises(Stopped) as stopped:
        Checkpointer(tmp_path).restore(into)
    assert stopped.value.code == 72
    assert "`into` is filled in part from it, and there is none before it" in capsys.readouterr().err
    assert (into["a"].unique().tolist(), into["b"].unique().tolist()) == ([1.0], [0.0])
    # The next start does not meet it.
    into = zeros("a", "b")
    assert Checkpointer(tmp_path).restore(into) is None
    assert not any(tensor.any() for tensor in into.values())


@pytest.mark.usefixtures("small_files")
def test_the_one_before_fills_again_what_a_damaged_one_filled(tmp_path: Path) -> None:
    saved_in_two_files(tmp_path, 1, a=1.0, b=2.0)
    saved_in_two_files(tmp_path, 2, a=3.0, b=4.0)
    damage(tmp_path, 2, "b")
    into = zeros("a", "b")
    restored = Checkpointer(tmp_path).restore(into)
    assert restored is not None
    assert restored.step == 1
    assert (into["a"].unique().tolist(), into["b"].unique().tolist()) == ([1.0], [2.0])


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("strict", [True, False])
def test_one_before_that_lacks_what_a_damaged_one_filled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], strict: bool
) -> None:
    saved_in_two_files(tmp_path, 1, b=2.0)
    saved_in_two_files(tmp_path, 2, a=3.0, b=4.0)
    damage(tmp_path, 2, "b")
    with pytest.raises(Stopped) as stopped:
        Checkpointer(tmp_path).restore(zeros("a", "b"), strict=strict)
    assert stopped.value.code == 72
    assert "the one before does not replace it all: the checkpoint of step 1" in capsys.readouterr().err
    assert len(store_of(tmp_path).quarantined()) == 1  # the one before is good
    into = zeros("a", "b")
    restored = Checkpointer(tmp_path).restore(into, strict=False)
    assert restored is not None
    assert (into["a"].unique().tolist(), into["b"].unique().tolist()) == ([0.0], [2.0])


@pytest.mark.parametrize("file", ["tensors/rank-00000-000.safetensors", STATE_PATH])
def test_damage_before_anything_was_filled_leaves_a_fresh_state(tmp_path: Path, file: str) -> None:
    saved_in_two_files(tmp_path, 1, a=1.0)
    damaged = next(tmp_path.glob(f"data/0000000001-*/files/{file}"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"!")
    into = zeros("a")
    assert Checkpointer(tmp_path).restore(into) is None
    assert not into["a"].any()


def test_generators_of_another_number_of_ranks_are_left_alone(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    claim = store.claim("test")
    for step, world_size in ((1, 2), (2, 1)):
        name = store.new_save(claim, step)
        part = store.part(name, 0)
        part.add_bytes(STATE_PATH, state_bytes(step, {"n": step}, {}))
        random.seed(7)
        part.add_bytes(random_path(0), capture())
        store.commit(claim, name, step, [part.finish()], kind="tensors", world_size=world_size, final=False)
        random.seed(8)
        before = random.getstate()
        restored = Checkpointer(tmp_path, save_rng=True).restore()
        assert restored is not None
        assert (restored.step, restored.rng) == (step, world_size == 1)
        assert (random.getstate() == before) is (world_size == 2)


def test_files_of_a_script_are_not_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(tmp_path)
    claim = store.claim("test")
    name = store.new_save(claim, 1)
    part = store.part(name, 0)
    part.add_bytes(STATE_PATH, state_bytes(1, {"n": 1}, {}))
    saved = store.commit(claim, name, 1, [part.finish()], kind="files", world_size=1, final=False)
    monkeypatch.setenv(env.RUN_URI, f"file://{tmp_path}")
    monkeypatch.setenv(env.RESUME_DIGEST, saved.digest)
    with pytest.raises(Stopped):
        Checkpointer().restore()
    assert (
        'holds files of a script, not a Checkpointer\'s state: set checkpoint.mode to "opaque"'
        in capsys.readouterr().err
    )


LIMITED = """
import resource, sys
import torch
from argosy.steps.checkpointer import Checkpointer
into = {"w": torch.zeros(30_000_000)}
checkpointer = Checkpointer(sys.argv[1])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (60 << 20),) * 2)
checkpointer.restore(into)
"""


def test_too_little_memory_to_load_a_file_is_named(tmp_path: Path) -> None:
    Checkpointer(tmp_path).save(1, {"w": torch.ones(30_000_000)}, final=True)
    command = [sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == Cause.HOST_OOM.exit_code, done.stderr
    assert "argosy: host_oom no room to load a file of 0.1 GB" in done.stderr
