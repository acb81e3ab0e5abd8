"""The dataset: the same bytes each time, nothing on both sides, nothing lost."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "stdlib-gpt"


def prepare(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE / "prepare.py"), "--out", f"file://{out}", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=out.parent)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def files_of(objects: dict[str, bytes], side: str) -> list[bytes]:
    joined = b"".join(data for key, data in sorted(objects.items()) if key.startswith(f"{side}/"))
    assert joined.endswith(b"\0")
    return joined[:-1].split(b"\0")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("dataset") / "first"
    done = prepare(out)
    assert done.returncode == 0, done.stderr
    return contents(out)


def test_eight_train_shards_of_one_size_and_a_marker(dataset: dict[str, bytes]) -> None:
    sizes = [len(data) for key, data in dataset.items() if key.startswith("train/") and key.endswith(".bin")]
    assert len(sizes) >= 8
    assert max(sizes) - min(sizes) < 0.01 * max(sizes)
    assert dataset["train/_SUCCESS"] == b""


def test_no_file_is_on_both_sides_or_twice(dataset: dict[str, bytes]) -> None:
    train, held_out = files_of(dataset, "train"), files_of(dataset, "heldout")
    assert held_out
    assert not set(train) & set(held_out)
    assert len(set(train)) == len(train)


def test_the_text_is_that_of_the_library(dataset: dict[str, bytes]) -> None:
    everything = {*files_of(dataset, "train"), *files_of(dataset, "heldout")}
    library = Path(sysconfig.get_path("stdlib"))
    for name in ("argparse.py", "asyncio/events.py", "json/decoder.py"):
        assert (library / name).read_bytes() in everything


def test_again_elsewhere_gives_the_same_bytes(dataset: dict[str, bytes], tmp_path: Path) -> None:
    assert prepare(tmp_path / "second").returncode == 0
    assert contents(tmp_path / "second") == dataset


def test_a_second_run_writes_nothing_and_mends_what_was_damaged(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "10 of 10 objects written" in prepare(out, "--limit-mb", "1").stdout
    before = contents(out)
    assert "0 of 10 objects written" in prepare(out, "--limit-mb", "1").stdout
    shard = out / "train" / "train-00003.bin"
    shard.write_bytes(shard.read_bytes()[:-1] + b"X")
    assert "1 of 10 objects written" in prepare(out, "--limit-mb", "1").stdout
    assert contents(out) == before


def test_the_limit_holds(tmp_path: Path) -> None:
    assert prepare(tmp_path / "small", "--limit-mb", "1").returncode == 0
    assert 500_000 < sum(len(data) for data in contents(tmp_path / "small").values()) <= 1_000_000


def test_into_the_volume_that_the_local_engine_mounts(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE / "prepare.py"), "--limit-mb", "1"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    assert len(contents(tmp_path / ".argosy/volumes/argosy/datasets/stdlib-gpt")) == 10


@pytest.mark.parametrize("uri", ["ftp://there", "relative/path", "file://host/path"])
def test_a_wrong_uri_is_one_line(uri: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE / "prepare.py"), "--out", uri]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert uri in done.stderr
