"""Mode stream: the stage step reads the data once per version, so that the ranks can verify any range of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy import RecordSamples, StreamingDataset
from argosy.steps.contract import env
from argosy.steps.contract.arguments import SnapshotArgs, StageArgs
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.layout import derived_key, run_prefix
from argosy.steps.data.stored_manifest import load_manifest, save_manifest
from argosy.steps.store import open_store

Write = Callable[[str, dict[str, bytes]], None]
STREAM = {"mode": "stream", "layout": "replicated"}


def test_checksums_are_taken_once_and_serve_the_ranks(
    any_pods: Any, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    uri = str(any_pods.store_uri).rsplit("/", 1)[0] + "/corpus/v1"
    content = random.Random(1).randbytes(300_000)
    write(uri, {"a": content[:100_000], "b": content[100_000:], "empty": b""})
    digest = any_pods.run(SnapshotArgs, dataset_uri=uri).outputs["dataset-digest"]
    for workflow, fetched in (("wf-1", 300_000), ("wf-2", 0)):
        told = any_pods.run(StageArgs, workflow, dataset_digest=digest, **STREAM)
        assert (told.code, told.outputs["bytes"]) == (0, "300000"), told.err
        (event,) = any_pods.events(workflow, "staged")
        assert (event.fields["bytes"], event.fields["fetched_bytes"]) == (300_000, fetched)
    for name, value in any_pods.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(env.RUN_URI, f"{any_pods.store_uri}/{run_prefix('run', 'wf-1')}")
    monkeypatch.setenv(env.RUN_NAME, "run")
    monkeypatch.setenv(env.RUN_ID, "wf-1")
    monkeypatch.setenv(env.DATA_URI, uri)
    monkeypatch.setenv(env.DATASET_DIGEST, digest)
    monkeypatch.chdir(tmp_path)
    with StreamingDataset(samples=RecordSamples(1000)) as data:
        assert b"".join(data.__getitems__(list(range(300)))) == content
        assert data.statistics.fetched_bytes <= 300_000
    assert not (tmp_path / ".argosy").exists(), "in a run everything lies in the run's store"


def test_what_the_store_cannot_hold_is_told(pods: Any, write: Write, tmp_path: Path) -> None:
    write(f"file://{tmp_path}/data", {"a": b"1" * 1000})
    digest = pods.run(SnapshotArgs, dataset_uri=f"file://{tmp_path}/data").outputs["dataset-digest"]
    told = pods.run(StageArgs, dataset_digest=digest, **STREAM, verify="sha1")
    assert (told.code, "verify = 'sha1': use blocks or etag" in told.err) == (2, True)
    assert pods.run(StageArgs, dataset_digest=digest, **STREAM, verify="etag").code == 0
    assert pods.store.head(derived_key("run", digest, "blocks")) is None


def test_an_object_is_asked_for_in_its_version(pods: Any, s3: Callable[[], str], moto_url: str, write: Write) -> None:
    """The current one is another, and empty; who may read the current one need not be allowed to read versions."""
    import boto3

    uri = f"{s3()}/set"
    bucket = uri.split("/")[2]
    client = boto3.client("s3", endpoint_url=moto_url)
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = client.put_object(Bucket=bucket, Key="set/a", Body=b"12345")
    client.put_object(Bucket=bucket, Key="set/a", Body=b"")
    client.close()
    row = {"key": "a", "size": 5, "etag": first["ETag"], "version": first["VersionId"]}
    write(str(pods.store_uri), {"listing": json.dumps(row).encode()})
    listing = f"{pods.store_uri}/listing"
    digest = pods.run(SnapshotArgs, dataset_uri=uri, dataset_manifest=listing).outputs["dataset-digest"]
    told = pods.run(StageArgs, dataset_digest=digest, **STREAM, verify="etag")
    assert told.code == 0, told.err


def test_etags_that_are_not_there_verify_nothing(pods: Any, write: Write, tmp_path: Path) -> None:
    write(uri := f"file://{tmp_path}/data", {"a": b"12345"})
    write(str(pods.store_uri), {"listing": b'{"key": "a", "size": 5}'})
    given = {"dataset_uri": uri, "dataset_manifest": f"{pods.store_uri}/listing"}
    digest = pods.run(SnapshotArgs, **given).outputs["dataset-digest"]
    told = pods.run(StageArgs, dataset_digest=digest, **STREAM, verify="etag")
    assert (told.code, "neither ETag nor version of object 'a'" in told.err) == (2, True), told.err
    assert pods.run(StageArgs, dataset_digest=digest, **STREAM).code == 0, "blocks need none"
    manifest, index = load_manifest(pods.store, "run", digest), f"file://{tmp_path}/index"
    save_manifest(open_store(index), "stream", manifest)
    with pytest.raises(InputError, match="neither ETag nor version"):
        StreamingDataset(uri, index=index, digest=digest, verify="etag")
    with StreamingDataset(uri, index=index, digest=digest) as data:
        assert data[0]["data"] == b"12345"
