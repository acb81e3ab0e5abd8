"""Stores to test checkpoints on: a folder, one on tmpfs, one that dies or fails at a chosen operation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.store import ObjectStore, open_store
from tests.crash.striking import FaultyStore, Killed


@pytest.fixture
def inner(tmp_path: Path) -> ObjectStore:
    return open_store(f"file://{tmp_path}/store")


@pytest.fixture
def faulty() -> Callable[..., FaultyStore]:
    return FaultyStore


@pytest.fixture
def killed() -> type[BaseException]:
    return Killed
