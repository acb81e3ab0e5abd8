"""Whether nodes can connect to each other at all: plain TCP, before anything that would wait for minutes."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

CONNECT_SECONDS = 5.0
_AT_ONCE = 16
_GREETING = b"argosy" * 16384
"""96 KiB: where large packets vanish, a small greeting would still come through."""


@contextlib.contextmanager
def answering(address: str) -> Iterator[int]:
    """Greet whoever connects; the port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family, backlog=1024) as server:
        thread = threading.Thread(target=_serve, args=(server,), name="preflight", daemon=True)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket) -> None:
    while True:
        try:
            caller, _ = server.accept()
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EBADF):
                return
            continue  # a caller's own trouble, accept(2)
        with caller, contextlib.suppress(OSError):
            caller.settimeout(CONNECT_SECONDS)
            caller.sendall(_GREETING)


def _greets(caller: socket.socket) -> bool:
    left = len(_GREETING)
    while left and (data := caller.recv(left)):
        left -= len(data)
    return not left


def unreached(whom: Sequence[int], places: Mapping[int, tuple[str, int]]) -> list[int]:
    """Those of ``whom`` that did not answer; two tries each, so that one lost packet condemns nobody."""

    def answers(node: int) -> bool:
        for _ in range(2):
            with (
                contextlib.suppress(OSError),
                socket.create_connection(places[node], timeout=CONNECT_SECONDS) as caller,
            ):
                if _greets(caller):
                    return True
        return False

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [node for node, well in zip(whom, pool.map(answers, whom), strict=True) if not well]
