"""The benchmarks' S3 says to boto3, obstore, argosy and plain sockets what S3 would, and counts what it did."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from awscrt import checksums
from botocore.config import Config
from botocore.exceptions import ClientError

from benchmarks.staging.origin.catalogue import BUCKET
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.process import Origin
from benchmarks.staging.rounds import compare, strangers

SMALL = Dataset("small", 1_203, 1_000, 300_000)
FEW = Dataset("few", 40, 1, 300_000)
LARGE = Dataset("large", 2, 20 << 20, 20 << 20)
KEYS = [window.key for window in SMALL]


@pytest.fixture(scope="module")
def started() -> Iterator[Origin]:
    with Origin([SMALL, FEW, LARGE], buckets=["argosy-tests"]) as origin:
        yield origin


@pytest.fixture
def origin(started: Origin) -> Origin:
    started.begin()
    return started


@pytest.fixture
def client(origin: Origin) -> Iterator[Any]:
    plain = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    made = boto3.client(
        "s3",
        endpoint_url=origin.endpoint,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=plain,
    )
    yield made
    made.close()


def refused(client: Any, **given: str) -> tuple[int, str]:
    with pytest.raises(ClientError) as caught:
        client.get_object(Bucket=BUCKET, **given)
    told = caught.value.response
    return told["ResponseMetadata"]["HTTPStatusCode"], told["Error"]["Code"]


def test_listings_by_pages_folders_and_both_versions(client: Any) -> None:
    for verb in ("list_objects_v2", "list_objects"):
        pages = list(client.get_paginator(verb).paginate(Bucket=BUCKET, Prefix="small/"))
        listed = [one for page in pages for one in page["Contents"]]
        assert [len(page["Contents"]) for page in pages] == [1000, 203]
        assert [one["Key"] for one in listed] == KEYS
        assert [one["Size"] for one in listed] == [window.size for window in SMALL]
        assert [one["ETag"] for one in listed] == [window.etag() for window in SMALL]
    asked = client.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Prefix="small/", Delimiter="/", PaginationConfig={"PageSize": 1}
    )
    folders = [one["Prefix"] for page in asked for one in page.get("CommonPrefixes", ())]
    assert folders == ["small/000/", "small/001/"]
    after = client.list_objects_v2(Bucket=BUCKET, Prefix="small/", StartAfter=KEYS[-3])
    assert [one["Key"] for one in after["Contents"]] == KEYS[-2:]
    assert client.list_objects_v2(Bucket=BUCKET, Prefix="absent/")["KeyCount"] == 0


def test_objects_ranges_and_conditions(client: Any) -> None:
    for window in (next(iter(SMALL)), next(iter(LARGE))):
        whole = client.get_object(Bucket=BUCKET, Key=window.key)
        assert whole["Body"].read() == window.bytes()
        etag = whole["ETag"]
        head = client.head_object(Bucket=BUCKET, Key=window.key)
        assert (head["ContentLength"], head["ETag"]) == (window.size, etag)
        for asked, begin, end in (("2-4", 2, 5), (f"{window.size - 2}-{window.size + 9}", -2, None), ("-3", -3, None)):
            found = client.get_object(Bucket=BUCKET, Key=window.key, Range=f"bytes={asked}", IfMatch=etag)
            assert found["Body"].read() == window.bytes()[begin:end]
            assert found["ContentRange"].endswith(f"/{window.size}")
        assert refused(client, Key=window.key, IfMatch='"other"') == (412, "PreconditionFailed")
        assert refused(client, Key=window.key, IfNoneMatch=etag)[0] == 304
        assert refused(client, Key=window.key, Range=f"bytes={window.size}-") == (416, "InvalidRange")
    assert refused(client, Key="small/none") == (404, "NoSuchKey")


def test_the_checksum_is_told_to_who_asks_for_a_whole_object(origin: Origin, client: Any) -> None:
    window = list(SMALL)[7]
    given = {"Bucket": BUCKET, "Key": window.key}
    found = client.get_object(**given, ChecksumMode="ENABLED")
    body = found["Body"].read()
    assert found["ChecksumCRC64NVME"] == base64.b64encode(checksums.crc64nvme(body).to_bytes(8, "big")).decode()
    assert found["ChecksumType"] == "FULL_OBJECT"
    assert "ChecksumCRC64NVME" in client.head_object(**given, ChecksumMode="ENABLED")
    assert "ChecksumCRC64NVME" not in client.head_object(**given)
    assert "ChecksumCRC64NVME" not in client.get_object(**given, ChecksumMode="ENABLED", Range="bytes=0-9")
    origin.begin(crc=False)
    assert "ChecksumCRC64NVME" not in client.get_object(**given, ChecksumMode="ENABLED")


def test_what_was_asked_and_sent_is_counted(origin: Origin, client: Any) -> None:
    before = time.monotonic()
    client.list_objects_v2(Bucket=BUCKET, Prefix="large/")
    client.head_object(Bucket=BUCKET, Key=KEYS[0])
    body = client.get_object(Bucket=BUCKET, Key="large/000/000001.bin")["Body"].read()
    counted = origin.counted()
    assert counted.requests == {"ListObjectsV2": 1, "HeadObject": 1, "GetObject": 1}
    assert before < counted.first_list < time.monotonic()
    assert len(body) < counted.bytes < len(body) + 5_000


def test_a_body_that_nobody_reads_is_not_counted_as_sent(origin: Origin) -> None:
    with talking(origin) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.sendall(b"GET /bench/large/000/000000.bin HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wire.recv(100).startswith(b"HTTP/1.1 200")
    assert 0 < origin.counted().bytes < 20 << 20


def test_refusals_and_latency_are_as_told(origin: Origin, client: Any) -> None:
    origin.begin(refuse=1.0)
    assert refused(client, Key=KEYS[0]) == (503, "SlowDown")
    origin.begin(latency=0.2)
    began = time.monotonic()
    client.head_object(Bucket=BUCKET, Key=KEYS[0])
    assert time.monotonic() - began >= 0.2


def test_requests_come_in_any_pieces(origin: Origin) -> None:
    asked = b"HEAD /bench/small/000/000000.bin HTTP/1.1\r\nHost: x\r\n\r\n"
    with talking(origin) as wire:
        for byte in asked:
            wire.sendall(bytes([byte]))
        alone = wire.recv(4096)
        assert alone.startswith(b"HTTP/1.1 200 OK\r\n")
        wire.sendall(asked * 3)
        told = b""
        while len(told) < 3 * len(alone):
            told += wire.recv(4096)
        assert told == alone * 3
        wire.sendall(asked.replace(b"Host", b"Connection: close\r\nHost"))
        assert wire.recv(4096) + wire.recv(4096) == alone


def talking(origin: Origin) -> socket.socket:
    address = urlsplit(origin.endpoint)
    return socket.create_connection((address.hostname, address.port), timeout=20)


@pytest.mark.parametrize("dataset", [FEW, LARGE], ids=str)
def test_argosy_and_the_peers_stage_what_is_there(origin: Origin, tmp_path: Path, dataset: Dataset) -> None:
    commands = {
        "argosy": ["ours", "stage", origin.uri(dataset)],
        "obstore": ["peers", "obstore", BUCKET, dataset.name],
        "boto3": ["peers", "boto3", BUCKET, dataset.name],
    }
    for name, (module, *words) in commands.items():
        threads = [] if module == "ours" else ["8"]
        folder = tmp_path / name
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.staging.{module}", *words, str(folder), *threads],
            env=origin.environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["finished"] <= time.monotonic()
        compare(dataset, folder, name)
        assert strangers(dataset, folder) == []
    os.unlink(folder / "000" / "000001.bin")
    with pytest.raises(Exception, match=r"000001\.bin is not what the origin has"):
        compare(dataset, folder, "boto3")
