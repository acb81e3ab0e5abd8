"""The libraries beside which we stage, each in the way its documentation shows.

    python -m benchmarks.staging.peers boto3|obstore|bare BUCKET PREFIX FOLDER THREADS

Prints one JSON line: when it finished (CLOCK_MONOTONIC).
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

_RANGE = 8 << 20
_RANGED_ABOVE = 16 << 20


def boto3(bucket: str, prefix: str, folder: Path, threads: int) -> None:
    """A paged listing, then s3transfer's manager, as ``download_file`` uses it: a HEAD and a GET for each object.

    It verifies CRC64NVME where awscrt is installed, as it is here.
    """
    from boto3.s3.transfer import TransferConfig, create_transfer_manager
    from boto3.session import Session
    from botocore.config import Config

    client = Session().client("s3", config=Config(max_pool_connections=threads, s3={"addressing_style": "path"}))
    config = TransferConfig(max_concurrency=threads, preferred_transfer_client="classic")
    made: set[Path] = set()
    with create_transfer_manager(client, config) as manager:
        running = []
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/"):
            for one in page["Contents"]:
                path = _below(folder, one["Key"][len(prefix) + 1 :], made)
                running.append(manager.download(bucket, one["Key"], str(path)))
        for each in running:
            each.result()


def obstore(bucket: str, prefix: str, folder: Path, threads: int) -> None:
    """A listing, then a thread pool: whole objects, large ones by ranges of 8 MiB. Nothing is verified."""
    from obstore import get, get_range
    from obstore import list as listed
    from obstore.store import S3Store

    endpoint = os.environ["AWS_ENDPOINT_URL"]
    store = S3Store(bucket, endpoint=endpoint, region="us-east-1", client_options={"allow_http": True})
    made: set[Path] = set()

    def whole(key: str, path: Path) -> None:
        path.write_bytes(get(store, key).bytes())

    def part(key: str, path: Path, start: int, length: int) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.pwrite(handle, get_range(store, key, start=start, length=length), start)
        finally:
            os.close(handle)

    with ThreadPoolExecutor(threads) as pool:
        running = []
        for page in listed(store, f"{prefix}/", chunk_size=1000):
            for one in page:
                path = _below(folder, one["path"][len(prefix) + 1 :], made)
                if one["size"] <= _RANGED_ABOVE:
                    running.append(pool.submit(whole, one["path"], path))
                    continue
                for start in range(0, one["size"], _RANGE):
                    running.append(pool.submit(part, one["path"], path, start, min(_RANGE, one["size"] - start)))
        for each in running:
            each.result()


def bare(bucket: str, prefix: str, folder: Path, threads: int) -> None:
    """What the link and the origin give: plain sockets that read ranges into one buffer each and drop the bytes."""
    address = urlsplit(os.environ["AWS_ENDPOINT_URL"])
    keys = [(one, size) for one, size in _listed(str(address.hostname), int(address.port or 80), bucket, prefix)]
    ranges = [(key, start, min(_RANGE, size - start)) for key, size in keys for start in range(0, size, _RANGE)]

    def read(mine: Iterable[tuple[str, int, int]]) -> None:
        buffer = memoryview(bytearray(1 << 20))
        with socket.create_connection((str(address.hostname), int(address.port or 80))) as wire:
            for key, start, length in mine:
                asked = f"GET /{bucket}/{key} HTTP/1.1\r\nHost: x\r\nRange: bytes={start}-{start + length - 1}\r\n\r\n"
                wire.sendall(asked.encode())
                got = wire.recv_into(buffer)
                left = length - (got - bytes(buffer[:got]).index(b"\r\n\r\n") - 4)
                while left > 0:
                    left -= wire.recv_into(buffer)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, (ranges[number::threads] for number in range(threads))))


def _listed(host: str, port: int, bucket: str, prefix: str) -> list[tuple[str, int]]:
    import http.client
    from xml.etree import ElementTree

    wire = http.client.HTTPConnection(host, port)
    wire.request("GET", f"/{bucket}?list-type=2&prefix={prefix}/")
    space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
    rows = ElementTree.fromstring(wire.getresponse().read()).iter(f"{space}Contents")
    return [(str(row.findtext(f"{space}Key")), int(row.findtext(f"{space}Size") or 0)) for row in rows]


def _below(folder: Path, key: str, made: set[Path]) -> Path:
    path = folder / key
    if path.parent not in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.add(path.parent)
    return path


PEERS: dict[str, Callable[[str, str, Path, int], None]] = {"boto3": boto3, "obstore": obstore, "bare": bare}


if __name__ == "__main__":
    name, bucket_name, below, into, count = sys.argv[1:]
    PEERS[name](bucket_name, below, Path(into), int(count))
    print(json.dumps({"finished": time.monotonic()}), flush=True)
