"""What ``file://`` reports is on stable storage: bytes before the name, the name's folder before the return."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.store import open_store
from argosy.steps.store.base import StoreError


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(what, path) of every fsync, rename, link and removal, in order."""
    calls: list[tuple[str, str]] = []
    fsync, replace, link, unlink = os.fsync, os.replace, os.link, Path.unlink

    def synced(handle: int) -> None:
        calls.append(("fsync", os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    def replaced(source: Any, target: Any) -> None:
        calls.append((f"name of {source}", str(target)))
        replace(source, target)

    def linked(source: Any, target: Any) -> None:
        calls.append((f"name of {source}", str(target)))
        link(source, target)

    def unlinked(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok=missing_ok)
        calls.append(("gone", str(path)))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(Path, "unlink", unlinked)
    return calls


def check_named(calls: list[tuple[str, str]], target: Path) -> None:
    at = next(number for number, (_, path) in enumerate(calls) if path == str(target))
    source = calls[at][0].removeprefix("name of ")
    assert ("fsync", source) in calls[:at], "the bytes were not durable when they got their name"
    assert ("fsync", str(target.parent)) in calls[at:], "the name was not durable on return"


@pytest.mark.parametrize("verb", ["put", "put_if_absent", "upload", "upload of memory"])
def test_a_write_is_durable(verb: str, seen: list[tuple[str, str]], tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    for key in ("a/b/one", "a/b/two"):
        seen.clear()
        if verb == "upload":
            (tmp_path / "source").write_bytes(b"x" * 100)
            store.upload(key, tmp_path / "source")
        elif verb == "upload of memory":
            store.upload(key, memoryview(b"x" * 100))
        else:
            getattr(store, verb)(key, b"x" * 100)
        check_named(seen, tmp_path / "store" / key)
        if key.endswith("one"):
            for folder in ("store", "store/a"):
                assert ("fsync", str(tmp_path / folder)) in seen, "a new folder's own name was not durable"


def test_a_removal_is_durable(seen: list[tuple[str, str]], tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    store.put("a/one", b"1")
    store.put("a/two", b"2")
    seen.clear()
    store.delete("a/one")
    assert seen.index(("gone", f"{tmp_path}/a/one")) < seen.index(("fsync", f"{tmp_path}/a"))


def test_what_is_fetched_is_durable(seen: list[tuple[str, str]], tmp_path: Path) -> None:
    checkpoints = CheckpointStore(open_store(f"file://{tmp_path}/store"), "")
    claim = checkpoints.claim("test")
    part = checkpoints.part(checkpoints.new_save(claim, 1), 0)
    name = part.add_bytes("deep/state", b"x" * 100).key.split("/")[1]
    checkpoints.commit(claim, name, 1, [part.finish()], kind="tensors", world_size=1, final=False)
    newest = checkpoints.newest()
    assert newest is not None
    seen.clear()
    checkpoints.fetch(newest, tmp_path / "out")
    check_named(seen, tmp_path / "out/deep/state")


@pytest.mark.parametrize(("above", "inside"), [(0o777, 0o777), (0o775, 0o775), (0o755, 0o755), (0o1777, 0o755)])
def test_who_may_write_to_a_volume_may_write_to_what_is_made_on_it(above: int, inside: int, tmp_path: Path) -> None:
    """The laptop pushed the code, and the run's pods, of another user, could write nothing beside it."""
    volume = tmp_path / "volume"
    volume.mkdir()
    volume.chmod(above)
    before = os.umask(0o022)
    try:
        open_store(f"file://{volume}/store").put("run/code/a", b"x")
    finally:
        os.umask(before)
    made = [volume / "store", volume / "store/run/code", volume / "store/.argosy-parts"]
    assert [each.stat().st_mode & 0o7777 for each in made] == [inside] * 3


def test_a_clock_that_is_ahead_of_the_disks_leaves_other_writers_their_parts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A machine two hours ahead of the file server removed what others were writing, and their put failed."""
    parts = tmp_path / "store" / ".argosy-parts"
    parts.mkdir(parents=True)
    for name in ("live", "dead"):
        (parts / name).write_bytes(b"half")
    os.utime(parts / "dead", (1e9, 1e9))
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 7200)
    open_store(f"file://{tmp_path}/store").put("key", b"x")
    assert [path.name for path in parts.iterdir()] == ["live"]


def test_what_killed_writers_left_goes_before_anything_is_written(tmp_path: Path) -> None:
    """A disk that was full of it stayed full, for the write that would have been followed by its removal failed."""
    left = tmp_path / "store" / ".argosy-parts" / "dead"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    os.utime(left, (1e9, 1e9))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
    try:
        with pytest.raises(StoreError, match="File too large"):
            open_store(f"file://{tmp_path}/store").put("key", b"xy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not left.exists()


@pytest.mark.parametrize("verb", ["put", "put_if_absent", "upload"])
def test_a_file_that_cannot_be_read_is_named_and_not_the_store(verb: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=rf"^cannot read {tmp_path}/gone: No such file"):
        getattr(open_store(f"file://{tmp_path}/store"), verb)("k", tmp_path / "gone")
