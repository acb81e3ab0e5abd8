"""A read whose answer breaks off in its body: repeated or continued, the same version to the byte, or an error."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store import StoreError
from argosy.steps.store.cloud import CloudStore
from tests.s3 import S3Server
from tests.s3.faults import Seen, on

BUCKET = "argosy-tests"
KEY = "some/key"
SIZE = 20 << 20
"""More than a chunk of fetch (8 MiB) and a range of read_into (16 MiB)."""
Read = Callable[[CloudStore, Path], bytes]


@pytest.fixture
def server(own_s3: S3Server, s3_environment: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", own_s3.endpoint)
    own_s3.begin()
    yield own_s3
    own_s3.begin()


@pytest.fixture
def store(server: S3Server) -> CloudStore:
    return CloudStore(f"s3://{BUCKET}/{uuid.uuid4().hex}", retry_seconds=30)


@pytest.fixture(scope="module")
def data() -> bytes:
    return random.Random(5).randbytes(SIZE)


def filled(store: CloudStore, folder: Path) -> bytes:
    buffer = bytearray(SIZE)
    assert store.read_into(KEY, 0, memoryview(buffer)) == SIZE
    return bytes(buffer)


def fetched(store: CloudStore, folder: Path) -> bytes:
    digest = store.fetch(KEY, folder / "o")
    found = (folder / "o").read_bytes()
    assert digest == hashlib.sha256(found).hexdigest()
    return found


READS: dict[str, Read] = {
    "get": lambda store, folder: store.get(KEY),
    "get_range": lambda store, folder: store.get_range(KEY, 0, SIZE),
    "read_into": filled,
    "fetch": fetched,
}


@pytest.mark.parametrize("verb", READS)
def test_a_body_that_breaks_off_is_made_whole(
    verb: str, store: CloudStore, server: S3Server, data: bytes, tmp_path: Path
) -> None:
    store.put(KEY, data)
    server.begin(on("GetObject", "cut", times=2))
    assert READS[verb](store, tmp_path) == data
    assert [seen.fault for seen in server.requests][:2] == ["cut", "cut"]


@pytest.mark.parametrize("verb", READS)
def test_a_body_that_always_breaks_off_is_given_up(
    verb: str, store: CloudStore, server: S3Server, data: bytes, tmp_path: Path
) -> None:
    store.put(KEY, data)
    store = CloudStore(store.uri, retry_seconds=0.5)
    server.begin(on("GetObject", "cut", times=10**6))
    with pytest.raises(StoreError) as caught:
        READS[verb](store, tmp_path)
    assert caught.value.cause is Cause.STORE_UNAVAILABLE
    assert KEY in str(caught.value)
    assert len(server.requests) > 1


def test_a_listing_that_breaks_off_is_made_whole(store: CloudStore, server: S3Server) -> None:
    for number in range(1500):
        server.buckets[BUCKET].put(f"{store.uri.rpartition('/')[2]}/{number:04d}", b"x")
    server.begin(on("ListObjectsV2", "cut", times=2))
    assert [one.key for one in store.list("")] == [f"{number:04d}" for number in range(1500)]
    store = CloudStore(store.uri, retry_seconds=0.5)
    server.begin(on("ListObjectsV2", "cut", times=10**6))
    with pytest.raises(StoreError, match="cannot list") as caught:
        list(store.list(""))
    assert caught.value.cause is Cause.STORE_UNAVAILABLE


def replaced_at_second_read(server: S3Server, new: bytes, fault: str) -> None:
    """The answer to the first read is spoiled, and the object is another one before the second is answered."""
    reads: list[Seen] = []

    def plan(seen: Seen) -> str:
        if seen.operation != "GetObject":
            return ""
        reads.append(seen)
        if len(reads) == 2:
            server.buckets[BUCKET].put(seen.path.split("/", 2)[2], new)
        return fault if len(reads) == 1 else ""

    server.begin(plan)


@pytest.mark.parametrize("asked", [False, True], ids=["any version", "this version"])
def test_an_object_that_changed_meanwhile_is_refused(
    asked: bool, store: CloudStore, server: S3Server, data: bytes, tmp_path: Path
) -> None:
    store.put(KEY, data)
    info = store.head(KEY)
    assert info is not None
    replaced_at_second_read(server, data[::-1], "cut")
    with pytest.raises(StoreError) as caught:
        store.fetch(KEY, tmp_path / "o", etag=info.etag if asked else "")
    assert KEY in str(caught.value)
    assert ("dataset changed" in str(caught.value)) == asked
    assert server.requests[-1].status == 412


def test_a_whole_object_is_of_one_version(store: CloudStore, server: S3Server, data: bytes) -> None:
    store.put(KEY, data)
    replaced_at_second_read(server, data[::-1], "cut")
    assert store.get(KEY) == data[::-1]


def test_an_answer_that_is_short_and_says_so(store: CloudStore, server: S3Server, data: bytes, tmp_path: Path) -> None:
    # Ranges go on behind what came. Of a whole object nobody here knows the length: its digest is what tells.
    store.put(KEY, data)
    server.begin(on("GetObject", "truncated"))
    assert filled(store, tmp_path) == data
    server.begin(on("GetObject", "truncated"))
    found = fetched(store, tmp_path)
    assert found == data[: len(found)]
    assert len(found) < SIZE
    assert fetched(store, tmp_path) == data
