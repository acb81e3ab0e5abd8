"""Objects on the server of tests/s3, fetched by a real pool into a real folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from argosy.steps.transfer.fetching import Fetching
from argosy.steps.transfer.loop import Loop
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from argosy.steps.transfer.pool import FetchPool
from argosy.steps.transfer.site import Site
from tests.s3 import Bucket, S3Server
from tests.transfer.certificates import write_certificates

BUCKET = "argosy-tests"
Result = Arrived | Failed


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's but static keys."""
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture(params=["wire", "library"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By what S3 is read: each of the two by itself."""
    monkeypatch.setenv("ARGOSY_S3_TRANSPORT", request.param)
    return str(request.param)


both = pytest.mark.usefixtures("transport")
"""Holds for the wire and for the library."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with S3Server((BUCKET,)) as served:
        served.slow_seconds = 0.1
        monkeypatch.setenv("AWS_ENDPOINT_URL", served.endpoint)
        yield served


@pytest.fixture
def bucket(server: S3Server) -> Bucket:
    return server.buckets[BUCKET]


@dataclass
class Folder:
    """A parts folder, and what fetches into it."""

    path: Path
    handle: int

    def fetch(self, uri: str, pieces: Sequence[Piece], *, workers: int | None = None) -> dict[int, Result]:
        """Through a pool of processes."""
        with FetchPool(uri, self.handle, workers=workers) as pool:
            return drain(pool, pieces)

    def carry(self, uri: str, pieces: Sequence[Piece], *, patience: float = 20.0) -> dict[int, Result]:
        """Through the wire of this process."""
        site = Site(uri)
        wire = Loop(site)
        wire.retry_seconds = patience
        told: dict[int, Result] = {}
        for piece in pieces:
            wire.add(Fetching(piece, site, self.handle, lambda result: told.update({result.number: result})))
        try:
            while len(told) < len(pieces):
                wire.turn(0.2)
        finally:
            wire.close()
        return told

    def read(self, part: str) -> bytes:
        return (self.path / part).read_bytes()


def drain(pool: FetchPool, pieces: Sequence[Piece]) -> dict[int, Result]:
    """Submit as the pool wants them, and wait for all."""
    told: dict[int, Result] = {}
    waiting = list(pieces)
    while len(told) < len(pieces):
        some = pool.room()
        pool.submit(waiting[:some])
        del waiting[:some]
        for result in pool.results(1.0):
            assert result.number not in told
            told[result.number] = result
    return told


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    path = tmp_path / "parts"
    path.mkdir()
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    yield Folder(path, handle)
    os.close(handle)


Put = Callable[..., Piece]


@pytest.fixture
def put(bucket: Bucket) -> Put:
    """Make an object, and the piece that is to bring it (or a part of it)."""
    numbers = iter(range(1 << 30))

    def make(key: str, data: bytes, start: int = 0, length: int | None = None, **given: str) -> Piece:
        stored = bucket.put(key, data)
        number = next(numbers)
        size = len(data) - start if length is None else length
        fields = {"etag": stored.etag, "version": "", "part": f"part-{number}", **given}
        return Piece(number, key, len(data), start=start, length=size, **fields)

    return make


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See :func:`tests.transfer.certificates.write_certificates`."""
    return write_certificates(tmp_path_factory.mktemp("tls"))
