"""What a writer that was killed in the middle of an upload left: the next prune removes it, and only that."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.store import StoreError, open_store, uploads

BUCKET = "argosy-tests"
# Sends one part of a shard and is then killed by itself: the second part is answered by nobody.
KILLED = """
import os, sys, threading
from argosy.steps.checkpoint import CheckpointStore, Claim
from argosy.steps.store import open_store
checkpoints = CheckpointStore(open_store(sys.argv[1]), "run")
part = checkpoints.part(sys.argv[2], 0)
part.add_file("weights", memoryview(os.urandom(17 << 20)))
"""


@pytest.fixture
def client(s3_environment: str) -> Iterator[Any]:
    made = boto3.client("s3", endpoint_url=s3_environment)
    yield made
    made.close()


def under_way(client: Any, uri: str) -> set[str]:
    """Keys below the store's root with an unfinished upload."""
    root = uri.removeprefix(f"s3://{BUCKET}/")
    found = client.list_multipart_uploads(Bucket=BUCKET, Prefix=root).get("Uploads", [])
    return {upload["Key"].removeprefix(root + "/") for upload in found}


def save(checkpoints: CheckpointStore, claim: Any, step: int) -> Any:
    name = checkpoints.new_save(claim, step)
    part = checkpoints.part(name, 0)
    part.add_file("weights", memoryview(os.urandom(9 << 20)))
    return checkpoints.commit(claim, name, step, [part.finish()], kind="tensors", world_size=1, final=False)


def test_a_writer_killed_in_an_upload_leaves_nothing_after_the_next_prune(proxy: Any, client: Any) -> None:
    uri = f"s3://{BUCKET}/{uuid.uuid4().hex}/deep"
    checkpoints = CheckpointStore(open_store(uri), "run")
    claim = checkpoints.claim("first")
    kept = save(checkpoints, claim, 1)
    name = checkpoints.new_save(claim, 2)
    process: list[subprocess.Popen[bytes]] = []

    def kill_at_the_second_part(method: str, path: str, number: int) -> str:
        if method == "PUT" and "partNumber=2" in path and process:
            process[0].kill()
            return "drop"
        return ""

    proxy.fault = kill_at_the_second_part
    process.append(subprocess.Popen([sys.executable, "-c", KILLED, uri, name], env=dict(os.environ)))
    assert process[0].wait(60) == -9
    proxy.fault = lambda *_: ""
    torn = f"run/data/{name}/files/weights"
    assert under_way(client, uri) == {torn}
    # The same generation might still be writing it; the next one knows that nobody is.
    checkpoints.prune(1, claim)
    assert under_way(client, uri) == {torn}
    other_run = client.create_multipart_upload(Bucket=BUCKET, Key=f"{uri.split('/', 3)[3]}/else/data/{name}/x")
    newer = checkpoints.claim("second")
    own = f"run/data/{checkpoints.new_save(newer, 3)}/files/weights"
    client.create_multipart_upload(Bucket=BUCKET, Key=f"{uri.split('/', 3)[3]}/{own}")
    checkpoints.prune(1, newer)
    assert under_way(client, uri) == {own, f"else/data/{name}/x"}
    assert other_run["UploadId"]
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.digest == kept.digest
    checkpoints.verify(newest)


def test_an_upload_that_fails_aborts_itself(proxy: Any, client: Any) -> None:
    uri = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    store = open_store(uri)
    proxy.fault = lambda method, path, number: "before:403:AccessDenied" if "partNumber=2" in path else ""
    with pytest.raises(StoreError):
        store.upload("run/x", memoryview(os.urandom(17 << 20)))
    assert under_way(client, uri) == set()


def test_who_may_not_list_uploads_can_prune_all_the_same(proxy: Any, capfd: pytest.CaptureFixture[str]) -> None:
    checkpoints = CheckpointStore(open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}"), "run")
    claim = checkpoints.claim("first")
    made = [save(checkpoints, claim, step) for step in (1, 2)]
    proxy.fault = lambda method, path, number: "before:403:AccessDenied" if "uploads" in path else ""
    assert checkpoints.prune(1, claim) == [made[0].digest]
    assert "a lifecycle rule of the bucket can abort them" in capfd.readouterr().err


def test_a_gateway_that_says_there_are_more_uploads_and_not_where(proxy: Any, client: Any) -> None:
    root = uuid.uuid4().hex
    client.create_multipart_upload(Bucket=BUCKET, Key=f"{root}/run/data/torn")
    proxy.fault = lambda method, path, number: "more" if "uploads" in path else ""
    found = uploads.unfinished(open_store(f"s3://{BUCKET}/{root}"), "run/data")
    assert [upload.key for upload in found] == ["run/data/torn"]


def test_a_profile_that_only_boto3_reads_costs_no_checkpoint(
    s3_environment: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The keys stand in the environment, so commits went well; each prune ended its run, after it had removed all."""
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    checkpoints = CheckpointStore(open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}"), "run")
    claim = checkpoints.claim("first")
    old, new = save(checkpoints, claim, 1), save(checkpoints, claim, 2)
    assert checkpoints.prune(1, claim) == [old.digest]
    assert [each.digest for each in checkpoints.commits()] == [new.digest]
    checkpoints.prune(1, claim)
    assert capsys.readouterr().err.count("The config profile (nobody) could not be found") == 1
