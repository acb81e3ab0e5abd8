"""The rows of a staging: chunks and journals of several shares read as one, by key, and believed where they may be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.steps.data.records import FileRecord, key_of, record_of
from argosy.steps.data.rows import Rows, keep_only, known_rows, rows_of

NOW, BEFORE = "this boot", "an earlier boot"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path, os.O_RDONLY)
    yield handle
    os.close(handle)


def line(key: str, size: int = 1) -> bytes:
    return FileRecord(key, size, 7, 0xAB, '"e tag"', "", "sha256:00").line()


def keys(rows: Iterator[object]) -> list[str]:
    return [key_of(row.line).decode() for row in rows]  # type: ignore[attr-defined]


def test_records_come_back_and_torn_ones_do_not() -> None:
    record = FileRecord("d/é b", 1 << 40, -5, (1 << 64) - 1, '"x-3"', "v\u00fc", "crc32c:AAAAAA==")
    assert record_of(record.line()) == record
    whole = record.line()
    assert [record_of(whole[:end]) for end in range(len(whole))] == [None] * len(whole)
    assert record_of(b"\xff\t1\t2\t3\t\t\t\n") is None


def test_chunks_and_journals_of_two_shares_are_one_sequence_by_key(state: int) -> None:
    with Rows(state, "a" * 64, NOW) as rows:
        rows.finish(0, [line("a"), line("a-b"), line("a/c")])
        rows.note(1, [line("n"), line("m", 1)])
        rows.note(1, [line("m", 2)])
    with Rows(state, "b" * 64, BEFORE) as rows:
        rows.note(0, [line("c"), line("a")])
    rows_by_key = list(known_rows(state, NOW, ""))
    assert keys(iter(rows_by_key)) == ["a", "a", "a-b", "a/c", "c", "m", "m", "n"]
    assert [row.unsure for row in rows_by_key] == [False, True, False, False, True, False, False, False]
    assert not any(row.unsure for row in known_rows(state, NOW, "b" * 64)), "the marker says that all of it was synced"


def test_a_finished_chunk_has_the_last_row_of_each_key(state: int, tmp_path: Path) -> None:
    with Rows(state, "a" * 64, NOW) as rows:
        rows.note(0, [line("z"), line("m", 1)])
        rows.note(0, [line("m", 2)])
        rows.finish(0)
        rows.note(1, [line("zz")])
        rows.finish(1)
    assert [row.line for row in rows_of(state, "a" * 64)] == [line("m", 2), line("z"), line("zz")]
    assert sorted(path.name for path in tmp_path.glob("records/*/*")) == ["00000", "00001"]


def test_a_chunk_begun_anew_knows_only_what_it_is_told(state: int) -> None:
    with Rows(state, "a" * 64, NOW) as rows:
        rows.finish(0, [line("gone"), line("kept")])
        rows.begin(0, [line("kept")])
        rows.note(0, [line("new")])
    assert keys(known_rows(state, NOW, "")) == ["kept", "new"]


def test_other_shares_and_journals_are_removed(state: int, tmp_path: Path) -> None:
    for share in "ab":
        with Rows(state, share * 64, NOW) as rows:
            rows.finish(0, [line(share)])
            rows.note(1, [line(share)])
    keep_only(state, "a" * 64)
    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("records/**/*")]
    assert found == [f"records/{'a' * 16}", f"records/{'a' * 16}/00000"]


def test_garbage_in_a_journal_hides_no_other_row(state: int, tmp_path: Path) -> None:
    with Rows(state, "a" * 64, NOW) as rows:
        rows.note(0, [line("a"), line("b"), line("c")])
    (journal,) = tmp_path.glob("records/*/*.open")
    journal.write_bytes(journal.read_bytes().replace(line("b"), b"\0" * 40 + b"\n\xff\xfe\n") + b"torn\t1")
    found = [record_of(row.line) for row in known_rows(state, NOW, "")]
    assert [record.key for record in found if record is not None] == ["a", "c"]
