"""Keys are input from whoever can write to the bucket: none may leave the folder, none may hide another."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.steps.contract.errors import InputError
from argosy.steps.data.keys import check_key, check_keys
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.staging import stage_objects

HOSTILE = [
    "", "/etc/passwd", "../x", "a/../../x", "a/..", "..", ".", "./a", "a/./b", "a//b", "a/", "/", "//x",
    "a\\..\\b", "a\0b", "a\nb", "a\x1b[2J", "a\x7f", "a\u2028b", "\ud800", "x" * 256, "d/" * 600 + "x",
    ".argosy-stage/complete.jsonl", ".argosy-stage", ".ARGOSY-STAGE/lock", "\x85",
]  # fmt: skip


@pytest.mark.parametrize("key", HOSTILE)
def test_hostile_key_is_refused_by_name(key: str) -> None:
    with pytest.raises(InputError, match="object key") as caught:
        check_key(key)
    assert ascii(key)[1:30].replace("\\", "")[:10] in ascii(str(caught.value)).replace("\\", "")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a", "a"), ("Train/a", "train/A"), ("é", "e\u0301"), ("a", "a/b"), ("a/b/c", "a/b"), ("STRASSE", "straße"),
        ("A", "a/b"), ("ſ", "s"), ("x/É", "X/e\u0301"), ("K", "k"),
    ],
)  # fmt: skip
def test_keys_that_would_meet_on_disk_are_refused(first: str, second: str) -> None:
    for pair in ([first, second], [second, first]):
        with pytest.raises(InputError, match="object key"):
            check_keys(pair)


def test_ordinary_keys_pass() -> None:
    keys = ["a", "a.b/c", "a b/ü/日本.bin", "train/.hidden", "x=1/y=2/part-0.parquet", "a..b", "...", "c$(x)", "{{d}}"]
    check_keys(keys)


segments = st.one_of(
    st.sampled_from(["..", ".", "", "a", "A", "b", "é", "e\u0301", "\\", "\0", "etc", "x y", "a\nb", ".argosy-stage"]),
    st.text(max_size=6),
)
hostile_keys = st.lists(st.lists(segments, min_size=1, max_size=4).map("/".join), min_size=1, max_size=4)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(hostile_keys)
def test_no_key_writes_outside_the_folder(keys: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        outer = Path(name)
        (outer / "source").mkdir()
        (outer / "in").mkdir()
        objects = tuple(DataObject(key, 1) for key in keys)
        sound = _write_sources(outer / "source", keys)
        before = {path: path.lstat().st_mtime_ns for path in outer.rglob("*") if not path.is_relative_to(outer / "in")}
        # Built by hand: a manifest that was tampered with, or written by something else.
        manifest = DatasetManifest(f"file://{outer}/source", (), lambda _: b"")
        into = outer / "in" / "data"
        if sound:
            stage_objects(manifest, objects, into)
            assert all((into / key).read_bytes() == b"x" for key in keys)
        else:
            with pytest.raises(InputError, match="object key"):
                stage_objects(manifest, objects, into)
            assert not into.exists(), "refused before the first byte"
        after = {path: path.lstat().st_mtime_ns for path in outer.rglob("*") if not path.is_relative_to(outer / "in")}
        assert before == after


def _write_sources(folder: Path, keys: list[str]) -> bool:
    """Write the keys that the rules allow; whether they all are."""
    try:
        check_keys(keys)
    except InputError:
        return False
    for key in keys:
        path = folder / key
        assert os.path.normpath(path) == str(path)
        assert path.is_relative_to(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return True


def test_a_snapshot_of_hostile_files_names_the_key(tmp_path: Path) -> None:
    (tmp_path / "a\\b").write_bytes(b"x")
    with pytest.raises(InputError, match="backslash") as caught:
        take_snapshot(f"file://{tmp_path}")
    assert repr("a\\b") in str(caught.value)
