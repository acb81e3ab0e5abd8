"""Checkpointer in one process: what goes in comes out, what cannot is refused, and how a training ends."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.checkpointer import Checkpointer, Stopped
from argosy.steps.contract import env
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError
from argosy.steps.store import open_store
from tests.launch.committing import committed_folder

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")


pytestmark = pytest.mark.usefixtures("outside")


@pytest.fixture
def managed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CheckpointStore:
    """As in a train step: the supervisor claimed, the environment says so."""
    uri = f"file://{tmp_path}/store/name/runs/r1"
    store = CheckpointStore(open_store(f"file://{tmp_path}/store"), "name/runs/r1")
    claim = store.claim("supervisor")
    monkeypatch.setenv(env.RUN_URI, uri)
    monkeypatch.setenv(env.GENERATION, str(claim.generation))
    monkeypatch.setenv(env.LOG_SEQ, str(claim.seq))
    return store


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
    if isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and numpy.array_equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"every": -1}, "every = -1: at least 0 is needed"),
        ({"every": "often"}, "every = 'often': a whole number is needed"),
        ({"keep": -2}, "keep = -2: at least 0 is needed"),
        ({"keep": 1.5}, "keep = 1.5: a whole number is needed"),
        ({"keep": "auto"}, "keep = 'auto': a whole number is needed"),
    ],
)
def test_what_is_no_number_of_steps_or_checkpoints_is_refused(given: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(told)}$"):
        Checkpointer(tmp_path, **given)


def test_training_goes_on_to_the_bit(tmp_path: Path) -> None:
    def trained(folder: str, cut: int | None) -> Any:
        torch.manual_seed(7)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [4, 9])
        checkpointer = Checkpointer(tmp_path / folder, every=3, save_rng=True)
        first = 1
        if (restored := checkpointer.restore()) is not None:
            model.load_state_dict(restored.state["model"])
            optimizer.load_state_dict(restored.state["optimizer"])
            schedule.load_state_dict(restored.state["schedule"])
            assert restored.rng
            first = restored.step + 1
        for step in range(first, 13):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
            schedule.step()
            if checkpointer.due(step):
                checkpointer.save(
                    step,
                    {
                        "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "schedule": schedule.state_dict(),
                    },
                )
            if step == cut:
                return None
        return dict(model.state_dict())

    whole = trained("whole", None)
    assert trained("cut", 4) is None
    assert trained("cut", 8) is None
    assert same(whole, trained("cut", None))


def test_inside_argosy_the_environment_decides(
    managed: CheckpointStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read, write = os.pipe()
    monkeypatch.setenv(env.PROGRESS_FD, str(write))
    monkeypatch.setenv(env.CHECKPOINT_EVERY, "5")
    monkeypatch.setenv(env.CHECKPOINT_KEEP, "2")
    checkpointer = Checkpointer("ignored", every=3)
    assert [step for step in range(12) if checkpointer.due(step)] == [5, 10]
    assert checkpointer.restore() is None
    saved = [checkpointer.save(step, {"w": torch.full((4,), step)}, final=step == 15) for step in (5, 10, 15)]
    checkpointer.close()
    assert not (tmp_path / "ignored").exists()
    assert [found.step for found in managed.commits()] == [10, 15]
    newest = managed.newest()
    assert newest is not None
    assert (newest.digest, newest.final, newest.generation) == (saved[-1].digest, True, 1)
    records = [json.loads(line) for line in os.read(read, 65536).decode().splitlines()]
    os.close(read)
    os.close(write)
    assert [record["phase"] for record in records if record["type"] == "entered"] == ["save"] * 3
    kept = [len(record["files"]) for record in records if record["type"] == "kept"]
    assert kept == [0, 1] * 3, "a save overwrites what the one before had in memory, until it is stored"
    assert sum(record["type"] == "durable" for record in records) == 3
    records = [record for record in records if record["type"] not in ("entered", "kept", "durable")]
    assert [record["type"] for record in records] == ["checkpoint"] * 3
    assert records[-1].keys() == {"type", "step", "digest", "bytes", "seconds", "final", "generation", "time"}
    assert (records[-1]["step"], records[-1]["digest"], records[-1]["final"]) == (15, saved[-1].digest, True)

    monkeypatch.setenv(env.RESUME_DIGEST, saved[1].digest)
    restored = Checkpointer().restore()
    assert restored is not None
    assert (restored.step, restored.digest) == (10, saved[1].digest)
    managed.fetch(newest, tmp_path / "fetched")
    monkeypatch.setenv(env.CHECKPOINT_PATH, str(tmp_path / "fetched"))
    loaded = Checkpointer.load()
    assert (loaded.step, loaded.state["w"].tolist()) == (15, [15.0] * 4)
    with pytest.raises(InputError, match="no state"):
        Checkpointer.load(tmp_path / "store")


def test_corrupt_ends_with_72_and_the_line(
    managed: CheckpointStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = Checkpointer().save(1, {"w": torch.randn(100)})
    newest = managed.newest()
    assert newest is not None
    for file in newest.files:
        key = f"{managed.prefix}/{file.key}"
        whole = managed.store.get(key)
        managed.store.put(key, whole[:-1] + bytes([whole[-1] ^ 1]))
        monkeypatch.setenv(env.RESUME_DIGEST, saved.digest)
        with pytest.raises(Stopped) as caught:
            Checkpointer().restore()
        assert caught.value.code == 72
        assert capsys.readouterr().err == f"argosy: checkpoint_corrupt digest={saved.digest} shard={file.key}\n"
        managed.store.put(key, whole)


def test_fenced_ends_with_73(managed: CheckpointStore, capsys: pytest.CaptureFixture[str]) -> None:
    checkpointer = Checkpointer()
    checkpointer.save(1, {"w": torch.ones(1)}).wait()
    managed.claim("a newer gang")
    saving = checkpointer.save(2, {"w": torch.ones(1)})
    with pytest.raises(Stopped) as caught:
        saving.wait()
    assert not saving.done()
    assert (caught.value.code, caught.value.cause) == (73, Cause.FENCED)
    assert not isinstance(caught.value, Exception)
    line = capsys.readouterr().err
    assert line.startswith("argosy: fenced ")
    assert "a newer gang" in line
    newest = managed.newest()
    assert newest is not None
    assert newest.step == 1


def test_who_wakes_after_its_checkpoint_was_pruned_is_fenced(
    managed: CheckpointStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone_with(code: int) -> str:
        with pytest.raises(Stopped) as caught:
            Checkpointer().restore()
        assert caught.value.code == code
        return capsys.readouterr().err

    digest = Checkpointer(asynchronous=False).save(1, {"w": torch.ones(1)}).wait().digest
    zombie = managed.claim("the zombie")
    monkeypatch.setenv(env.RESUME_DIGEST, digest)
    monkeypatch.setenv(env.GENERATION, str(zombie.generation))
    monkeypatch.setenv(env.LOG_SEQ, str(zombie.seq))
    newer = managed.claim("a newer gang")
    for step in (2, 3):
        name = managed.new_save(newer, step)
        part = managed.part(name, 0)
        part.add_bytes("x", b"x")
        managed.commit(newer, name, step, [part.finish()], kind="tensors", world_size=1, final=False)
    assert managed.prune(1, newer)[-1] == digest
    said = gone_with(73)
    assert said.startswith("argosy: fenced ")
    assert f"generation {newer.generation} (a newer gang) wrote log entry {newer.seq}" in said
    assert f"no checkpoint {digest}" in said
    # Nobody newer: the digest itself is wrong.
    monkeypatch.setenv(env.GENERATION, str(newer.generation))
    monkeypatch.setenv(env.LOG_SEQ, str(newer.seq))
    assert gone_with(78).startswith("argosy: checkpoint_mismatch ")


def test_a_store_that_fails_ends_with_its_code(
    managed: CheckpointStore, faulty: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    checkpointer = Checkpointer(asynchronous=False)
    checkpointer._saver.store = CheckpointStore(faulty(open_store(os.environ[env.RUN_URI]), 2, "fail-before"), "")
    with pytest.raises(Stopped) as caught:
        checkpointer.save(1, {"w": torch.ones(1)})
    assert caught.value.code == 75
    assert "s3_throttle" in capsys.readouterr().err


def test_alone_it_walks_back_past_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (1, 2):
        Checkpointer(tmp_path).save(step, {"w": torch.full((9,), step)}).wait()
    (shard,) = tmp_path.glob("data/0000000002-*/files/tensors/*")
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert restored.step == 1
    assert "set aside" in capsys.readouterr().err
    again = Checkpointer(tmp_path).restore()
    assert again is not None
    assert again.step == 1


def test_settings_that_are_no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Checkpointer\\(path="):
        Checkpointer()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="init_process_group"):
        Checkpointer(tmp_path).save(1, {})
    monkeypatch.delenv("WORLD_SIZE")
    monkeypatch.setenv(env.CHECKPOINT_EVERY, "often")
    with pytest.raises(InputError, match="often"):
        Checkpointer(tmp_path)
    monkeypatch.delenv(env.CHECKPOINT_EVERY)
    monkeypatch.setenv(env.RUN_URI, f"file://{tmp_path}")
    with pytest.raises(InputError, match="only a train step"):
        Checkpointer().save(1, {})


def test_opaque_files_are_not_a_state(
    managed: CheckpointStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(b"1")
    os.utime(tmp_path / "x", (1, 1))
    from argosy.steps.checkpoint import Claim

    made = committed_folder(managed, Claim(1, 1), 1, tmp_path, ["x"])
    monkeypatch.setenv(env.RESUME_DIGEST, made.digest)
    with pytest.raises(Stopped) as caught:
        Checkpointer().restore()
    assert caught.value.code == 78
