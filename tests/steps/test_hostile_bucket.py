"""A bucket with keys that no careful person would write, put there over the wire."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from argosy.steps.contract.arguments import SnapshotArgs, StageArgs


@pytest.fixture
def bucket(s3: Callable[[], str], moto_url: str) -> Any:
    """(uri, put): a fresh bucket and a plain boto3 put."""
    uri = s3()
    client = boto3.client("s3", endpoint_url=moto_url)

    def put(key: str, body: bytes = b"x") -> None:
        client.put_object(Bucket=uri.removeprefix("s3://"), Key=key, Body=body)

    yield uri, put
    client.close()


HOSTILE = [
    "ds/../escape", "ds/a//b", "ds//abs", "ds/./a", "ds/a\\b", "ds/a\x01b", "ds/..", "ds/x/../../../etc/p",
    "ds/a\x1b[31mb", "ds/.argosy-stage/complete.jsonl2/..", "ds/../_READY",
]  # fmt: skip


@pytest.mark.parametrize("key", HOSTILE)
def test_hostile_key_is_refused_and_never_lost_silently(key: str, bucket: Any, pods: Any) -> None:
    uri, put = bucket
    put("ds/good")
    put(key)
    told = pods.run(SnapshotArgs, dataset_uri=f"{uri}/ds")
    assert told.code != 0, f"{key!r} was not noticed: {told.outputs}"
    assert told.err.count("\n") == 1
    assert told.err[:-1].isprintable(), "a key cannot write to the terminal"
    assert told.outputs == {}


def test_folder_placeholders_are_no_files(bucket: Any, pods: Any, tmp_path: Any) -> None:
    uri, put = bucket
    for key in ("ds/", "ds/full/", "ds/full/a", "ds/hollow/", "ds/hollow/deeper/", "ds/empty-file"):
        put(key, b"")
    told = pods.run(SnapshotArgs, dataset_uri=f"{uri}/ds")
    assert told.outputs["objects"] == "2"
    given = {"mode": "shared", "layout": "replicated", "path": "/vol", "root": tmp_path / "pod"}
    digest = told.outputs["dataset-digest"]
    assert pods.run(StageArgs, dataset_digest=digest, **given).code == 0
    assert (tmp_path / "pod" / "vol" / digest / "full" / "a").is_file()


def test_a_placeholder_with_content_is_refused_by_its_whole_name(bucket: Any, pods: Any) -> None:
    uri, put = bucket
    put("ds/good")
    put("ds/a/")
    put("ds/")
    told = pods.run(SnapshotArgs, dataset_uri=f"{uri}/ds")
    assert (told.code, told.outputs) == (2, {})
    assert "'a/'" in told.err
    assert "''" in told.err, "the folder of the dataset itself"


ODD = [
    "ds/a b+c",
    "ds/ü/日本",
    "ds/100%",
    "ds/a%2Fb",
    "ds/q?x=1&y#z",
    "ds/~a",
    "ds/'q'",
    "ds/a*b",
    "ds/x[1]",
    "ds/e:f|g",
]


def test_odd_but_harmless_keys_arrive_as_they_are(bucket: Any, pods: Any, tmp_path: Any) -> None:
    uri, put = bucket
    for key in ODD:
        put(key, key.encode())
    digest = pods.run(SnapshotArgs, dataset_uri=f"{uri}/ds").outputs["dataset-digest"]
    told = pods.run(
        StageArgs, dataset_digest=digest, mode="shared", layout="replicated", path="/vol", root=tmp_path / "pod"
    )
    assert told.code == 0, told.err
    folder = tmp_path / "pod" / "vol" / digest
    for key in ODD:
        assert (folder / key.removeprefix("ds/")).read_bytes() == key.encode(), key


def test_case_collision_in_a_bucket_is_named(bucket: Any, pods: Any) -> None:
    uri, put = bucket
    put("ds/Train/a")
    put("ds/train/A")
    told = pods.run(SnapshotArgs, dataset_uri=f"{uri}/ds")
    assert told.code == 2
    assert "'train/A'" in told.err
    assert "'Train/a'" in told.err


def test_the_same_bytes_in_another_bucket_are_another_dataset(s3: Callable[[], str], write: Any, pods: Any) -> None:
    digests = set()
    for uri in (s3(), s3()):
        write(f"{uri}/ds", {"a": b"1"})
        digests.add(pods.run(SnapshotArgs, dataset_uri=f"{uri}/ds").outputs["dataset-digest"])
    assert len(digests) == 2, "a manifest names where its objects are read from"
    assert all(len(digest) == hashlib.sha256().digest_size * 2 for digest in digests)
