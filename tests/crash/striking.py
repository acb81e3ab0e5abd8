"""A store that dies or fails at a chosen operation, around the real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.store import ObjectStore, StoreError

VERBS = ("get", "get_range", "read_into", "fetch", "put", "upload", "put_if_absent", "list", "head", "delete")


class Killed(BaseException):
    """The process is dead: nothing of ours may catch this, and nothing happens in the store afterwards."""


class FaultyStore:
    """Counts operations; at number ``at`` (and ``length`` - 1 more) it dies or fails, before or after the effect."""

    def __init__(self, inner: ObjectStore, at: int = -1, kind: str = "", length: int = 1) -> None:
        self.inner, self.uri, self.at, self.kind, self.length = inner, inner.uri, at, kind, length
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
            struck = 0 <= number - self.at < self.length and self.at >= 0
            if struck and self.kind.endswith("before"):
                self._strike()
            try:
                result = verb(*args, **kwargs)
                return iter(list(result)) if isinstance(result, Iterator) else result
            finally:
                if struck and self.kind.endswith("after"):
                    self._strike()

        return call

    def _strike(self) -> None:
        if self.kind.startswith("kill"):
            self.dead = True
            raise Killed
        raise StoreError(Cause.S3_THROTTLE, "made by the test")
