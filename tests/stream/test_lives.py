"""Killed gangs over an unkind network: see lives.py; more of them by ``make prove SUITE=streaming``."""

from __future__ import annotations

from pathlib import Path

from tests.stream.conftest import Corpus
from tests.stream.lives import Story


def test_kept_steps_have_each_sample_once_and_right(bucket: Corpus, seed: int, tmp_path: Path) -> None:
    assert bucket.server is not None
    told = Story(tmp_path / "index", bucket.server, seed).live()
    assert (told["wrong"], told["missing"], told["twice"]) == (0, 0, 0), told
    assert told["samples"] > 0
