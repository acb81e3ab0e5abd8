"""A killed staging goes on inside its objects: what had arrived is not fetched again, and nothing is left over."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest
from tests.data.kills import BUCKET, Stager, served, slowly, strays
from tests.s3 import S3Server, nothing

Tree = Callable[[Path], dict[str, bytes]]
URI = f"s3://{BUCKET}/set"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with S3Server((BUCKET,)) as made:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
        made.slow_seconds = 0.8
        yield made


def store(server: S3Server, files: dict[str, bytes], path: Path) -> DatasetManifest:
    """Put the dataset into the bucket; its manifest, also as a file."""
    bucket = server.buckets[BUCKET]
    bucket.replace({})
    for key, data in files.items():
        bucket.put(f"set/{key}", data)
    manifest = take_snapshot(URI)
    path.write_bytes(manifest.to_bytes())
    return manifest


def large(seed: int, count: int = 4, size: int = 40 << 20) -> dict[str, bytes]:
    draw = random.Random(seed)
    return {f"shards/{i}.tar": draw.randbytes(size) for i in range(count)} | {"small": draw.randbytes(100)}


def test_killed_in_the_middle_only_what_is_missing_comes_again(
    server: S3Server, tree: Tree, tmp_path: Path, seed: int
) -> None:
    files = large(seed)
    total = store(server, files, tmp_path / "manifest").total_bytes
    draw, arrived = random.Random(seed), 0
    for share in (0.2, 0.5, 0.8):
        server.begin(slowly)
        stager = Stager(server, tmp_path / "manifest", tmp_path / "in")
        assert stager.wait_for(lambda aim=share: arrived + served(server) >= aim * total)  # type: ignore[misc]
        stager.kill(draw)
        arrived += served(server)
    server.begin(nothing)
    fetched = Stager(server, tmp_path / "manifest", tmp_path / "in").fetched()
    print(f"{arrived} of {total} had left the server, {fetched} came again")
    assert fetched <= 1.05 * (total - arrived) + (8 << 20)
    assert served(server) == fetched
    assert tree(tmp_path / "in") == files
    assert strays(tmp_path / "in") == []
