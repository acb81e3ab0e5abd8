"""Pieces from an S3 whose requests go wrong: right bytes or a clear refusal, and not one request too many."""

from __future__ import annotations

import base64
import random
import time
import zlib

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.transfer import crc
from argosy.steps.transfer.fetching import Fetching
from argosy.steps.transfer.loop import Loop
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from argosy.steps.transfer.site import Site
from tests.s3 import TRANSIENT, Bucket, S3Server, at, at_random, on
from tests.s3.bucket import Stored
from tests.transfer.conftest import BUCKET, Folder, Put, both

pytestmark = both
URI = f"s3://{BUCKET}"


def test_whole_objects_and_ranges_of_one(server: S3Server, folder: Folder, put: Put, seed: int) -> None:
    data = random.Random(seed).randbytes(3_000_000)
    whole = put("a/whole", data)
    empty = put("a/empty", b"")
    ranges = [put("a/ranged", data, start, 1_000_000, part="ranged") for start in (2_000_000, 0, 1_000_000)]
    told = folder.fetch(URI, [whole, empty, *ranges])
    assert all(isinstance(result, Arrived) for result in told.values()), told
    assert folder.read(whole.part) == folder.read("ranged") == data
    assert folder.read(empty.part) == b""
    assert told[whole.number] == Arrived(whole.number, {"crc64nvme": crc.crc("crc64nvme", data)}, ("crc64nvme",))
    for piece in ranges:
        of_piece = crc.crc("crc64nvme", data[piece.start : piece.start + piece.length])
        assert told[piece.number] == Arrived(piece.number, {"crc64nvme": of_piece}, ())
    assert sorted(seen.range for seen in server.requests if seen.range) == [
        "bytes=0-999999",
        "bytes=1000000-1999999",
        "bytes=2000000-2999999",
    ]
    assert len(server.requests) == 5


@pytest.mark.parametrize("key", ["a b+c", "é/ü~/100%", "x/%2F/&=?#", "a'(b)*!,;:@$", "日本/🙂", "-._~", 'a\\b"<>|^`{}'])
def test_keys_of_every_kind(folder: Folder, put: Put, key: str) -> None:
    piece = put(f"deep/{key}", key.encode())
    folder.carry(URI, [piece])
    assert folder.read(piece.part) == key.encode()


def test_below_a_prefix(folder: Folder, bucket: Bucket) -> None:
    etag = bucket.put("some/prefix/k", b"abc").etag
    assert isinstance(folder.carry(f"{URI}/some/prefix", [Piece(0, "k", 3, etag, "", 0, 3, "k")])[0], Arrived)
    assert folder.read("k") == b"abc"


def test_a_checksum_that_is_asked_for(folder: Folder, put: Put) -> None:
    piece = put("k", b"0123456789", checksum="crc32c")
    result = folder.carry(URI, [piece])[piece.number]
    assert isinstance(result, Arrived)
    assert result.crcs["crc32c"] == crc.crc("crc32c", b"0123456789")


@pytest.mark.parametrize("kind", ["wrong-bytes", "truncated"])
def test_wrong_bytes_once_are_fetched_again(server: S3Server, folder: Folder, put: Put, kind: str) -> None:
    piece = put("k", b"x" * 100_000)
    server.begin(on("GetObject", kind))
    assert isinstance(folder.carry(URI, [piece])[piece.number], Arrived)
    assert folder.read(piece.part) == b"x" * 100_000
    assert [seen.range for seen in server.requests] == ["", ""]


def test_wrong_bytes_twice_are_the_stores_fault(server: S3Server, folder: Folder, put: Put) -> None:
    piece = put("folder/k", b"x" * 1000)
    server.begin(on("GetObject", "wrong-bytes", times=9))
    result = folder.carry(URI, [piece])[piece.number]
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.DATA_CORRUPT
    expected = crc.text("crc64nvme", crc.crc("crc64nvme", b"x" * 1000))
    flipped = b"x" * 500 + b"y" + b"x" * 499
    assert "'folder/k'" in str(result.error)
    assert f"{crc.text('crc64nvme', crc.crc('crc64nvme', flipped))} came, not {expected}" in str(result.error)
    assert len(server.requests) == 2


class OtherSums(Bucket):
    """Keeps a CRC32, a SHA-256, and says something about parts."""

    def checksums(self, stored: Stored) -> dict[str, str]:
        return {
            "x-amz-checksum-crc32": base64.b64encode(zlib.crc32(stored.data).to_bytes(4, "big")).decode(),
            "x-amz-checksum-sha1": "AAAAAAAAAAAAAAAAAAAAAAAAAAA=-3",
            "x-amz-checksum-sha256": "broken",
        }


class SumOfParts(Bucket):
    def checksums(self, stored: Stored) -> dict[str, str]:
        return {"x-amz-checksum-crc32": "AAAAAA==", "x-amz-checksum-type": "COMPOSITE"}


class OwnSumOfParts(Bucket):
    def checksums(self, stored: Stored) -> dict[str, str]:
        return {"x-amz-checksum-crc64nvme": "AAAAAAAAAAA=", "x-amz-checksum-type": "composite"}


class OwnAndOther(OtherSums):
    def checksums(self, stored: Stored) -> dict[str, str]:
        return Bucket.checksums(self, stored) | super().checksums(stored)


@pytest.mark.parametrize(
    ("kind", "names"),
    [(OtherSums, {"crc32"}), (SumOfParts, set()), (OwnSumOfParts, set()), (OwnAndOther, {"crc64nvme"})],
)
def test_other_checksums(folder: Folder, kind: type[Bucket], names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with S3Server({BUCKET: kind()}) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        etag = server.buckets[BUCKET].put("k", b"data").etag
        result = folder.carry(URI, [Piece(0, "k", 4, etag, "", 0, 4, "k")])[0]
    assert isinstance(result, Arrived)
    assert set(result.compared) == names
    assert set(result.crcs) == {"crc64nvme"} | names


def test_another_version_is_refused(server: S3Server, folder: Folder, put: Put) -> None:
    pieces = [put("k", b"old version"), put("long", b"x" * 1000, 500, 500), put("gone", b"1")]
    bucket = server.buckets[BUCKET]
    bucket.put("k", b"new version")
    bucket.put("long", b"x")
    bucket.delete("gone")
    server.begin()
    told = folder.carry(URI, pieces)
    assert len(server.requests) == 3
    for piece in pieces:
        result = told[piece.number]
        assert isinstance(result, Failed)
        assert result.error.cause == Cause.S3_MISSING
        assert piece.key in str(result.error)


@pytest.mark.parametrize(("start", "length", "size"), [(0, 5, 5), (5, 5, 10), (20, 5, 25)])
def test_another_size_is_another_version(folder: Folder, bucket: Bucket, start: int, length: int, size: int) -> None:
    """No ETag pins it, so nothing else tells: whole, a range that is there, one that is not."""
    bucket.put("k", b"x" * 15)
    result = folder.carry(URI, [Piece(0, "k", size, "", "", start, length, "k")])[0]
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.S3_MISSING


def test_no_such_bucket(folder: Folder, server: S3Server) -> None:
    result = folder.carry("s3://no-such", [Piece(0, "k", 1, "", "", 0, 1, "k")])[0]
    assert isinstance(result, Failed)
    assert "bucket does not exist" in str(result.error)
    assert result.error.cause == Cause.S3_MISSING


def test_access_denied_is_not_repeated(server: S3Server, folder: Folder, put: Put) -> None:
    piece = put("k", b"1")
    server.begin(at(0, "denied", 99))
    result = folder.carry(URI, [piece])[piece.number]
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.S3_ACCESS
    assert "403 AccessDenied" in str(result.error)
    assert len(server.requests) == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_body_that_breaks_off_is_gone_on_with(server: S3Server, folder: Folder, put: Put, whole: bool) -> None:
    data = random.Random(1).randbytes(4_000_000)
    piece = put("k", data) if whole else put("k", data, 1_000_000, 3_000_000)
    server.begin(at(0, "cut"))
    result = folder.carry(URI, [piece])[piece.number]
    assert isinstance(result, Arrived)
    assert folder.read(piece.part)[piece.start :] == data[piece.start :]
    assert len(result.compared) == whole, "the checksum came with the first answer, and covers both"
    first, second = server.requests
    assert first.range == ("" if whole else "bytes=1000000-3999999")
    assert piece.start < int(second.range.removeprefix("bytes=").split("-")[0])
    assert second.range.endswith("-3999999")


def test_a_change_while_it_is_fetched_is_seen(server: S3Server, folder: Folder, bucket: Bucket, put: Put) -> None:
    piece = put("k", b"a" * 4_000_000, etag="")

    def plan(seen: object) -> str:
        if not server.requests:
            return "cut"
        bucket.put("k", b"b" * 4_000_000)
        return ""

    server.begin(plan)
    result = folder.carry(URI, [piece])[piece.number]
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.S3_MISSING


def test_a_storm_ends(server: S3Server, folder: Folder, put: Put) -> None:
    pieces = [put(f"k{number}", b"%d" % number) for number in range(100)]
    server.begin(at(0, "slow-down", 60))
    told = folder.carry(URI, pieces)
    assert all(isinstance(result, Arrived) for result in told.values())
    assert len(server.requests) == 160


def test_patience_ends(server: S3Server, folder: Folder, put: Put) -> None:
    piece = put("k", b"1")
    server.begin(at(0, "slow-down", 10_000))
    result = folder.carry(URI, [piece], patience=0.3)[piece.number]
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.S3_THROTTLE
    assert "503 SlowDown" in str(result.error)
    assert len(server.requests) < 30


def test_patience_does_not_end_while_nobody_asks(server: S3Server, folder: Folder, put: Put) -> None:
    """As one who reads large objects between two looks at what the store said of the next thousand."""
    site = Site(URI)
    wire, told = Loop(site), list[Arrived | Failed]()
    wire.retry_seconds = 1.0
    job = Fetching(put("k", b"1"), site, folder.handle, told.append)
    server.begin(at(0, "slow-down", 2))
    wire.add(job)
    while not job.failing_since:
        wire.turn(0.01)
    time.sleep(1.5)
    while not told:
        wire.turn(0.2)
    wire.close()
    assert isinstance(told[0], Arrived), told


def test_a_store_that_is_not_there(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    result = folder.carry(URI, [Piece(0, "k", 1, "", "", 0, 1, "k")], patience=0.2)[0]
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.STORE_UNAVAILABLE
    assert "connection refused" in str(result.error).lower()


def test_under_random_faults_every_byte_is_right(server: S3Server, folder: Folder, put: Put, seed: int) -> None:
    drawn = random.Random(seed)
    datas = [drawn.randbytes(drawn.choice((0, 1, 100, 20_000, 2_000_000))) for _ in range(150)]
    pieces = [put(f"k{number}", data) for number, data in enumerate(datas)]
    server.begin(at_random(seed, 0.2, (*TRANSIENT, "wrong-bytes")))
    told = folder.fetch(URI, pieces, workers=2)
    for piece, data in zip(pieces, datas, strict=True):
        result = told[piece.number]
        if isinstance(result, Failed):
            assert result.error.cause == Cause.DATA_CORRUPT  # wrong bytes twice for the same piece
        else:
            assert folder.read(piece.part) == data
    assert sum(isinstance(result, Arrived) for result in told.values()) > 140
