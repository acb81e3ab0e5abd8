"""What the compiler's time is compared with builds the same document."""

from __future__ import annotations

from pathlib import Path

from benchmarks.contests import both_ways


def test_hera_alone_builds_what_is_compiled(tmp_path: Path) -> None:
    mine, _, _ = both_ways(tmp_path)
    assert mine.read_text().startswith("apiVersion: argoproj.io/v1alpha1\n")
