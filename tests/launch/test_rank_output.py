"""What a rank prints is kept in its log, whatever the disk did before."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from argosy.steps.launch import rank_output
from argosy.steps.launch.rank_output import RankOutput


def test_a_log_that_could_not_be_begun_anew_is_begun_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_output, "LOG_BYTES", 20)
    output = RankOutput(0, tmp_path)
    output.feed(b"a line of the first\n")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))  # no file can be opened, as on a full disk
    try:
        output.feed(b"lost\n")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    output.feed(b"kept\n")
    output.finish()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["rank-0.log", "rank-0.log.1"]
    assert (tmp_path / "rank-0.log").read_bytes() == b"kept\n"
    assert (tmp_path / "rank-0.log.1").read_bytes() == b"a line of the first\n"
