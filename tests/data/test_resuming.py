"""A killed staging goes on inside its objects: what had arrived is not fetched again, and nothing is left over."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from argosy.steps.contract.errors import StepError
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.parts import Parts
from argosy.steps.data.staging import stage_objects
from argosy.steps.transfer.crc import Running, text
from tests.data.kills import BUCKET, Stager, served, slowly, strays, under_way
from tests.s3 import S3Server, nothing, on
from tests.s3.faults import Seen

Tree = Callable[[Path], dict[str, bytes]]
LARGE = 33 << 20
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


def large(seed: int) -> dict[str, bytes]:
    """Objects that come in ranges, that come whole but are resumed inside, and that are too small for it."""
    draw = random.Random(seed)
    sizes = {"shards/0.tar": 40 << 20, **{f"shards/{i}.tar": 6 << 20 for i in range(1, 4)}, "small": 100}
    return {key: draw.randbytes(size) for key, size in sizes.items()}


def strike(server: S3Server, path: Path, draw: random.Random, share: float, before: int = 0) -> int:
    """Stage, and kill it when ``share`` of the bytes had arrived, with those ``before``; how many did now.

    What had left the server and was not read yet, because a busy machine kept the reader waiting, is not counted.
    """
    total = DatasetManifest.from_bytes((path / "manifest").read_bytes()).total_bytes
    server.begin(slowly)
    stager = Stager(server, path / "manifest", path / "in")
    assert stager.wait_for(lambda: before + served(server) >= share * total)
    stager.stop()
    arrived = served(server) - under_way(server)
    stager.kill(draw)
    server.begin(nothing)
    return arrived


def test_killed_in_the_middle_only_what_is_missing_comes_again(
    server: S3Server, tree: Tree, tmp_path: Path, seed: int
) -> None:
    files, draw, arrived = large(seed), random.Random(seed), 0
    total = store(server, files, tmp_path / "manifest").total_bytes
    for share in (0.2, 0.5, 0.8):
        arrived += strike(server, tmp_path, draw, share, arrived)
    fetched = Stager(server, tmp_path / "manifest", tmp_path / "in").fetched()
    # What had been read and stood in no map yet, three times.
    assert fetched <= total - arrived + (3 << 20), f"{arrived} of {total} had arrived, {fetched} came again"
    assert served(server) == fetched
    assert tree(tmp_path / "in") == files
    assert strays(tmp_path / "in") == []


def test_a_worker_that_dies_is_replaced(server: S3Server, tree: Tree, tmp_path: Path, seed: int) -> None:
    files = large(seed)
    total = store(server, files, tmp_path / "manifest").total_bytes
    server.begin(slowly)
    stager = Stager(server, tmp_path / "manifest", tmp_path / "in")
    assert stager.wait_for(lambda: served(server) >= 0.4 * total)
    os.kill(random.Random(seed).choice(stager.workers()), signal.SIGKILL)
    assert stager.fetched() == total
    assert tree(tmp_path / "in") == files
    assert strays(tmp_path / "in") == []


def test_the_rest_of_an_object_is_held_against_the_whole(
    server: S3Server, tree: Tree, tmp_path: Path, seed: int
) -> None:
    """Fetched in two parts, no answer carries its checksum: the store is asked for it."""
    draw = random.Random(seed)
    files = {f"{i}": draw.randbytes(6 << 20) for i in range(3)}
    manifest = store(server, files, tmp_path / "manifest")
    strike(server, tmp_path, draw, 0.5)
    server.begin(on("GetObject", "wrong-bytes", times=2))  # three in a row of one object are an error, rightly
    stage_objects(manifest, manifest, tmp_path / "in")
    assert "HeadObject" in {seen.operation for seen in server.requests}
    assert tree(tmp_path / "in") == files
    assert strays(tmp_path / "in") == []


def test_parts_of_a_version_that_is_gone_are_removed(server: S3Server, tree: Tree, tmp_path: Path, seed: int) -> None:
    files = large(seed)
    store(server, files, tmp_path / "manifest")
    strike(server, tmp_path, random.Random(seed), 0.5)
    left = list((tmp_path / "in/.argosy-stage/parts").glob("*"))
    assert len(left) >= 2, "a part and its map"
    files = {"shards/0.tar": files["shards/0.tar"], "shards/1.tar": large(seed + 1)["shards/1.tar"], "new": b"1"}
    manifest = store(server, files, tmp_path / "manifest")
    done = stage_objects(manifest, manifest, tmp_path / "in")
    assert done.fetched_bytes < manifest.total_bytes, "the object that is the same was resumed"
    assert tree(tmp_path / "in") == files
    assert strays(tmp_path / "in") == []


def test_ranges_of_an_object_without_etag_are_of_one_version(server: S3Server, tmp_path: Path, seed: int) -> None:
    """A listing that somebody gave need not know any; the object is written again while its second range is asked."""
    bucket, draw = server.buckets[BUCKET], random.Random(seed)
    bucket.replace({})
    bucket.put("set/a", draw.randbytes(LARGE))
    later = draw.randbytes(LARGE)

    def plan(seen: Seen) -> str:
        if seen.range and any(one.range for one in server.requests):
            bucket.put("set/a", later)
        return ""

    server.begin(plan)
    manifest = DatasetManifest.of(URI, [DataObject("a", LARGE)])
    with pytest.raises(StepError, match="dataset changed"):
        stage_objects(manifest, manifest, tmp_path / "in")


def test_an_object_without_etag_is_not_gone_on_with(server: S3Server, tree: Tree, tmp_path: Path, seed: int) -> None:
    key = "shards/0.tar"
    store(server, {key: large(seed)[key]}, tmp_path / "manifest")
    manifest = DatasetManifest.of(URI, [DataObject(key, 40 << 20)])
    (tmp_path / "manifest").write_bytes(manifest.to_bytes())
    strike(server, tmp_path, random.Random(seed), 0.5)
    later = {key: large(seed + 1)[key]}
    store(server, later, tmp_path / "later")
    stage_objects(manifest, manifest, tmp_path / "in")
    assert tree(tmp_path / "in") == later


def test_pages_that_a_power_loss_took_are_fetched_again(
    server: S3Server, tree: Tree, tmp_path: Path, seed: int
) -> None:
    """The map and the journal were written, the bytes were not: zeros and garbage where data should be."""
    draw, files = random.Random(seed), large(seed)
    manifest = store(server, files, tmp_path / "manifest")
    strike(server, tmp_path, draw, 0.5)
    state = tmp_path / "in/.argosy-stage"
    for part in state.glob("parts/*[!p]"):
        with part.open("r+b") as target:
            for at in range(0, part.stat().st_size, 5 << 20):
                target.seek(at + draw.randrange(1 << 20))
                target.write(draw.choice([bytes(4096), draw.randbytes(4096)]))
    for journal in state.glob("records/*/*.open"):
        _, *rows = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([b"\tanother boot of this machine\n", *rows]))
        for key in [row.split(b"\t")[0].decode() for row in rows]:
            path = tmp_path / "in" / key
            facts = path.stat()
            path.write_bytes(bytes(facts.st_size))
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    stage_objects(manifest, manifest, tmp_path / "in")
    assert tree(tmp_path / "in") == files
    assert strays(tmp_path / "in") == []


CHECKSUMS = [
    *((name, 1000) for name in ("crc64nvme", "crc32c", "crc32", "sha256")),
    ("crc32c", LARGE),
    ("sha256", LARGE),
]


@pytest.mark.parametrize(("algorithm", "size"), CHECKSUMS)
def test_bytes_that_are_not_the_manifests_come_once_more_and_then_never(
    algorithm: str, size: int, server: S3Server, tree: Tree, tmp_path: Path, seed: int
) -> None:
    data = random.Random(seed).randbytes(size)
    (one,) = store(server, {"a": data}, tmp_path / "manifest")
    running = Running(algorithm)
    running.update(data)
    right = replace(one, checksum=text(algorithm, running.values()[algorithm]))
    manifest = DatasetManifest.of(URI, [right])
    server.begin(on("GetObject", "wrong-bytes"))
    assert stage_objects(manifest, manifest, tmp_path / "in").fetched_bytes == size
    assert served(server) == 2 * size
    assert tree(tmp_path / "in") == {"a": data}
    wrong = DatasetManifest.of(URI, [replace(one, checksum=text(algorithm, running.values()[algorithm] ^ 1))])
    server.begin(nothing)
    with pytest.raises(StepError) as caught:
        stage_objects(wrong, wrong, tmp_path / "other")
    assert (caught.value.cause, served(server)) == ("data_corrupt", 2 * size)
    for said in ("'a'", right.checksum, next(iter(wrong)).checksum):
        assert said in str(caught.value)
    assert (tree(tmp_path / "other"), strays(tmp_path / "other")) == ({}, [])


def test_killed_before_a_file_got_its_name_nothing_is_fetched(server: S3Server, tree: Tree, tmp_path: Path) -> None:
    """Its record was written; the kill came before the rename."""
    files = {f"d/{i}": bytes([i]) * 100 for i in range(20)}
    manifest = store(server, files, tmp_path / "manifest")
    stage_objects(manifest, manifest, tmp_path / "in")
    state = tmp_path / "in/.argosy-stage"
    (records,) = state.glob("records/*/00000")
    records.rename(f"{records}.open")
    (state / "complete.json").unlink()
    parts = Parts(os.open(state / "parts", os.O_RDONLY), manifest.uri)
    for one in list(manifest)[::3]:
        (tmp_path / "in" / one.key).rename(state / "parts" / parts.name(one))
    os.close(parts.handle)
    assert stage_objects(manifest, manifest, tmp_path / "in").fetched_bytes == 0
    assert tree(tmp_path / "in") == files
    assert strays(tmp_path / "in") == []
