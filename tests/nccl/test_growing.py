"""A file that somebody else is writing."""

from __future__ import annotations

import os
from pathlib import Path

from argosy.steps.nccl import growing
from argosy.steps.nccl.growing import GrowingFile


def test_only_whole_lines_come_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "nccl.log"
    file = GrowingFile(path)
    assert file.read() == ([], False)
    with path.open("ab", buffering=0) as writer:
        writer.write(b"one\ntw")
        assert file.read() == (["one"], False)
        writer.write(b"o\nthree\n")
        assert file.read() == (["two", "three"], False)
    assert file.read() == ([], False)


def test_a_file_begun_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    """A rank's log that was rotated, and NCCL's of a process that got the same name."""
    path = tmp_path / "rank-0.log"
    path.write_bytes(b"old line\nhalf")
    file = GrowingFile(path)
    file.read()
    path.replace(tmp_path / "rank-0.log.1")
    path.write_bytes(b"new\n")
    assert file.read() == (["new"], False)
    path.write_bytes(b"x\n")
    assert file.read() == (["x"], False)


def test_a_big_file_is_read_in_portions_and_a_line_without_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"x" * (growing.READ_BYTES + 10) + b"\nlast\n")
    file = GrowingFile(path)
    first, more = file.read()
    assert more
    assert [len(line) for line in first] == [growing.LINE_BYTES]
    assert file.read()[0][-1] == "last"


def test_the_disk_is_given_back_while_the_writer_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "nccl.log"
    file = GrowingFile(path)
    with path.open("wb", buffering=0) as writer:
        writer.write(b"line\n" * 200_000)
        while file.read()[1]:
            pass
        before = path.stat().st_blocks
        file.keep_small(1 << 16)
        assert path.stat().st_blocks < before // 8
        assert file.read() == ([], False)
        writer.write(b"after\n")
        os.fsync(writer.fileno())
        assert file.read() == (["after"], False)
        assert path.stat().st_blocks < before // 8


def test_bytes_that_are_no_text_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\xff\xfe\x00\nplain\r\n")
    assert GrowingFile(path).read()[0][1] == "plain"
