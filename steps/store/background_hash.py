"""SHA-256 beside the writing: both release the GIL, so together they take the time of the slower one."""

from __future__ import annotations

import hashlib
import queue
import threading
from types import TracebackType

_AHEAD = 4
"""Chunks that wait to be hashed: the memory that a slow hash can hold."""


class BackgroundHash:
    """Hashes in a thread of its own what :meth:`update` is given; the chunks must not change meanwhile.

    A context manager: the thread ends with the block, also when the block fails.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._chunks: queue.Queue[bytes | memoryview | None] = queue.Queue(_AHEAD)
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="argosy-hash", daemon=True)

    def __enter__(self) -> BackgroundHash:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._chunks.put(None)
        self._thread.join()

    def update(self, chunk: bytes | memoryview) -> None:
        """Take the next chunk; waits while too many are not hashed yet."""
        self._chunks.put(chunk)

    def hexdigest(self) -> str:
        """64 hex digits of all chunks; after the block. Raises what the hashing raised."""
        if self._error is not None:
            raise self._error
        return self._hash.hexdigest()

    def _run(self) -> None:
        while (chunk := self._chunks.get()) is not None:
            try:
                self._hash.update(chunk)
            except Exception as error:  # the writer must not wait for a thread that is gone
                self._error = error
