"""Stores to test checkpoints on: a folder, one on tmpfs, one that dies or fails at a chosen operation."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.steps.store import ObjectStore, open_store
from tests.crash.striking import FaultyStore, Killed


@pytest.fixture
def inner(tmp_path: Path) -> ObjectStore:
    return open_store(f"file://{tmp_path}/store")


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder on tmpfs where there is one: hundreds of cases, and fsync itself is not what they are about."""
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="argosy-test-", dir=shm) as folder:
        yield Path(folder)


@pytest.fixture
def faulty() -> Callable[..., FaultyStore]:
    return FaultyStore


@pytest.fixture
def killed() -> type[BaseException]:
    return Killed
