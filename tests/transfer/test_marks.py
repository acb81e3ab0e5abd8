"""The map of a part: what it says is believed only where the bytes agree, and what it leaves out is asked for once."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.steps.transfer.crc import OWN, crc
from argosy.steps.transfer.marks import SUFFIX, Mark, gaps, open_map, verified, write_map, write_mark

SIZE = 1000
DATA = random.Random(5).randbytes(SIZE)
spans = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE))
slots = st.lists(st.tuples(spans, st.sampled_from(["right", "right", "wrong", "beyond"])), max_size=12)


def mark_of(span: tuple[int, int], kind: str) -> Mark:
    start, length = span[0], min(span[1], SIZE - span[0])
    if kind == "beyond":
        return Mark(start, SIZE - start + 1 + length, crc(OWN, DATA[start:]))
    return Mark(start, length, crc(OWN, DATA[start : start + length]) ^ (kind == "wrong"))


@settings(max_examples=150)
@given(slots, st.integers(1, 400))
def test_what_is_kept_is_right_and_with_the_gaps_it_is_the_whole(
    said: list[tuple[tuple[int, int], str]], most: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "part").write_bytes(DATA)
        parts = os.open(name, os.O_RDONLY)
        try:
            handle = open_map(parts, "part")
            for slot, (span, kind) in enumerate(said):
                write_mark(handle, slot, mark_of(span, kind))
            os.close(handle)
            kept = verified(parts, "part", SIZE)
        finally:
            os.close(parts)
    assert all(crc(OWN, DATA[mark.start : mark.start + mark.length]) == mark.crc for mark in kept)
    missing = list(gaps(kept, SIZE, most))
    assert all(0 < length <= most for _, length in missing)
    tiles = sorted([(mark.start, mark.length) for mark in kept] + missing)
    assert [start for start, _ in tiles] == [0, *(start + length for start, length in tiles)][:-1]
    assert sum(length for _, length in tiles) == SIZE


def test_no_part_no_map_or_a_torn_one(tmp_path: Path) -> None:
    parts = os.open(tmp_path, os.O_RDONLY)
    whole = Mark(0, SIZE, crc(OWN, DATA))
    write_map(parts, "part", [whole])
    assert verified(parts, "part", SIZE) == [], "no part"
    (tmp_path / "part").write_bytes(DATA)
    assert verified(parts, "part", SIZE) == [whole]
    assert verified(parts, "other", SIZE) == [], "no map"
    path = tmp_path / f"part{SUFFIX}"
    raw = path.read_bytes()
    for end in range(len(raw)):
        path.write_bytes(raw[:end])
        assert verified(parts, "part", SIZE) == []
    path.write_bytes(raw + b"torn")
    assert verified(parts, "part", SIZE) == [whole]
    (tmp_path / "part").write_bytes(DATA[:-1])
    assert verified(parts, "part", SIZE) == [], "a part that lost its end"
    os.close(parts)
