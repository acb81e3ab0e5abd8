"""A store that is not waited for any more once somebody wants to end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, TypeVar

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import UNSERVED, ObjectInfo, ObjectStore, StoreError

LEAVE_SECONDS = 3.0
"""How long a request may still take then; after one that took longer nothing more is asked."""
SLOW_SECONDS = 5.0
"""A request that takes longer is one that the store does not answer now."""
LOOK_SECONDS = 0.1
"""How often one that waits for an answer looks whether somebody wants to end."""
THREADLESS_SECONDS = 15.0
"""How long it is waited for a thread to ask in: a rank that starts as many as it may leaves none to others."""
UNWRITTEN = (
    "the store does not answer; what happened since it did may be missing in its log. What was committed is kept, and "
    "whoever goes on begins there"
)
"""What is said of a store that was left."""
T = TypeVar("T")


class LeavableStore:
    """Another store's verbs, each in a thread of its own: the client, or a file system, may stand in one for minutes,
    and then neither sees an event nor lets a signal through.
    """

    def __init__(self, store: ObjectStore, leaving: threading.Event, leave_seconds: float = LEAVE_SECONDS) -> None:
        """``leaving``: set when somebody wants to end; a request may still take ``leave_seconds`` then."""
        self.uri = store.uri
        self._store, self.leaving, self._leave_seconds = store, leaving, leave_seconds
        self._left = self._failed = False
        self._asked: dict[Future[Any], float] = {}

    @property
    def answers(self) -> bool:
        """Whether the last request was served, and none waits for long."""
        now = time.monotonic()
        return not self._failed and all(now - since < SLOW_SECONDS for since in [*self._asked.values()])

    def is_away(self, seconds: float) -> bool:
        """Whether it serves nobody for so long, as far as one small request shows, which it repeats by itself."""
        leave = threading.Event()
        leave.set()
        try:
            LeavableStore(self._store, leave, seconds).head("none")
        except StoreError as error:
            return error.cause in UNSERVED
        return False

    def get(self, key: str) -> bytes:
        """See :class:`ObjectStore`, as for all of these."""
        return self._ask(lambda: self._store.get(key))

    def get_range(self, key: str, start: int, length: int, *, etag: str = "", version: str = "") -> bytes:
        """A part of an object."""
        return self._ask(lambda: self._store.get_range(key, start, length, etag=etag, version=version))

    def read_into(self, key: str, start: int, buffer: memoryview) -> int:
        """The same, into memory."""
        return self._ask(lambda: self._store.read_into(key, start, buffer))

    def fetch(self, key: str, into: Path, *, etag: str = "") -> str:
        """Into a file."""
        return self._ask(lambda: self._store.fetch(key, into, etag=etag))

    def put(self, key: str, data: bytes | Path) -> None:
        """Write or overwrite."""
        self._ask(lambda: self._store.put(key, data))

    def upload(self, key: str, source: Path | memoryview) -> tuple[str, int]:
        """Stream a file or memory."""
        return self._ask(lambda: self._store.upload(key, source))

    def put_if_absent(self, key: str, data: bytes | Path) -> bool:
        """Create; given up, it may have been created all the same."""
        return self._ask(lambda: self._store.put_if_absent(key, data))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects below the prefix."""
        return iter(self._ask(lambda: [*self._store.list(prefix)]))

    def scan(self) -> Iterator[ObjectInfo]:
        """Every object."""
        return iter(self._ask(lambda: [*self._store.scan()]))

    def head(self, key: str) -> ObjectInfo | None:
        """The object's facts."""
        return self._ask(lambda: self._store.head(key))

    def delete(self, key: str) -> None:
        """Remove."""
        self._ask(lambda: self._store.delete(key))

    def _ask(self, ask: Callable[[], T]) -> T:
        if self._left:
            raise self._unserved()
        answer: Future[T] = Future()
        self._asked[answer] = time.monotonic()
        try:
            self._begin(answer, ask)
            found = self._awaited(answer)
        except StoreError as error:
            self._failed = error.cause in UNSERVED
            self._left |= self._failed and self.leaving.is_set()
            raise
        finally:
            del self._asked[answer]
        self._failed = False
        return found

    def _begin(self, answer: Future[T], ask: Callable[[], T]) -> None:
        until = time.monotonic() + THREADLESS_SECONDS
        while True:
            try:
                return threading.Thread(target=_answer, args=(answer, ask), name="store", daemon=True).start()
            except RuntimeError as error:
                if self.leaving.is_set() or time.monotonic() > until:
                    raise StoreError(
                        Cause.HOST_OOM, f"{self.uri} cannot be asked: {error}", quote=str(error)
                    ) from error
            time.sleep(LOOK_SECONDS)

    def _awaited(self, answer: Future[T]) -> T:
        since = 0.0
        while not wait([answer], LOOK_SECONDS).done:
            if self.leaving.is_set():
                since = since or time.monotonic()
                if time.monotonic() - since > self._leave_seconds:
                    raise self._unserved()
        return answer.result()

    def _unserved(self) -> StoreError:
        text = f"{self.uri} does not answer, and was not waited for: the end was asked for"
        return StoreError(Cause.STORE_UNAVAILABLE, text)


def _answer(answer: Future[T], ask: Callable[[], T]) -> None:
    try:
        answer.set_result(ask())
    except BaseException as error:
        answer.set_exception(error)
