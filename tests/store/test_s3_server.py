"""The server of tests/s3 answers as moto does, to boto3 too, and its faults are what they say."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from http.client import HTTPException
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError

from argosy.steps.store.cloud import CloudStore
from argosy.steps.store.creation import create_ours
from tests.s3 import KINDS, TRANSIENT, S3Server, at, at_random, on
from tests.store.conftest import BUCKET

Client = Any


def boto(endpoint: str, *, attempts: int = 1) -> Client:
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        # The bytes as they come: some tests want to see wrong ones.
        config=Config(
            retries={"total_max_attempts": attempts},
            s3={"addressing_style": "path"},
            response_checksum_validation="when_required",
        ),
    )


@pytest.fixture(params=["moto", "own", "forwarding"])
def client(request: pytest.FixtureRequest, s3_endpoint: str, own_s3: S3Server) -> Iterator[Client]:
    with S3Server((BUCKET,), forward=s3_endpoint) as forwarding:
        made = boto({"moto": s3_endpoint, "own": own_s3.endpoint, "forwarding": forwarding.endpoint}[request.param])
        yield made
        made.close()


def refused(use: Callable[..., Any], **given: Any) -> tuple[int, str]:
    with pytest.raises(ClientError) as caught:
        use(Bucket=BUCKET, **given)
    told = caught.value.response
    return told["ResponseMetadata"]["HTTPStatusCode"], told["Error"]["Code"]


def test_objects_and_conditions(client: Client) -> None:
    key = f"{uuid.uuid4().hex}/a b+é%20#"
    etag = client.put_object(Bucket=BUCKET, Key=key, Body=b"0123456789", IfNoneMatch="*")["ETag"]
    assert refused(client.put_object, Key=key, Body=b"x", IfNoneMatch="*") == (412, "PreconditionFailed")
    assert refused(client.get_object, Key=key + "x") == (404, "NoSuchKey")
    assert refused(client.head_object, Key=key + "x")[0] == 404
    assert refused(client.get_object, Key=key, IfMatch='"other"') == (412, "PreconditionFailed")
    assert refused(client.get_object, Key=key, IfNoneMatch=etag)[0] == 304
    assert refused(client.get_object, Key=key, Range="bytes=10-") == (416, "InvalidRange")
    for asked, told in (("2-4", b"234"), ("8-20", b"89"), ("7-", b"789"), ("-3", b"789")):
        found = client.get_object(Bucket=BUCKET, Key=key, Range=f"bytes={asked}", IfMatch=etag)
        assert (found["Body"].read(), found["ETag"]) == (told, etag)
        assert found["ContentRange"].endswith("/10")
    head = client.head_object(Bucket=BUCKET, Key=key)
    assert (head["ContentLength"], head["ETag"]) == (10, etag)
    assert client.put_object(Bucket=BUCKET, Key=key, Body=b"new", IfMatch=etag)["ETag"] != etag
    assert refused(client.put_object, Key=key, Body=b"x", IfMatch=etag) == (412, "PreconditionFailed")
    assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"new"
    client.delete_object(Bucket=BUCKET, Key=key)
    assert refused(client.get_object, Key=key) == (404, "NoSuchKey")


def test_listings_by_pages_and_folders(client: Client) -> None:
    prefix = uuid.uuid4().hex
    names = [f"{prefix}/{folder}/{n}&é" for folder in ("a", "b", "b c") for n in range(3)] + [f"{prefix}/z"]
    for name in names:
        client.put_object(Bucket=BUCKET, Key=name, Body=name.encode())
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Prefix=prefix, PaginationConfig={"PageSize": 4}
    )
    listed = [one for page in pages for one in page["Contents"]]
    assert [one["Key"] for one in listed] == sorted(names)
    assert all(one["Size"] == len(one["Key"].encode()) and one["ETag"].startswith('"') for one in listed)
    top = client.list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/", Delimiter="/")
    assert [one["Prefix"] for one in top["CommonPrefixes"]] == [f"{prefix}/{name}/" for name in ("a", "b c", "b")]
    assert [one["Key"] for one in top["Contents"]] == [f"{prefix}/z"]
    after = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix, StartAfter=sorted(names)[-2])
    assert [one["Key"] for one in after["Contents"]] == [f"{prefix}/z"]
    client.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": name} for name in names]})
    assert client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["KeyCount"] == 0


def test_uploads_in_parts(client: Client) -> None:
    key = uuid.uuid4().hex
    data = os.urandom((5 << 20) + 10)

    def upload(parts: list[bytes], **conditions: str) -> dict[str, Any]:
        name = client.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
        told = [
            {
                "PartNumber": number,
                "ETag": client.upload_part(Bucket=BUCKET, Key=key, UploadId=name, PartNumber=number, Body=part)["ETag"],
            }
            for number, part in enumerate(parts, 1)
        ]
        given = {"Key": key, "UploadId": name, "MultipartUpload": {"Parts": told}, **conditions}
        assert len(client.list_parts(Bucket=BUCKET, Key=key, UploadId=name)["Parts"]) == len(parts)
        return given

    given = upload([data[: 5 << 20], data[5 << 20 :]], IfNoneMatch="*")
    made = client.complete_multipart_upload(Bucket=BUCKET, **given)
    assert made["ETag"].endswith('-2"')
    assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == data
    assert refused(client.complete_multipart_upload, **upload([b"z"], IfNoneMatch="*")) == (412, "PreconditionFailed")
    small = upload([b"a", b"b"])
    assert refused(client.complete_multipart_upload, **small) == (400, "EntityTooSmall")
    for one in client.list_multipart_uploads(Bucket=BUCKET, Prefix=key)["Uploads"]:
        client.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=one["UploadId"])
    assert "Uploads" not in client.list_multipart_uploads(Bucket=BUCKET, Prefix=key)


@pytest.fixture
def struck(s3_environment: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with S3Server((BUCKET,)) as server:
        server.slow_seconds = 0.05
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        yield server


DONE = ("error-after", "reset-after", "cut", "slow", "truncated", "wrong-bytes")
"""Faults whose request is carried out."""


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_fault_is_what_it_says(struck: S3Server, kind: str) -> None:
    client = boto(struck.endpoint)
    body = b"x" * (1 << 20)
    operation, conditions = ("PutObject", {"IfNoneMatch": "*"})
    if kind in ("truncated", "wrong-bytes"):
        operation, conditions = "GetObject", {}
        client.put_object(Bucket=BUCKET, Key="k", Body=body)
    if kind == "complete-error":
        name = client.create_multipart_upload(Bucket=BUCKET, Key="k")["UploadId"]
        etag = client.upload_part(Bucket=BUCKET, Key="k", UploadId=name, PartNumber=1, Body=body)["ETag"]
        parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
        struck.begin(on("CompleteMultipartUpload", kind))
        assert refused(client.complete_multipart_upload, Key="k", UploadId=name, MultipartUpload=parts)[1] == (
            "InternalError"
        )
    elif operation == "GetObject":
        struck.begin(on(operation, kind))
        assert client.get_object(Bucket=BUCKET, Key="k")["Body"].read() != body
    else:
        struck.begin(on(operation, kind))
        try:
            client.put_object(Bucket=BUCKET, Key="k", Body=body, **conditions)
        except (ClientError, HTTPClientError):
            assert kind not in ("slow", "truncated")
    if kind == "complete-error":
        client.abort_multipart_upload(Bucket=BUCKET, Key="k", UploadId=name)
        again = {"Key": "k", "UploadId": name, "MultipartUpload": parts}
        assert refused(client.complete_multipart_upload, **again) == (404, "NoSuchUpload")
    assert ("k" in struck.buckets[BUCKET].objects) == (kind in DONE)
    assert [seen.fault for seen in struck.requests if seen.fault] == [kind]
    client.close()


def test_a_seed_gives_the_same_faults_again(struck: S3Server) -> None:
    def log() -> list[tuple[str, str]]:
        struck.begin(at_random(7, 0.3))
        for number in range(80):
            # A connection each: on one that is kept, a request may be lost before the server has seen it.
            body = b"x" * 10 if number % 2 else None
            asked = Request(f"{struck.endpoint}/{BUCKET}/k", body, method="PUT" if body else "GET")
            with contextlib.suppress(OSError, HTTPException), urlopen(asked, timeout=10) as answer:
                answer.read()
        return [(seen.operation, seen.fault) for seen in struck.requests]

    first = log()
    assert first == log()
    assert {fault for _, fault in first} > {"", "slow-down", "cut", "error-after"}
    assert {fault for _, fault in first} <= {"", *TRANSIENT}


@pytest.mark.parametrize(
    "kind", ["reset-before", "reset-request", "reset-after", "error-after", "slow-down", "conflict"]
)
def test_a_create_survives_a_lost_connection(struck: S3Server, s3_environment: str, kind: str) -> None:
    """A gang must not end because one connection was reset while it committed."""
    struck.begin(on("PutObject", kind))
    store = CloudStore(f"s3://{BUCKET}/created", retry_seconds=10)
    assert create_ours(store, "entry", b"ours")
    assert not create_ours(store, "entry", b"theirs")
    assert store.get("entry") == b"ours"


def test_a_storm_ends(struck: S3Server, impatient: Callable[[str], CloudStore]) -> None:
    struck.begin(at(0, "slow-down", 2))
    impatient(BUCKET).put("k", b"1")
    assert [seen.status for seen in struck.requests] == [503, 503, 200]


def test_as_a_process_it_tells_its_endpoint_and_what_it_did() -> None:
    command = [sys.executable, "-m", "tests.s3", "--fault-rate", "1", "--kinds", "slow-down", "--bucket", "b"]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        client = boto(process.stdout.readline().strip())
        with pytest.raises(ClientError, match="SlowDown"):
            client.get_object(Bucket="b", Key="k")
        client.close()
        process.terminate()
        _, told = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "1 requests, 1 went wrong (seed 20261121):\nslow-down=1" in told
    assert time.monotonic() - began < 10
