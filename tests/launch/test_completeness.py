"""What changes between the judgement of a folder and its copy makes a save be given up: each check by itself."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.launch.completeness import Completeness
from argosy.steps.launch.folder_part import FilesChanged, store_part
from argosy.steps.launch.units import Contents, contents
from argosy.steps.launch.whole_files import Ages, Signature, signature
from argosy.steps.store.base import StoreError
from argosy.steps.store.files import FileStore


def write(path: Path, text: str, age: float = 0.25) -> None:
    """A file that is ``age`` seconds old; below 0: its time lies ahead. Nobody can set when a file came to its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    time.sleep(max(0.0, age))
    if age < 0:
        os.utime(path, (time.time() - age, time.time() - age))


def flaw_of(folder: Path, found: Contents, ranks_run: bool = True, **given: Any) -> str:
    args = LaunchArgs(store_uri="file:///none", name="run", checkpoint_mode="opaque", checkpoint_path="out", **given)
    flaw = Completeness(args, folder, [0]).flaw(found, found.units[-1], lambda: ranks_run)
    return "" if flaw is None else flaw.text


def looked_at(folder: Path, name: str) -> Callable[[], str]:
    """What is wrong with the folder now, for who has seen an earlier ``name`` alone in it."""
    args = LaunchArgs(store_uri="file:///none", name="run", checkpoint_mode="opaque", checkpoint_path="out")
    completeness = Completeness(args, folder, [0])
    write(folder / name, "{}", age=0.07)
    now(completeness, folder)
    return lambda: now(completeness, folder)


def now(completeness: Completeness, folder: Path) -> str:
    found = look(folder)
    flaw = completeness.flaw(found, found.units[-1], lambda: True)
    return "" if flaw is None else flaw.text


def look(folder: Path) -> Contents:
    return contents(folder, LaunchArgs(store_uri="file:///none", name="run"))


def test_a_file_that_came_after_the_listing(tmp_path: Path) -> None:
    """The script may write its marker between our listing and our look for the marker: then files may be missing."""
    write(tmp_path / "checkpoint-1/a", "x")
    found = look(tmp_path)
    assert flaw_of(tmp_path, found) == ""
    assert flaw_of(tmp_path, found, ranks_run=False) == "a rank of this node has ended"
    write(tmp_path / "checkpoint-1/b", "x")
    assert flaw_of(tmp_path, found) == "it has just changed"
    assert flaw_of(tmp_path, look(tmp_path)) == ""


def test_a_file_that_was_written_a_moment_ago(tmp_path: Path) -> None:
    write(tmp_path / "checkpoint-1/a", "x", age=0.0)
    assert flaw_of(tmp_path, look(tmp_path)) == "it has just changed"
    assert flaw_of(tmp_path, look(tmp_path), checkpoint_expect=("a",)) == "it has just changed"


@pytest.mark.parametrize(
    ("glob", "name", "numbered"),
    [
        ("rng_state_{rank}.pth", "rng_state.pth", "rng_state_0.pth"),  # Hugging Face's Trainer
        ("*-shard{rank}.pt", "last-shard.pt", "*-shard0.pt"),
        ("state/rank.{rank:05d}", "state/rank", "state/rank.00000"),
        ("*_{rank}.pt", "", "*_0.pt"),
        ("{rank}/x", "", "0/x"),
    ],
)
def test_a_lone_rank_may_leave_its_number_out(tmp_path: Path, glob: str, name: str, numbered: str) -> None:
    write(tmp_path / f"checkpoint-1/{name or 'other.pt'}", "x")
    args = LaunchArgs(store_uri="file:///none", name="run", checkpoint_path="out", checkpoint_expect=(glob,))
    found = look(tmp_path)
    for lone in (True, False):
        told = Completeness(args, tmp_path, [0], lone=lone).flaw(found, found.units[-1], lambda: True)
        missing = not (lone and name)
        assert ("" if told is None else told.text) == (f"there is no {numbered} of rank 0" if missing else "")


@pytest.mark.parametrize(
    ("text", "flaw"), [('{"step": 1}', ""), ('{"step": ', "busy"), ("12", "busy"), ('{"a": 1}\n{"a": 2}', "busy")]
)
def test_one_file_that_is_seen_to_be_whole_need_not_rest(tmp_path: Path, text: str, flaw: str) -> None:
    flaw_now = looked_at(tmp_path, "state.json")
    write(tmp_path / "state.json", text, age=0.07)
    expected = "it has just changed" if flaw else ""
    assert flaw_now() == expected
    write(tmp_path / "state.json", text, age=0.0)
    assert flaw_now() == "it has just changed"
    write(tmp_path / "state.json", text, age=0.07)
    write(tmp_path / "other.json", text, age=0.07)
    assert flaw_now() == "it has just changed"


def test_the_first_file_of_a_first_save_rests(tmp_path: Path) -> None:
    """The second file may be computed for a tenth of a second, and a checkpoint without it is none."""
    args = LaunchArgs(store_uri="file:///none", name="run", checkpoint_mode="opaque", checkpoint_path="out")
    completeness = Completeness(args, tmp_path, [0])
    write(tmp_path / "model.json", "{}", age=0.07)
    assert [now(completeness, tmp_path) for _ in range(2)] == ["it has just changed"] * 2
    time.sleep(0.2)
    assert now(completeness, tmp_path) == ""


def test_files_that_were_written_elsewhere_come_one_after_the_other(tmp_path: Path) -> None:
    """Moved, or copied with their times, they are old at once: half of such a checkpoint was committed."""
    for name in ("model", "optimizer"):
        write(tmp_path / "elsewhere" / name, "x")
    (tmp_path / "out/checkpoint-1").mkdir(parents=True)
    (tmp_path / "elsewhere/model").rename(tmp_path / "out/checkpoint-1/model")
    assert flaw_of(tmp_path / "out", look(tmp_path / "out")) == "it has just changed"
    shutil.copy2(tmp_path / "elsewhere/optimizer", tmp_path / "out/checkpoint-1/optimizer")
    assert flaw_of(tmp_path / "out", look(tmp_path / "out")) == "it has just changed"


def test_folders_that_were_written_elsewhere_come_one_after_the_other(tmp_path: Path) -> None:
    """A folder that is moved leaves the times of the files in it as they are."""
    write(tmp_path / "elsewhere/weights/0", "x")
    (tmp_path / "out/checkpoint-1").mkdir(parents=True)
    (tmp_path / "elsewhere").rename(tmp_path / "out/checkpoint-1/model")
    assert flaw_of(tmp_path / "out", look(tmp_path / "out")) == "it has just changed"
    time.sleep(0.25)
    found = look(tmp_path / "out")
    (tmp_path / "out/checkpoint-1/model/weights/lock").touch()
    assert flaw_of(tmp_path / "out", found, checkpoint_include=("**/0",)) == ""


def test_a_file_whose_time_lies_ahead_rests_by_what_is_seen_of_it(tmp_path: Path) -> None:
    args = LaunchArgs(store_uri="file:///none", name="run", checkpoint_mode="opaque", checkpoint_path="out")
    completeness = Completeness(args, tmp_path, [0])
    for text in ("x", "longer"):
        write(tmp_path / "checkpoint-1/a", text, age=-3600.0)
        write(tmp_path / "readme", text, age=-3600.0)
        assert now(completeness, tmp_path) == "it has just changed"
        found = look(tmp_path)
        assert completeness.beside(found, found.units[-1]) == {}
        assert list(completeness.beside(found, found.units[-1], ended=True)) == ["readme"]
    until = time.monotonic() + 10
    while now(completeness, tmp_path) or not completeness.beside(found, found.units[-1]):
        assert time.monotonic() < until


def test_a_file_whose_time_is_reached_while_it_rests_has_not_just_changed(tmp_path: Path) -> None:
    """A file server's clock 0.2 s ahead had each save rest for 0.2 s more."""
    ages, state = Ages(tmp_path), (1, time.time_ns() + 200_000_000, 7)
    while ages.of("a", state) < 0.15:
        assert time.time_ns() < state[1] + 5e9
    while time.time_ns() < state[1]:
        assert ages.of("a", state) >= 0.15
    assert ages.of("a", state) >= 0.15


def test_a_file_rests_after_the_second_that_its_file_system_keeps(tmp_path: Path) -> None:
    """Another write within that second changes nothing that is seen: a commit was of two saves' bytes."""
    ages, second = Ages(tmp_path), int(time.time())
    while ages.of("a", (1, second * 10**9, 7)) == 0:
        assert time.time() < second + 6
    assert time.time() >= second + 1
    assert ages.of("a", (1, second * 10**9 + 1, 7)) >= 1
    ahead = (1, (second + 3600) * 10**9, 7)
    began = time.monotonic()
    while ages.of("b", ahead) == 0:
        assert time.monotonic() < began + 6
    assert time.monotonic() >= began + 1


def test_a_file_of_torch_is_seen_to_be_whole(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"step": 3, "weights": torch.zeros(1000)}, tmp_path / "ckpt.pt")
    data = (tmp_path / "ckpt.pt").read_bytes()
    for kept, flaw in (
        (len(data), ""),
        (len(data) - 1, "it has just changed"),
        (len(data) // 2, "it has just changed"),
    ):
        flaw_now = looked_at(tmp_path, "ckpt.pt")
        (tmp_path / "ckpt.pt").write_bytes(data[:kept])
        time.sleep(0.07)
        assert flaw_now() == flaw


@pytest.mark.parametrize(("ranks", "flaw"), [([0, 1], "it is there, but not yet .metadata"), ([2, 3], "")])
def test_what_only_rank_0_writes_is_not_asked_of_other_nodes_disks(tmp_path: Path, ranks: list[int], flaw: str) -> None:
    write(tmp_path / "checkpoint-1/__2_0.distcp", "x")
    args = LaunchArgs(store_uri="file:///none", name="run", checkpoint_writers="every")
    found = look(tmp_path)
    told = Completeness(args, tmp_path, ranks).flaw(found, found.units[-1], lambda: True)
    assert ("" if told is None else told.text) == flaw.replace("it", "checkpoint-1/__2_0.distcp", 1)


class MeddlingStore(FileStore):
    """Somebody does something before and after each file that it stores."""

    before: Callable[[], None]
    after: Callable[[], None]

    def upload(self, key: str, source: Any) -> tuple[str, int]:
        self.before()
        done = super().upload(key, source)
        self.after()
        return done


def nothing() -> None:
    return


def stored(
    tmp_path: Path, files: Signature, before: Callable[[], None] = nothing, after: Callable[[], None] = nothing
) -> None:
    store = MeddlingStore(f"file://{tmp_path}/store")
    store.before, store.after = before, after
    checkpoints = CheckpointStore(store, "")
    name = checkpoints.new_save(checkpoints.claim("test"), 1)
    store_part(checkpoints.part(name, 0), tmp_path / "out", files)


def test_half_of_a_distributed_checkpoint_is_none(tmp_path: Path) -> None:
    """Two nodes, each with a disk of its own; here lies what rank 0 wrote, and the list of all."""
    metadata = pickle.dumps({name: _Storage(relative_path=name) for name in ("__0_0.distcp", "__1_0.distcp")})
    write(tmp_path / "checkpoint-1/__0_0.distcp", "x")
    (tmp_path / "checkpoint-1/.metadata").write_bytes(metadata)
    time.sleep(0.25)
    told = flaw_of(tmp_path, look(tmp_path))
    assert told.startswith("checkpoint-1/.metadata names __1_0.distcp, which is not here")
    assert 'checkpoint.writers = "every"' in told
    assert flaw_of(tmp_path, look(tmp_path), checkpoint_writers="every") == ""
    write(tmp_path / "checkpoint-1/__1_0.distcp", "x")
    assert flaw_of(tmp_path, look(tmp_path)) == ""


@dataclass
class _Storage:
    """As torch.distributed.checkpoint.filesystem has it."""

    relative_path: str


def test_files_that_change_while_they_are_copied(tmp_path: Path) -> None:
    first, second = tmp_path / "out/a", tmp_path / "out/b"
    for path in (first, second):
        write(path, "old")
    files = signature(tmp_path / "out", ())
    stored(tmp_path, files)
    with pytest.raises(FilesChanged, match="a: changed during the copy"):
        stored(tmp_path, files, after=lambda: write(first, "new"))
    files = signature(tmp_path / "out", ())
    with pytest.raises(FilesChanged, match="a: changed during the copy"):
        stored(tmp_path, files, after=lambda: first.unlink(missing_ok=True))


def test_a_file_that_goes_before_its_copy_is_no_fault_of_the_store(tmp_path: Path) -> None:
    """A script that removes its older files; on one of several nodes the whole save was given up for it."""
    path = tmp_path / "out/a"
    write(path, "x")
    files = signature(tmp_path / "out", ())
    with pytest.raises(FilesChanged, match="a: has gone"):
        stored(tmp_path, files, before=path.unlink)
    write(path, "x")
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "store").touch()
    with pytest.raises(StoreError):
        store_part(CheckpointStore(FileStore(f"file://{tmp_path}/store"), "").part("a", 0), tmp_path / "out", files)


def test_a_file_that_was_longer_only_while_it_was_copied(tmp_path: Path) -> None:
    """Where the times of a file system are coarse nothing else tells."""
    path = tmp_path / "out/a"
    write(path, "judged")
    moment = path.stat().st_mtime_ns

    def back() -> None:
        path.write_text("judged")
        os.utime(path, ns=(moment, moment))

    files = signature(tmp_path / "out", ())
    with pytest.raises(FilesChanged, match="a: 6 bytes, then 13"):
        stored(tmp_path, files, before=lambda: write(path, "and much more"), after=back)
    assert signature(tmp_path / "out", ()) == files


def test_files_that_are_not_those_that_were_judged(tmp_path: Path) -> None:
    path = tmp_path / "out/a"
    write(path, "judged")
    files = signature(tmp_path / "out", ())
    write(path, "again!")
    with pytest.raises(FilesChanged, match="a: changed during the copy"):
        stored(tmp_path, files)


def test_a_file_that_was_modified_within_a_tick_of_the_clock(tmp_path: Path) -> None:
    """Its time would not tell of another write."""
    path, said = tmp_path / "out/a", ""
    checkpoints = CheckpointStore(FileStore(f"file://{tmp_path}/store"), "")
    claim = checkpoints.claim("test")
    for _ in range(20):  # a busy machine may take longer than the file may be young
        part = checkpoints.part(checkpoints.new_save(claim, 1), 0)
        write(path, "x", age=0.0)
        try:
            store_part(part, tmp_path / "out", signature(tmp_path / "out", ()))
        except FilesChanged as error:
            said = str(error)
            break
    assert "a: has just been modified" in said


def test_a_latest_that_is_written_anew_after_the_judgement(tmp_path: Path) -> None:
    """The next save has just emptied it: without it this unit could not be gone on from, so nothing is committed."""
    folder = tmp_path / "out"
    write(folder / "global_step10/a", "x")
    write(folder / "latest", "global_step10")
    found = look(folder)
    assert flaw_of(folder, found) == ""
    args = LaunchArgs(store_uri="file:///none", name="run", checkpoint_mode="opaque", checkpoint_path="out")
    with (folder / "latest").open("w"):
        beside = Completeness(args, folder, [0]).beside(found, found.units[-1])
        with pytest.raises(FilesChanged):
            stored(tmp_path, {**found.units[-1].files, **beside})


@pytest.mark.parametrize(
    ("said", "flaw"),
    [
        ('{"file": "step_20.pt", "loss": 3.5}', ""),
        ('{"path": "out/step_20.pt", "epoch": 1}', ""),
        ('{"file": "step_10.pt"}', "latest.json names another"),
        ('{"file": "step_15.pt"}', "latest.json names another"),
        ('{"step": 20}', ""),
        ('{"step": 10}', "latest.json names another"),
        ('{"best_loss": 0.25, "lr": 3}', ""),
        ('"step_20.pt"', ""),
    ],
)
def test_a_latest_in_json(said: str, flaw: str, tmp_path: Path) -> None:
    """It names a file among other words, as a script of one's own writes it down."""
    for step in (10, 20):
        write(tmp_path / f"step_{step}.pt", "{}")
    write(tmp_path / "latest.json", said)
    args = {"checkpoint_include": ("step_*.pt", "latest.json"), "checkpoint_unit": ("step_*.pt",)}
    found = contents(tmp_path, LaunchArgs(store_uri="file:///none", name="run", **args))
    assert flaw_of(tmp_path, found, **args).replace("step_20.pt is cut off or empty", "") == flaw
