"""The origin as a process of its own; see the package for what it serves."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import resource
import signal
import socket

from benchmarks.staging.origin.connection import Connection
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.settings import Settings
from benchmarks.staging.origin.site import Site


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.staging.origin")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--dataset", type=Dataset.parse, action="append", default=[], help="NAME:COUNT:BYTES[-BYTES]")
    parser.add_argument("--bucket", action="append", default=[], help="an empty bucket that can be written")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer's first byte")
    parser.add_argument("--rate", type=float, default=0.0, help="bytes/s of each connection; 0: no limit")
    parser.add_argument("--refuse", type=float, default=0.0, help="share of GetObject answered 503 SlowDown")
    parser.add_argument("--no-crc", action="store_true", help="tell no checksum, whoever asks")
    args = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    settings = Settings(args.latency, args.rate, args.refuse, float(not args.no_crc))
    site = Site(args.dataset, args.bucket, settings)
    gc.freeze()  # a hundred thousand entries need not be looked through again and again
    asyncio.run(_serve(args.host, args.port, site))


async def _serve(host: str, port: int, site: Site) -> None:
    loop = asyncio.get_running_loop()
    listening = socket.create_server((host, port), backlog=4096)
    listening.setblocking(False)

    def accept() -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(256):
                sock, _address = listening.accept()
                site.counters.connections += 1
                Connection(loop, sock, site)

    loop.add_reader(listening.fileno(), accept)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    print(f"http://{host}:{listening.getsockname()[1]}", flush=True)
    await stopped.wait()


if __name__ == "__main__":
    main()
