"""Staging as files show it: whole or marked as not whole, right bytes or none, nothing left over."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from awscrt.checksums import crc64nvme

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.data import fetching, survey
from argosy.steps.data.cache.content import Content
from argosy.steps.data.folder import marker_of, records_of
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.plan import node_share
from argosy.steps.data.staging import StageProgress, stage_objects

Dataset = Callable[..., DatasetManifest]
Tree = Callable[[Path], dict[str, bytes]]


def content(count: int, seed: int = 0, most: int = 3000) -> dict[str, bytes]:
    draw = random.Random(seed)
    return {f"d{i % 5}/é{i:03d}.bin": draw.randbytes(draw.randrange(most)) for i in range(count)}


def state_of(folder: Path) -> list[str]:
    """What staging keeps beside the data; digests of shares as ``*``."""
    state = folder / ".argosy-stage"
    names = [path.relative_to(state).parts for path in state.rglob("*") if path.is_file()]
    return sorted("/".join(("records", "*", *name[2:]) if name[0] == "records" else name) for name in names)


WHOLE = ["complete.json", "lock", "records/*/00000"]
"""What is left when all is done: nothing in flight, no journal."""


def test_bytes_arrive_and_nothing_is_left_over(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    files = content(80)
    manifest, told = dataset(files), list[StageProgress]()
    done = stage_objects(manifest, manifest, tmp_path / "in", on_progress=told.append)
    assert tree(tmp_path / "in") == files
    assert done.bytes == done.fetched_bytes == sum(map(len, files.values()))
    assert state_of(tmp_path / "in") == WHOLE
    assert (told[-1].objects, told[-1].bytes, told[-1].bytes_total) == (80, done.bytes, done.bytes)
    assert told[-1].fetched_bytes == done.bytes
    Content(manifest, manifest, "stat").check(tmp_path / "in")


def test_each_file_has_our_own_checksum_on_record(dataset: Dataset, tmp_path: Path) -> None:
    files = content(5)
    manifest = dataset(files)
    stage_objects(manifest, manifest, tmp_path / "in")
    marker = marker_of(tmp_path / "in")
    assert marker is not None
    assert (marker.dataset_digest, marker.objects) == (manifest.digest, 5)
    assert {record.key: record.crc64nvme for record in records_of(tmp_path / "in")} == {
        key: crc64nvme(data) for key, data in files.items()
    }


def test_staged_again_nothing_is_fetched(dataset: Dataset, tmp_path: Path) -> None:
    manifest = dataset(content(30))
    stage_objects(manifest, manifest, tmp_path / "in")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "in").rglob("*")}
    (tmp_path / "source").rename(tmp_path / "gone")
    assert stage_objects(manifest, manifest, tmp_path / "in", verify="full").fetched_bytes == 0
    after = {path: path.stat().st_mtime_ns for path in before}
    assert {path for path in before if before[path] != after[path]} <= {tmp_path / "in/.argosy-stage/parts"}


@pytest.mark.parametrize("damage", ["truncate", "remove", "replace", "flip", "link"])
def test_damage_is_found_and_mended(damage: str, dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    files = content(20, most=2000) | {"victim": b"v" * 1000}
    manifest = dataset(files)
    stage_objects(manifest, manifest, tmp_path / "in")
    victim = tmp_path / "in" / "victim"
    facts = victim.stat()
    if damage == "truncate":
        os.truncate(victim, 10)
    elif damage == "replace":
        victim.write_bytes(b"w" * 1000)
    elif damage == "flip":  # same size, same mtime: only reading it can tell
        victim.write_bytes(b"v" * 999 + b"w")
        os.utime(victim, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    else:
        victim.unlink()
    if damage == "link":
        (tmp_path / "outside").write_bytes(b"v" * 1000)
        victim.symlink_to(tmp_path / "outside")
    depth = "full" if damage == "flip" else "stat"
    assert stage_objects(manifest, manifest, tmp_path / "in", verify=depth).fetched_bytes == 1000
    assert tree(tmp_path / "in") == files
    assert not victim.is_symlink()


def test_what_the_script_wrote_beside_the_data_stays(dataset: Dataset, tmp_path: Path) -> None:
    manifest = dataset(content(5))
    stage_objects(manifest, manifest, tmp_path / "in")
    (tmp_path / "in" / "index.cache").write_bytes(b"mine")
    stage_objects(manifest, manifest, tmp_path / "in")
    assert (tmp_path / "in" / "index.cache").read_bytes() == b"mine"


def test_another_share_replaces_this_one_and_keeps_what_both_have(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    files = content(60)
    manifest = dataset(files)
    for rank, nnodes in [(0, 2), (0, 3), (2, 3), (1, 2)]:
        share = node_share(manifest, "sharded", rank, nnodes)
        held = tree(tmp_path / "in") if (tmp_path / "in").exists() else {}
        done = stage_objects(manifest, share, tmp_path / "in")
        assert tree(tmp_path / "in") == {one.key: files[one.key] for one in share}
        assert done.fetched_bytes == sum(one.size for one in share if one.key not in held)
    assert not [path for path in (tmp_path / "in").rglob("*") if path.is_dir() and not any(path.iterdir())][1:]


def test_a_new_dataset_with_file_and_folder_exchanged(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    first = dataset({"a": b"file", "b/c/d": b"deep", "same": b"same"})
    second = dataset({"a/x": b"now deep", "b": b"now file", "same": b"other"}, name="second")
    stage_objects(first, first, tmp_path / "in")
    stage_objects(second, second, tmp_path / "in")
    assert tree(tmp_path / "in") == {"a/x": b"now deep", "b": b"now file", "same": b"other"}
    assert Content(second, second, "stat").is_whole(tmp_path / "in")
    assert not Content(first, first, "stat").is_whole(tmp_path / "in")


def test_somebody_elses_folder_is_left_alone(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "thesis.tex").write_bytes(b"precious")
    manifest = dataset(content(3))
    with pytest.raises(InputError, match=r"thesis\.tex"):
        stage_objects(manifest, manifest, tmp_path / "in")
    assert tree(tmp_path / "in") == {"thesis.tex": b"precious"}


def test_an_object_that_changed_since_the_snapshot_is_not_published(
    dataset: Dataset, tree: Tree, tmp_path: Path
) -> None:
    manifest = dataset(content(10) | {"moving": b"old"})
    (tmp_path / "source" / "moving").write_bytes(b"new")
    with pytest.raises(StepError, match="dataset changed") as caught:
        stage_objects(manifest, manifest, tmp_path / "in")
    assert caught.value.cause == "s3_missing"
    assert "moving" not in tree(tmp_path / "in")
    assert state_of(tmp_path / "in") == ["lock", "records/*/00000.open"], "no marker, nothing in flight"


@pytest.mark.parametrize("wrong", [{"size": 999}, {"checksum": "sha256:" + "0" * 64}])
def test_wrong_bytes_are_not_published(wrong: dict[str, object], dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    one = next(iter(dataset({"a": b"12345"})))
    lie = DataObject(**({"key": "a", "size": 5, "etag": one.etag} | wrong))  # type: ignore[arg-type]
    manifest = DatasetManifest.of(f"file://{tmp_path}/source", [lie])
    with pytest.raises(StepError, match="object 'a'") as caught:
        stage_objects(manifest, manifest, tmp_path / "in")
    assert caught.value.code == 70
    assert tree(tmp_path / "in") == {}


@pytest.mark.timeout(60)
def test_wrong_bytes_in_many_chunks_hold_up_nobody(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came wrong is asked for again, though as many chunks are unfinished as may be."""
    for module in (fetching, survey):
        monkeypatch.setattr(module, "CHUNK", 1)
    whole = dataset({f"{number:02d}": b"%d" % number for number in range(20)})
    wrong = [DataObject(one.key, one.size, one.etag, checksum="sha256:" + "0" * 64) for one in whole]
    manifest = DatasetManifest.of(whole.uri, wrong)
    with pytest.raises(StepError, match="came twice"):
        stage_objects(manifest, manifest, tmp_path / "in")


def test_a_disk_too_small_is_known_before_the_first_byte(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    dataset({"small": b"1"})
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    large = DataObject("large", int(free / 1.1))  # it would fit, but without the margin
    manifest = DatasetManifest.of(f"file://{tmp_path}/source", [DataObject("small", 1), large])
    with pytest.raises(StepError, match="bytes free, staging needs") as caught:
        stage_objects(manifest, manifest, tmp_path / "in")
    assert (caught.value.cause, caught.value.code) == ("disk_full", ExitCode.CONFIGURATION)
    assert tree(tmp_path / "in") == {}


@pytest.mark.parametrize("trap", ["d0", "d0/deeper"])
def test_a_folder_that_became_a_link_leads_nowhere(trap: str, dataset: Dataset, tmp_path: Path) -> None:
    files = {"d0/deeper/one": b"1", "d0/two": b"2"}
    manifest = dataset(files)
    stage_objects(manifest, manifest, tmp_path / "in")
    outside = tmp_path / "outside"
    (outside / "deeper").mkdir(parents=True)
    subprocess.run(["rm", "-r", tmp_path / "in" / trap], check=True)
    (tmp_path / "in" / trap).symlink_to(outside)
    with pytest.raises(StepError, match="cannot publish"):
        stage_objects(manifest, manifest, tmp_path / "in")
    assert [path for path in outside.rglob("*") if path.is_file()] == []


def test_links_that_appear_while_it_stages_lead_nowhere(dataset: Dataset, tmp_path: Path, seed: int) -> None:
    """Somebody exchanges folders for links all the while: each round ends well, or is refused; nothing leaves."""
    manifest = dataset({f"d{i // 50}/deep/f{i:03d}": b"x" * 100 for i in range(300)})
    into, outside, draw = tmp_path / "in", tmp_path / "outside", random.Random(seed)
    (outside / "deep").mkdir(parents=True)
    done = threading.Event()

    def exchange() -> None:
        while not done.is_set():
            folder = into / f"d{draw.randrange(6)}"
            victim, target = draw.choice([(folder, outside), (folder / "deep", outside / "deep")])
            with contextlib.suppress(OSError):
                if not folder.is_symlink():
                    victim.rename(into / f"moved-{draw.random()}")
                    victim.symlink_to(target)

    attacker = threading.Thread(target=exchange)
    attacker.start()
    try:
        for _ in range(4):
            with contextlib.suppress(StepError):
                stage_objects(manifest, manifest, into)
    finally:
        done.set()
        attacker.join()
    assert [path for path in outside.rglob("*") if not path.is_dir()] == []
    for link in [path for path in into.rglob("*") if path.is_symlink()]:
        link.unlink()
    stage_objects(manifest, manifest, into)
    assert all((into / one.key).read_bytes() == b"x" * 100 for one in manifest)


def test_a_folder_that_is_whole_need_not_be_looked_at(dataset: Dataset, tmp_path: Path) -> None:
    manifest = dataset({"a": b"1", "b": b"2"})
    stage_objects(manifest, manifest, tmp_path / "in")
    (tmp_path / "in" / "a").write_bytes(b"damaged")
    assert stage_objects(manifest, manifest, tmp_path / "in", verify="none").fetched_objects == 0
    assert stage_objects(manifest, manifest, tmp_path / "in").fetched_objects == 1
    with pytest.raises(InputError, match="none, stat, full"):
        stage_objects(manifest, manifest, tmp_path / "in", verify="deep")  # type: ignore[arg-type]


def test_state_folder_that_is_a_link_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    manifest = dataset({"a": b"1"})
    (tmp_path / "in").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "in" / ".argosy-stage").symlink_to(tmp_path / "outside")
    with pytest.raises(StepError, match="cannot stage"):
        stage_objects(manifest, manifest, tmp_path / "in")
    assert list((tmp_path / "outside").iterdir()) == []


PROGRAM = """
import sys; from pathlib import Path
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.data.staging import stage_objects
manifest = DatasetManifest.from_bytes(Path(sys.argv[1]).read_bytes())
print("begin", flush=True)
print("fetched", stage_objects(manifest, manifest, Path(sys.argv[2]), workers=2).fetched_bytes)
"""


def test_killed_at_any_moment_it_resumes_with_what_was_published(
    dataset: Dataset, tree: Tree, tmp_path: Path, seed: int
) -> None:
    files = content(
        900, seed, most=40_000
    )  # far more than the last kill waits for, should this process be kept waiting
    manifest = dataset(files)
    (tmp_path / "manifest").write_bytes(manifest.to_bytes())
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "manifest"), str(tmp_path / "in")]
    state, held = tmp_path / "in" / ".argosy-stage", 0

    def published() -> list[bytes]:
        journals = list(state.glob("records/*/00000.open"))
        return [line for line in journals[0].read_bytes().splitlines() if line[:1] != b"\t"] if journals else []

    for threshold in sorted(random.Random(seed).sample(range(1, 280), 6)):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
            while child.poll() is None and len(published()) <= threshold:
                pass
            child.kill()
        assert child.returncode == -9, "the kill came before the end"
        assert not (state / "complete.json").exists(), "a folder that is not whole has no marker"
        assert all(files[key] == data for key, data in tree(tmp_path / "in").items()), "no file is ever half there"
        held = sum({row[0]: int(row[1]) for line in published() if (row := line.split(b"\t"))}.values())
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(told[-1]) == manifest.total_bytes - held, "only what was missing is fetched"
    assert held > 0
    assert tree(tmp_path / "in") == files
    assert state_of(tmp_path / "in") == WHOLE


def test_stagers_of_one_folder_wait_for_each_other(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    files = content(200, most=20_000)
    manifest = dataset(files)
    (tmp_path / "manifest").write_bytes(manifest.to_bytes())
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "manifest"), str(tmp_path / "in")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    fetched = [int(child.communicate(timeout=60)[0].split()[-1]) for child in started]
    assert [child.returncode for child in started] == [0, 0, 0]
    assert sorted(fetched) == [0, 0, manifest.total_bytes], "one fetches, the others find it whole"
    assert tree(tmp_path / "in") == files


@pytest.mark.parametrize("marker", [b"", b"{}\n", b'{"format":"argosy-staged-9"}\n', b"\xff\xfe", b"[1]\n[2]\n"])
def test_a_damaged_marker_is_no_marker(marker: bytes, dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    files = content(5)
    manifest = dataset(files)
    stage_objects(manifest, manifest, tmp_path / "in")
    (tmp_path / "in/.argosy-stage/complete.json").write_bytes(marker)
    with pytest.raises(StepError, match="no finished staging"):
        Content(manifest, manifest, "stat").check(tmp_path / "in")
    assert marker_of(tmp_path / "in") is None
    assert stage_objects(manifest, manifest, tmp_path / "in").fetched_bytes == 0, "the records say what is there"
    Content(manifest, manifest, "stat").check(tmp_path / "in")
    assert tree(tmp_path / "in") == files
