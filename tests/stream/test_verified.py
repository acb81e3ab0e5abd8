"""Every byte that reaches the script is that of the frozen version, or the run is told by name what is wrong."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from argosy import LineSamples, RecordSamples
from argosy.steps.contract.errors import StepError
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.stream.blocks import SMALLEST_BLOCK, BlockTable, block_bytes
from argosy.steps.stream.building import build_blocks
from argosy.steps.stream.connection import Connection
from argosy.steps.transfer.crc import crc, text
from tests.s3 import on
from tests.stream.conftest import Corpus, blobs, records
from tests.stream.lives import unkind


def test_a_bad_network_costs_requests_and_no_byte(bucket: Corpus, seed: int) -> None:
    """Resets, 5xx, short and wrong bodies, for the table and for the samples."""
    assert bucket.server is not None
    bucket.write(files := blobs(seed, 4, 400_000))
    every = records(files)
    bucket.server.begin(unkind(seed))
    with bucket.open(RecordSamples(100)) as data:
        bucket.server.begin(unkind(seed + 1))
        order = random.Random(seed).sample(range(len(every)), 300)
        for begin in range(0, 300, 30):
            assert data.__getitems__(order[begin : begin + 30]) == [
                every[number] for number in order[begin : begin + 30]
            ]


def test_wrong_bytes_are_fetched_again_once(bucket: Corpus, seed: int) -> None:
    assert bucket.server is not None
    bucket.write(files := blobs(seed, 1, 200_000))
    with bucket.open(RecordSamples(100)) as data:
        bucket.server.begin(on("GetObject", "wrong-bytes"))
        assert data[1] == records(files)[1]
        assert (data.statistics.requests, data.statistics.refetched) == (2, 1)


@pytest.mark.parametrize("kind", ["wrong-bytes", "truncated"])
def test_wrong_bytes_twice_are_named(bucket: Corpus, seed: int, kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert bucket.server is not None
    bucket.write(blobs(seed, 2, 200_000))
    with bucket.open(RecordSamples(100)) as data:
        bucket.server.begin(on("GetObject", kind, times=2))
        with pytest.raises(StepError) as caught:
            data.__getitem__(0)
    assert caught.value.cause == "data_corrupt"
    assert "part-00.bin" in str(caught.value)
    assert "argosy: data_corrupt: " in capfd.readouterr().err


@pytest.mark.parametrize("where", ["bucket", "folder"])
@pytest.mark.parametrize("verify", ["blocks", "etag"])
def test_an_object_that_changes_under_the_run_is_named(
    where: str, verify: str, request: pytest.FixtureRequest, seed: int, capfd: pytest.CaptureFixture[str]
) -> None:
    corpus = request.getfixturevalue(where)
    corpus.write(files := blobs(seed, 3, 20_000))
    last = max(files)
    with corpus.open(RecordSamples(100), verify=verify) as data:
        steps = data.batches(global_batch_size=10, seed=seed)
        next(steps)
        corpus.write({last: files[last][::-1]})
        with pytest.raises(StepError) as caught:
            list(islice(steps, 2 * len(data)))
    assert caught.value.cause == "s3_missing"
    assert f"dataset changed: {corpus.uri}/{last} is no longer version" in str(caught.value)
    assert "argosy: s3_missing: dataset changed" in capfd.readouterr().err


@pytest.mark.parametrize("where", ["bucket", "folder"])
def test_an_object_that_is_gone_is_named(where: str, request: pytest.FixtureRequest) -> None:
    corpus = request.getfixturevalue(where)
    corpus.write({"a": b"1", "b": b"2"})
    with corpus.open() as data:
        if corpus.server is not None:
            corpus.server.buckets["data"].delete("set/b")
        else:
            Path(f"{corpus.uri.removeprefix('file://')}/b").unlink()
        assert data[0]["data"] == b"1"
        with pytest.raises(StepError, match=r"no object at .*/set/b"):
            data[1]


def test_bytes_that_rot_under_the_same_version_are_found(bucket: Corpus, seed: int) -> None:
    """What If-Match cannot see: the store has other bytes under the same ETag."""
    assert bucket.server is not None
    bucket.write(files := blobs(seed, 1, 900_000))
    (key,) = files
    objects = bucket.server.buckets["data"].objects
    with bucket.open(RecordSamples(100)) as data:
        stored = objects[f"set/{key}"]
        hurt = random.Random(seed).randrange(len(stored.data))
        rotten = bytearray(stored.data)
        rotten[hurt] ^= 1 << random.Random(seed).randrange(8)
        objects[f"set/{key}"] = type(stored)(bytes(rotten), stored.etag, stored.modified)
        start = hurt // SMALLEST_BLOCK * SMALLEST_BLOCK
        end = min(start + SMALLEST_BLOCK, len(rotten)) - 1
        with pytest.raises(StepError, match=rf"'{key}' of .*: bytes {start}\.\.{end} came twice"):
            data[hurt // 100]


def test_the_table_is_compared_with_what_the_store_keeps(folder: Corpus, seed: int) -> None:
    """The checksum that the manifest has of a whole object is that of its blocks joined."""
    folder.write(files := blobs(seed, 3, 300_000))
    with folder.open() as data:
        known = [data._catalogue[number] for number in range(len(data))]
    sums = {key: text("crc64nvme", crc("crc64nvme", content)) for key, content in files.items()}

    def manifest(**wrong: str) -> DatasetManifest:
        told = {**sums, **wrong}
        return DatasetManifest.of(folder.uri, [DataObject(o.key, o.size, o.etag, "", told[o.key]) for o in known])

    with Connection(folder.uri, 2) as connection:
        build_blocks(manifest(), connection, in_flight_bytes=1)
        with pytest.raises(StepError, match=r"'part-01.bin' of .*: its bytes have crc64nvme:\S+, the store keeps"):
            build_blocks(manifest(**{"part-01.bin": sums["part-00.bin"]}), connection)


@pytest.mark.parametrize("size", [1000, 20_000_000])
def test_a_table_is_not_made_of_wrong_bytes(bucket: Corpus, seed: int, size: int) -> None:
    """Wrong once: read again. Wrong for good: the store's own checksum of the whole object tells."""
    assert bucket.server is not None
    bucket.write({"a": random.Random(seed).randbytes(size), "b": b"1"})
    bucket.server.begin(on("GetObject", "wrong-bytes", containing="/a"))
    bucket.open().close()
    bucket.write({"a": random.Random(seed + 1).randbytes(size)})
    bucket.server.begin(on("GetObject", "wrong-bytes", times=1000, containing="/a"))
    with pytest.raises(StepError, match=r"object 'a' of .*: its bytes have crc64nvme:\S+, the store keeps crc64nvme:"):
        bucket.open()
    assert len(list(Path(bucket.index).rglob("*.blocks"))) == 1, "of the first version"


@pytest.mark.parametrize("suffix", [".blocks", ".samples"])
def test_a_rotten_table_or_index_is_not_believed(folder: Corpus, seed: int, suffix: str) -> None:
    folder.write(blobs(seed, 2, 200_000))
    with folder.open(LineSamples()) as data:
        digest = data.digest
    (kept,) = (path for path in Path(folder.index).rglob("*") if suffix in path.name)
    raw = bytearray(kept.read_bytes())
    raw[-1] ^= 1
    kept.write_bytes(raw)
    with pytest.raises(StepError, match=r"does not have the SHA-256 that it names; remove it and it is made again"):
        folder.open(LineSamples(), digest=digest)
    kept.unlink()
    folder.open(LineSamples(), digest=digest).close()


def test_the_table_stays_small() -> None:
    assert block_bytes(0) == block_bytes(512 << 30) == 64 << 10
    for total in (1 << 40, 10 << 40, 1 << 50):
        assert total / block_bytes(total) * 8 <= 64 << 20


def test_a_table_is_what_was_written(seed: int) -> None:
    from array import array

    draw = random.Random(seed)
    table = BlockTable("a" * 64, 65536, array("Q", [draw.getrandbits(64) for _ in range(1000)]))
    again = BlockTable.from_bytes(table.to_bytes())
    assert (again.digest, again.block, again.sums) == (table.digest, table.block, table.sums)
    with pytest.raises(ValueError, match="format"):
        BlockTable.from_bytes(b'{"format": "other"}\n')
