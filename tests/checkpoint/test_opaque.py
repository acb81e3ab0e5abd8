"""Folders of scripts that know nothing of us: committed when complete and still, restored byte for byte."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore, Claim
from argosy.steps.contract.errors import InputError
from argosy.steps.launch.folder_part import FilesChanged
from argosy.steps.store import ObjectStore
from tests.launch.committing import commit_folder, committed_folder


def settled(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (time.time() - 10, time.time() - 10))


@pytest.fixture
def checkpoints(inner: ObjectStore) -> CheckpointStore:
    return CheckpointStore(inner, "name/runs/r1")


@pytest.fixture
def claim(checkpoints: CheckpointStore) -> Claim:
    return checkpoints.claim("launch")


def test_a_folder_comes_back_as_it_was(checkpoints: CheckpointStore, claim: Claim, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    settled(folder / "ckpt.pt", b"\x80\x02weights" * 1000)
    settled(folder / "checkpoint-500/optimizer.pt", b"")
    settled(folder / "not included", b"x")
    made = committed_folder(checkpoints, claim, 500, folder, ["ckpt.pt", "checkpoint-500/optimizer.pt"], final=True)
    assert (made.step, made.final, made.kind, made.bytes) == (500, True, "files", 9000)
    found = CheckpointStore(checkpoints.store, "name/runs/r1").newest()
    assert found == made
    checkpoints.fetch(made, tmp_path / "back")
    there = {p.relative_to(tmp_path / "back").as_posix(): p.read_bytes() for p in (tmp_path / "back").rglob("*.pt")}
    assert there == {"ckpt.pt": b"\x80\x02weights" * 1000, "checkpoint-500/optimizer.pt": b""}
    assert sum(1 for p in (tmp_path / "back").rglob("*") if p.is_file()) == 2
    assert made.uri == f"{checkpoints.store.uri}/name/runs/r1/manifests/{made.digest}.json"


@pytest.mark.parametrize("clock", [os.path.getmtime, os.path.getctime])
def test_the_newest_file_is_the_newest_again(
    clock: Any, checkpoints: CheckpointStore, claim: Claim, tmp_path: Path
) -> None:
    # Names and times in opposite orders, as many files as are fetched at once and more.
    names = [f"checkpoint-{9 - number // 2}/part-{9 - number % 2}.pt" for number in range(12)]
    for number, name in enumerate(names):
        settled(tmp_path / "out" / name, name.encode())
        os.utime(tmp_path / "out" / name, (time.time() - 100 + number, time.time() - 100 + number))
    made = committed_folder(checkpoints, claim, 1, tmp_path / "out", sorted(names))
    back = tmp_path / "back"
    checkpoints.fetch(made, back)
    assert sorted(names, key=lambda name: clock(back / name)) == names
    folders = sorted(back.iterdir(), key=clock)
    assert [each.name for each in folders] == [f"checkpoint-{9 - number}" for number in range(6)]


class Meddling:
    """A store during whose upload the script goes on writing."""

    def __init__(self, inner: ObjectStore, meddle: Any) -> None:
        self._inner, self._meddle, self.uri = inner, meddle, inner.uri

    def upload(self, key: str, source: Path) -> tuple[str, int]:
        result = self._inner.upload(key, source)
        self._meddle(source)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def rewrite(path: Path) -> None:
    path.write_bytes(b"s" * path.stat().st_size)


def replace(path: Path) -> None:
    other = path.with_suffix(".tmp")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("meddle", [grow, rewrite, replace, lambda path: path.unlink()])
def test_what_changes_during_the_copy_is_not_committed(inner: ObjectStore, tmp_path: Path, meddle: Any) -> None:
    settled(tmp_path / "out/ckpt.pt", b"weights")
    store: Any = Meddling(inner, meddle)
    checkpoints = CheckpointStore(store, "run")
    claim = checkpoints.claim("launch")
    with pytest.raises(FilesChanged, match=r"ckpt\.pt.*not committed"):
        committed_folder(checkpoints, claim, 1, tmp_path / "out", ["ckpt.pt"])
    assert checkpoints.newest() is None
    # Nothing was appended: the same claim goes on, and the next prune removes the copy.
    settled(tmp_path / "out/ckpt.pt", b"whole")
    quiet = CheckpointStore(inner, "run")
    made = committed_folder(quiet, claim, 2, tmp_path / "out", ["ckpt.pt"])
    quiet.prune(1)
    assert {info.key.split("/")[2] for info in inner.list("run/data")} == {made.name}


@pytest.mark.parametrize("name", ["../secret", "/secret", "new\nline"])
def test_names_that_no_path_has_are_refused(
    checkpoints: CheckpointStore, claim: Claim, tmp_path: Path, name: str
) -> None:
    (tmp_path / "out").mkdir()
    settled(tmp_path / "out" / name.removeprefix("/"), b"1")
    with pytest.raises(InputError, match="leave it out with include"):
        commit_folder(checkpoints, claim, "a-save", 1, tmp_path / "out", {name: (1, 1, 1)}, final=False)
    assert checkpoints.newest() is None


def test_steps_never_go_back(checkpoints: CheckpointStore, claim: Claim, tmp_path: Path) -> None:
    settled(tmp_path / "x", b"1")
    committed_folder(checkpoints, claim, 7, tmp_path, ["x"])
    checkpoints.prune(1)
    with pytest.raises(InputError, match="never go back"):
        committed_folder(checkpoints, claim, 6, tmp_path, ["x"])
    committed_folder(checkpoints, claim, 7, tmp_path, ["x"], final=True)
    newer = checkpoints.claim("after a roll back")
    committed_folder(checkpoints, newer, 5, tmp_path, ["x"])


def test_prune_keeps_final_and_the_newest(checkpoints: CheckpointStore, claim: Claim, tmp_path: Path) -> None:
    settled(tmp_path / "x", b"1")
    made = [committed_folder(checkpoints, claim, step, tmp_path, ["x"], final=step == 2) for step in range(1, 7)]
    gone = checkpoints.prune(2)
    assert gone == [made[step - 1].digest for step in (4, 3, 1)]
    assert [checkpoint.step for checkpoint in checkpoints.commits()] == [2, 5, 6]
    for checkpoint in checkpoints.commits():
        checkpoints.verify(checkpoint)
    assert checkpoints.prune(2) == []
    with pytest.raises(InputError, match="keep"):
        checkpoints.prune(0)
    with pytest.raises(InputError, match="claim"):
        CheckpointStore(checkpoints.store, checkpoints.prefix).prune(2)
    # A shard is lost: it counts for nothing, so an older one must stay.
    newest = committed_folder(checkpoints, claim, 8, tmp_path, ["x"])
    checkpoints.store.delete(f"{checkpoints.prefix}/{newest.files[0].key}")
    checkpoints.prune(2)
    assert [checkpoint.step for checkpoint in checkpoints.commits()] == [2, 5, 6, 8]
