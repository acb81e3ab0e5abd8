"""``python -m argosy.steps.transfer.worker URI PARTS PARENT MOST``: fetch what stdin tells, tell results on stdout.

``PARTS`` is the inherited descriptor of the folder that is written to, ``PARENT`` the pool's process, ``MOST`` how many
requests it may have under way. The worker ends with its standard input, or with its parent.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from argosy.steps.store.base import StoreError

if TYPE_CHECKING:
    from argosy.steps.transfer.sink import Sink

_LOOK_SECONDS = 1.0
Serve: TypeAlias = Callable[[int, int], None]


def main(arguments: list[str]) -> None:
    """Serve until standard input ends."""
    uri, parts, parent, most = arguments[0], *map(int, arguments[1:])
    try:
        serve = _s3(uri, parts, parent, most) if uri.startswith("s3:") else _threads(uri, parts, parent)
    except StoreError as error:
        serve = _refusing(error, parts)
    told = os.dup(1)
    # What a library prints must not stand between the results.
    os.dup2(2, 1)
    serve(0, told)
    # Threads may still be at work on what nobody waits for.
    os._exit(0)


def _s3(uri: str, parts: int, parent: int, most: int) -> Serve:
    from argosy.steps.transfer.s3_worker import S3Worker

    return S3Worker(uri, parts, parent, most).run


def _threads(uri: str, parts: int, parent: int) -> Serve:
    from argosy.steps.transfer.threads import Threads  # not where S3 is read: each import counts there

    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if uri.startswith("file:"):
        from argosy.steps.transfer import files

        return Threads(files.FileSource(uri), parts, files.READERS).run
    from argosy.steps.transfer import clouds

    return Threads(clouds.CloudSource(uri), parts, clouds.READERS).run


def _refusing(error: StoreError, parts: int) -> Serve:
    from argosy.steps.transfer.threads import Threads

    def refuse(_: Sink) -> None:
        raise StoreError(error.cause, str(error), quote=error.quote)

    return Threads(refuse, parts, 1).run


def _end_with(parent: int) -> None:
    # A process that the parent forked may hold the pipe open, so its end alone would not be enough.
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(_LOOK_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
