"""moto's S3 server of this process, which creates one object at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from moto.server import ThreadedMotoServer


@contextmanager
def moto() -> Iterator[str]:
    """Its endpoint. Of two creates of one key moto lets both succeed now and then, which a store must not do."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    made, lock = server._server, threading.Lock()
    assert made is not None
    app = made.app

    def guarded(environ: Any, start: Any) -> Any:
        with lock if environ["REQUEST_METHOD"] == "PUT" else nullcontext():
            return list(app(environ, start))

    made.app = guarded
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()
