"""What fetches from GCS and Azure, on the S3 that is at hand: obstore's errors and answers are the same."""

from __future__ import annotations

import os

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.transfer import clouds, crc
from argosy.steps.transfer.clouds import CloudSource
from argosy.steps.transfer.piece import Piece
from argosy.steps.transfer.sink import Sink
from tests.s3 import Bucket, S3Server, at
from tests.transfer.conftest import BUCKET, Folder, Put

URI = f"s3://{BUCKET}"


def fetch(folder: Folder, piece: Piece) -> int:
    sink = Sink(folder.handle, piece)
    try:
        CloudSource(URI)(sink)
    finally:
        sink.close()
    assert sink.arrived == piece.length
    return sink.running.values()["crc64nvme"]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kind", ["", "cut", "slow-down", "reset-after"])
def test_pieces_arrive(server: S3Server, folder: Folder, put: Put, whole: bool, kind: str) -> None:
    data = os.urandom(3_000_000)
    piece = put("k", data) if whole else put("k", data, 1_000_000, 1_500_000)
    server.begin(at(0, kind))
    wanted = data[piece.start : piece.start + piece.length]
    assert fetch(folder, piece) == crc.crc("crc64nvme", wanted)
    assert folder.read(piece.part)[piece.start :] == wanted


def test_an_empty_one(folder: Folder, put: Put) -> None:
    piece = put("k", b"")
    fetch(folder, piece)
    assert folder.read(piece.part) == b""


@pytest.mark.parametrize("etag", [True, False])
def test_another_version_is_refused(folder: Folder, put: Put, bucket: Bucket, etag: bool) -> None:
    piece = put("k", b"one", **({} if etag else {"etag": ""}))
    bucket.put("k", b"other")
    with pytest.raises(StoreError, match="dataset changed") as caught:
        fetch(folder, piece)
    assert caught.value.cause == Cause.S3_MISSING
    bucket.delete("k")
    with pytest.raises(StoreError) as caught:
        fetch(folder, piece)
    assert caught.value.cause == Cause.S3_MISSING


def test_a_piece_that_comes_slowly_is_not_given_up(
    server: S3Server, folder: Folder, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection breaks now and then, and all tries together last longer than one may come to nothing."""
    monkeypatch.setattr(clouds, "RETRY_SECONDS", 0.05)
    data = os.urandom(32_000_000)
    piece = put("k", data)
    server.begin(at(0, "cut", 4))
    assert fetch(folder, piece) == crc.crc("crc64nvme", data)
