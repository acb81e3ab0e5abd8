"""What the store says of objects without their bytes being read."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.transfer import crc
from argosy.steps.transfer.checksums import stored_checksums
from tests.s3 import Bucket, S3Server, at_random
from tests.s3.bucket import Stored
from tests.transfer.conftest import BUCKET, both

pytestmark = both
URI = f"s3://{BUCKET}/below"


def own(data: bytes) -> str:
    return crc.text("crc64nvme", crc.crc("crc64nvme", data))


def test_in_order_one_request_each(server: S3Server, bucket: Bucket, seed: int) -> None:
    datas = {f"k {number}": b"%d" % number for number in range(1100)}
    etags = {key: bucket.put(f"below/{key}", data).etag for key, data in datas.items()}
    keys = [(key, etags[key] if len(key) % 2 else "") for key in datas]
    server.begin()
    assert list(stored_checksums(URI, iter(keys))) == [(key, own(data)) for key, data in datas.items()]
    assert [seen.operation for seen in server.requests] == ["HeadObject"] * 1100
    server.begin(at_random(seed, 0.1, ("slow-down", "error-before", "reset-before", "cut")))
    assert list(stored_checksums(URI, keys[:300])) == [(key, own(datas[key])) for key, _ in keys[:300]]


class Silent(Bucket):
    def checksums(self, stored: Stored) -> dict[str, str]:
        return {}


class OfParts(Bucket):
    def checksums(self, stored: Stored) -> dict[str, str]:
        return {"x-amz-checksum-crc32c": "AAAAAA==-5", "x-amz-checksum-type": "COMPOSITE"}


@pytest.mark.parametrize("kind", [Silent, OfParts])
def test_none_where_the_store_has_none(kind: type[Bucket], monkeypatch: pytest.MonkeyPatch) -> None:
    with S3Server({BUCKET: kind()}) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        server.buckets[BUCKET].put("below/k", b"1")
        assert list(stored_checksums(URI, [("k", "")])) == [("k", "")]


def test_a_change_is_said(bucket: Bucket) -> None:
    bucket.put("below/k", b"1")
    old = bucket.put("below/changed", b"1").etag
    bucket.put("below/changed", b"2")
    for key, etag in (("gone", ""), ("changed", old)):
        with pytest.raises(StoreError, match=key) as caught:
            list(stored_checksums(URI, [("k", ""), (key, etag), ("k", "")]))
        assert caught.value.cause == Cause.S3_MISSING


def test_other_stores_are_not_asked(tmp_path: Path) -> None:
    assert list(stored_checksums(f"file://{tmp_path}", [("a", ""), ("b", "x")])) == [("a", ""), ("b", "")]
