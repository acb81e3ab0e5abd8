"""Keys are input from whoever can write to the bucket: none may leave the folder, none may hide another."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.steps.contract.errors import InputError
from argosy.steps.data import sorting, spool
from argosy.steps.data.building import build_manifest
from argosy.steps.data.keys import broken_rule, check_key, check_keys
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


def reference_rule(key: str) -> bool:
    """Whether a key alone may be a path, letter by letter as the rules are written down."""
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return False
    segments = key.split("/")
    return (
        0 < size <= 1024
        and "\\" not in key
        and not any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in key)
        and not any(segment in ("", ".", "..") or len(segment.encode()) > 255 for segment in segments)
        and segments[0].casefold() != ".argosy-stage"
    )


def reference_meets(keys: list[str]) -> bool:
    """Whether two of the keys would meet on a disk that ignores case and Unicode form; with everything in memory."""

    def fold(key: str) -> str:
        return unicodedata.normalize("NFC", unicodedata.normalize("NFC", key).casefold())

    names = [fold(key) for key in keys]
    folders = {"/".join(name.split("/")[:depth]) for name in names for depth in range(1, name.count("/") + 1)}
    return len(set(names)) < len(names) or bool(folders & set(names))


letters = st.one_of(st.characters(), st.sampled_from("/.\\aA- éÉſßK\0\n\x7f\x85\u2028~!"))


@settings(max_examples=400)
@given(st.one_of(st.text(letters, max_size=12), st.text(st.sampled_from("a/é.日"), min_size=240, max_size=1100)))
def test_the_fast_path_agrees_with_the_rules(key: str) -> None:
    assert (broken_rule(key) == "") == reference_rule(key)


@settings(max_examples=400)
@given(st.lists(st.text(st.sampled_from("abA/-.éÉe\u0301ſß"), min_size=1, max_size=5), max_size=12), st.integers(1, 5))
def test_meetings_are_exact_also_when_sorted_on_disk(drawn: list[str], lines: int) -> None:
    keys = [key for key in drawn if not broken_rule(key)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorting, "LINES", lines)
        patched.setattr(spool, "MEMORY", 0)
        try:
            check_keys(keys)
            found = False
        except InputError:
            found = True
        assert found == reference_meets(keys)
        try:
            built = [one.key for one in build_manifest("s3://b/p", [DataObject(key, 1) for key in keys])]
        except InputError:
            assert reference_meets(keys)
        else:
            assert not reference_meets(keys)
            assert built == sorted(keys)


def test_each_offender_is_named_once() -> None:
    with pytest.raises(InputError) as caught:
        check_keys(["a", *(f"a/{i}" for i in range(50)), "b\\c", "b", "B"])
    text = str(caught.value)
    assert "and 2 more" in text
    assert text.count("'a'") == 1
    with pytest.raises(InputError, match=r"and 99 more: .*, \.\.\.\)"):
        check_keys(f"{i}\\" for i in range(100))


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=3).map(lambda line: line.replace(b"\n", b"")), max_size=300), st.integers(1, 40))
def test_lines_sorted_on_disk_are_sorted(lines: list[bytes], room: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorting, "LINES", room)
        patched.setattr(spool, "MEMORY", 64)
        assert list(sorting.sorted_lines(iter(lines))) == sorted(lines)


def test_ordinary_keys_pass() -> None:
    keys = ["a", "a.b/c", "a b/ü/日本.bin", "train/.hidden", "x=1/y=2/part-0.parquet", "a..b", "...", "c$(x)", "{{d}}"]
    check_keys(keys)


segments = st.one_of(
    st.sampled_from(["..", ".", "", "a", "A", "b", "é", "e\u0301", "\\", "\0", "etc", "x y", "a\nb", ".argosy-stage"]),
    st.text(max_size=6),
)
hostile_keys = st.lists(st.lists(segments, min_size=1, max_size=4).map("/".join), min_size=1, max_size=4)


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
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
