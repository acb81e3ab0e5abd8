"""``python -m argosy.steps.transfer.worker URI PARTS PARENT``: fetch pieces told on stdin, tell results on stdout.

``PARTS`` is the inherited descriptor of the folder that is written to, ``PARENT`` the pool's process. The worker ends
with its standard input, or with its parent.
"""

from __future__ import annotations

import os
import sys
import threading
from urllib.parse import urlsplit

from argosy.steps.store.base import StoreError
from argosy.steps.transfer.threads import Fetch, Threads

_LOOK_SECONDS = 1.0


def _unopened(error: StoreError) -> Fetch:
    def fail(_: object) -> None:
        raise StoreError(error.cause, str(error), quote=error.quote)

    return fail


def _source(uri: str) -> tuple[Fetch, int]:
    try:
        if urlsplit(uri).scheme == "file":
            from argosy.steps.transfer.files import READERS, FileSource

            return FileSource(uri), READERS
        from argosy.steps.transfer import clouds

        return clouds.CloudSource(uri), clouds.READERS
    except StoreError as error:
        return _unopened(error), 1


def _end_with(parent: int) -> None:
    # A process that the parent forked may hold the pipe open, so its end alone would not be enough.
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(_LOOK_SECONDS)
    os._exit(0)


def main(arguments: list[str]) -> None:
    """Serve until standard input ends."""
    uri, parts, parent = arguments
    threading.Thread(target=_end_with, args=(int(parent),), daemon=True).start()
    fetch, limit = _source(uri)
    Threads(fetch, int(parts), limit).run(0, 1)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
