"""Datasets in a folder and in a bucket on loopback; what is computed of them is kept in the test's own folder."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from argosy import StreamingDataset
from tests.s3 import S3Server


@dataclass
class Corpus:
    """A dataset's uri, and how to write and open it."""

    uri: str
    index: str
    server: S3Server | None = None

    def write(self, files: dict[str, bytes]) -> None:
        for key, data in files.items():
            if self.server is not None:
                self.server.buckets["data"].put(f"set/{key}", data)
            else:
                path = Path(self.uri.removeprefix("file://")) / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)

    def open(self, *samples: Any, **given: Any) -> StreamingDataset:
        return StreamingDataset(self.uri, *samples, **{"index": self.index, **given})

    def gets(self) -> list[str]:
        """Paths of the objects' ranges that were asked for since the server's log was emptied."""
        assert self.server is not None
        return [seen.path for seen in self.server.requests if seen.operation == "GetObject"]


@pytest.fixture(autouse=True)
def no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "ARGOSY_R", "ARGOSY_D"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def folder(tmp_path: Path) -> Corpus:
    return Corpus(f"file://{tmp_path}/set", str(tmp_path / "index"))


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Corpus]:
    with S3Server(("data",)) as server:
        given = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "REGION": "us-east-1", "ENDPOINT_URL": server.endpoint}
        for name, value in given.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        yield Corpus("s3://data/set", str(tmp_path / "index"), server)


def blobs(seed: int, count: int, size: int) -> dict[str, bytes]:
    """Objects whose sizes are whole records of 100 bytes."""
    draw = random.Random(seed)
    return {f"part-{i:02d}.bin": draw.randbytes(100 * draw.randrange(1, size // 100)) for i in range(count)}


def records(files: dict[str, bytes], size: int = 100) -> list[bytes]:
    """The samples in the order of their numbers."""
    return [data[at : at + size] for _, data in sorted(files.items()) for at in range(0, len(data), size)]
