"""A restore into a folder that still holds files of the checkpoint: what is good there is not asked of the store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.store import ObjectStore
from tests.launch.committing import committed_folder

FILES = {"step-3/a.pt": b"a" * 50_000, "step-3/b.pt": os.urandom(70_000), "latest": b"step-3"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, (name, data) in enumerate(FILES.items()):
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (time.time() - 100 + number, time.time() - 100 + number))
    return tmp_path / "out"


@pytest.fixture
def checkpoints(inner: ObjectStore) -> CheckpointStore:
    return CheckpointStore(inner, "name/runs/r1")


@pytest.fixture
def made(checkpoints: CheckpointStore, folder: Path) -> Checkpoint:
    return committed_folder(checkpoints, checkpoints.claim("launch"), 3, folder, sorted(FILES))


def as_committed(folder: Path, made: Checkpoint) -> bool:
    times = {file.path: file.modified_ns for file in made.files}
    return all(
        (folder / name).read_bytes() == data
        and not (folder / name).is_symlink()
        and (folder / name).stat().st_mtime_ns == times[name]
        for name, data in FILES.items()
    )


def test_a_folder_that_is_as_it_was_costs_the_store_nothing(
    checkpoints: CheckpointStore, made: Checkpoint, folder: Path
) -> None:
    assert checkpoints.fetch(made, folder) == 0
    assert as_committed(folder, made)
    assert sum(1 for path in folder.rglob("*") if path.is_file()) == len(FILES), "no copy stays"


def changed_with_its_time_put_back(path: Path) -> None:
    before = path.stat()
    data = path.read_bytes()
    path.write_bytes(data[:40_000] + bytes([data[40_000] ^ 1]) + data[40_001:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def written_again(path: Path) -> None:
    path.write_bytes(path.read_bytes()[::-1])


def cut(path: Path) -> None:
    before = path.stat()
    os.truncate(path, 100)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def linked(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("spoil", [changed_with_its_time_put_back, written_again, cut, piped, linked, Path.unlink])
def test_only_what_is_not_good_there_is_asked_of_the_store(
    spoil: Callable[[Path], Any], checkpoints: CheckpointStore, made: Checkpoint, folder: Path
) -> None:
    spoil(folder / "step-3/b.pt")
    assert checkpoints.fetch(made, folder) == len(FILES["step-3/b.pt"])
    assert as_committed(folder, made)


def test_who_still_has_a_file_open_or_linked_cannot_change_what_is_restored(
    checkpoints: CheckpointStore, made: Checkpoint, folder: Path
) -> None:
    os.link(folder / "latest", folder / "another name")
    with (folder / "step-3/a.pt").open("r+b") as left, (folder / "another name").open("r+b") as linked:
        assert checkpoints.fetch(made, folder) == 0
        left.write(b"late")
        linked.write(b"late")
    assert as_committed(folder, made)


def test_a_damaged_shard_of_the_store_is_not_met_while_the_folder_has_it(
    checkpoints: CheckpointStore, made: Checkpoint, folder: Path, tmp_path: Path
) -> None:
    (file,) = (file for file in made.files if file.path == "step-3/a.pt")
    (tmp_path / "store/name/runs/r1" / file.key).write_bytes(b"other")
    assert checkpoints.fetch(made, folder) == 0
    assert as_committed(folder, made)
