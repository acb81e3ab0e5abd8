"""A store made of remembered answers: the real code is run again and again, one request further each time."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from argosy.steps.checkpoint.log import Entry
from argosy.steps.contract.causes import Cause
from argosy.steps.store import ObjectMissing, StoreError
from argosy.steps.store.base import ObjectInfo

MISSING, LOST, GATE = "missing", "lost", "gate"
CHANGES = frozenset({"put", "put_if_absent", "delete"})


@dataclass(frozen=True)
class Request:
    """What a program asks of the store next."""

    verb: str
    key: str
    data: bytes = b""


class Next(BaseException):
    """The remembered answers are used up: this is what the program asks now."""

    def __init__(self, request: Request) -> None:
        self.request = request


def serve(objects: dict[str, bytes], request: Request) -> tuple[dict[str, bytes], Any]:
    """What an honest store holds after the request, and its answer; ``objects`` is not changed."""
    key, data = request.key, request.data
    if request.verb == "get":
        return objects, objects.get(key, MISSING)
    if request.verb == "list":
        return objects, tuple((k, len(v)) for k, v in sorted(objects.items()) if k.startswith(key))
    if request.verb == "put":
        return {**objects, key: data}, None
    if request.verb == "put_if_absent":
        return (objects, False) if key in objects else ({**objects, key: data}, True)
    if request.verb == "delete":
        return {k: v for k, v in objects.items() if k != key}, None
    assert request.verb == GATE
    return objects, None


class AnsweringStore:
    """The verbs of a store, answered from a list; before :meth:`begin` from a dictionary of its own."""

    def __init__(self, answers: tuple[Any, ...]) -> None:
        self.uri = "memory://store"
        self.answers, self.at = answers, 0
        self.before: dict[str, bytes] | None = {}

    def begin(self) -> None:
        """From now on every request is one that the others may come between."""
        self.before = None

    def ask(self, verb: str, key: str, data: bytes = b"") -> Any:
        request = Request(verb, key, data)
        if self.before is not None:
            self.before, answer = serve(self.before, request)
        elif self.at == len(self.answers):
            raise Next(request)
        else:
            answer = self.answers[self.at]
            self.at += 1
        if answer == MISSING:
            raise ObjectMissing(key)
        if answer == LOST:
            raise StoreError(Cause.S3_THROTTLE, "the answer was lost")
        return answer

    def get(self, key: str) -> bytes:
        return self.ask("get", key)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self.ask("get", key)[start : start + length]

    def read_into(self, key: str, start: int, buffer: memoryview) -> int:
        chunk = self.get_range(key, start, len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def put(self, key: str, data: bytes | Path) -> None:
        assert isinstance(data, bytes)
        self.ask("put", key, data)

    def upload(self, key: str, source: Any) -> tuple[str, int]:
        data = source.read_bytes() if isinstance(source, Path) else bytes(source)
        self.ask("put", key, data)
        return hashlib.sha256(data).hexdigest(), len(data)

    def put_if_absent(self, key: str, data: bytes | Path) -> bool:
        assert isinstance(data, bytes)
        return self.ask("put_if_absent", key, data)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        below = f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""
        return iter([ObjectInfo(key, size) for key, size in self.ask("list", below)])

    def head(self, key: str) -> ObjectInfo | None:
        try:
            return ObjectInfo(key, len(self.ask("get", key)))
        except ObjectMissing:
            return None

    def delete(self, key: str) -> None:
        self.ask("delete", key)


@dataclass
class Told:
    """What a program learned so far: the promises that the judge holds the store to."""

    store: AnsweringStore
    drawn: list[int]
    acknowledged: list[tuple[Any, ...]] = field(default_factory=list)
    state: Any = None
    state_at: int = -1
    state_drawn: int = 0
    turn: Any = None
    turn_at: int = -1

    def promise(self, *what: Any) -> None:
        """The program was told that ``what`` is so."""
        self.acknowledged.append(what)

    def mark(self, *state: Any) -> None:
        """All that the program's future depends on: histories that meet here are one, and go on from ``state``."""
        self.state, self.state_at, self.state_drawn = state, self.store.at, self.drawn[0]

    def meet(self, *turn: Any) -> None:
        """As ``mark``, where the code cannot be entered again: histories that meet here go on as the first did."""
        self.turn, self.turn_at = turn, self.store.at


Program = Callable[[AnsweringStore, Told, Any], None]
"""(store, told, since): ``since`` is None, or what an earlier run of the same program marked: go on from there."""


@contextlib.contextmanager
def parsing_once() -> Iterator[None]:
    """The same bytes are parsed, and the same entry is written, once: replays do it a thousand times."""
    read, write = Entry.__dict__["from_bytes"], Entry.to_bytes
    Entry.from_bytes, Entry.to_bytes = functools.cache(Entry.from_bytes), functools.cache(write)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Entry.from_bytes, Entry.to_bytes = read, write  # type: ignore[method-assign]


@contextlib.contextmanager
def one_clock(gang: int, before: int) -> Iterator[list[int]]:
    """Nonces and times that depend on nothing but the gang and how many it drew (``before`` in earlier runs)."""
    real, drawn = (uuid.uuid4, time.time), [before]

    def nonce() -> Any:
        drawn[0] += 1
        return SimpleNamespace(hex=hashlib.sha256(b"%d %d" % (gang, drawn[0])).hexdigest()[:32])

    uuid.uuid4, time.time = nonce, lambda: 1.0  # type: ignore[assignment]
    try:
        yield drawn
    finally:
        uuid.uuid4, time.time = real
