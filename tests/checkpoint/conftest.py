"""A store that dies or fails at a chosen operation, around the real one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store import ObjectStore, StoreError, open_store

VERBS = ("get", "get_range", "fetch", "put", "upload", "put_if_absent", "list", "head", "delete")


class Killed(BaseException):
    """The process is dead: nothing of ours may catch this, and nothing happens in the store afterwards."""


class FaultyStore:
    """Counts operations; at number ``at`` it dies or fails, before or after the effect."""

    def __init__(self, inner: ObjectStore, at: int = -1, kind: str = "") -> None:
        self.inner, self.uri, self.at, self.kind = inner, inner.uri, at, kind
        self.operations: list[str] = []
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        if name not in VERBS:
            raise AttributeError(name)
        verb: Callable[..., Any] = getattr(self.inner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.dead:
                raise Killed
            number = len(self.operations)
            self.operations.append(f"{name} {args[0]}")
            if number == self.at and self.kind.endswith("before"):
                self._strike()
            try:
                result = verb(*args, **kwargs)
                return iter(list(result)) if isinstance(result, Iterator) else result
            finally:
                if number == self.at and self.kind.endswith("after"):
                    self._strike()

        return call

    def _strike(self) -> None:
        if self.kind.startswith("kill"):
            self.dead = True
            raise Killed
        raise StoreError(Cause.S3_THROTTLE, "made by the test")


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
