"""The guards of the checkpoint protocol, each with the edit that takes it away and the tests that must then fail."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Guard:
    """``old`` stands once in ``file``; with ``new`` in its place ``tests`` (arguments of pytest) must fail."""

    what: str
    file: str
    old: str
    new: str
    tests: str


GUARDS = [Guard(**each) for each in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["guard"]]
