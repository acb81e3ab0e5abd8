"""Against moto with authorization on: it computes each signature again with botocore, and refuses what differs."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest
from moto import settings
from moto.server import ThreadedMotoServer

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import ObjectInfo, StoreError
from argosy.steps.store.s3_settings import Identity, Keys
from argosy.steps.transfer import crc
from argosy.steps.transfer.checksums import stored_checksums
from argosy.steps.transfer.pages import objects_below
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from tests.transfer.conftest import Folder

KEY = "deep/a b+é%20~'()"
DATA = bytes(range(256)) * 100


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The ETag of an object that only the keys in the environment may read."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    there = {"endpoint_url": f"http://{host}:{port}", "region_name": "us-east-1"}
    made = {service: boto3.client(service, **there) for service in ("iam", "s3")}  # type: ignore[call-overload]
    user = uuid.uuid4().hex
    made["iam"].create_user(UserName=user)
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": ["s3:Get*", "s3:List*"], "Resource": "*"}],
    }
    made["iam"].put_user_policy(UserName=user, PolicyName="p", PolicyDocument=json.dumps(policy))
    keys = made["iam"].create_access_key(UserName=user)["AccessKey"]
    made["s3"].create_bucket(Bucket="guarded")
    etag = made["s3"].put_object(Bucket="guarded", Key=KEY, Body=DATA, ChecksumAlgorithm="CRC32")["ETag"]
    monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", there["endpoint_url"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["SecretAccessKey"])
    yield etag
    for client in made.values():
        client.close()
    server.stop()


def test_signatures_are_accepted(guarded: str, folder: Folder) -> None:
    pieces = [
        Piece(0, KEY, len(DATA), guarded, "", 0, len(DATA), "whole"),
        Piece(1, KEY, len(DATA), guarded, "", 100, 200, "part"),
    ]
    told = folder.carry("s3://guarded", pieces)
    assert isinstance(told[1], Arrived)
    assert told[0] == Arrived(
        0,
        {name: crc.crc(name, DATA) for name in ("crc64nvme", "crc32")},
        ("crc32",),
    )
    assert folder.read("whole") == DATA
    assert folder.read("part")[100:] == DATA[100:300]


def test_a_signed_listing_is_accepted(guarded: str) -> None:
    folder, _, name = KEY.partition("/")
    assert list(objects_below(f"s3://guarded/{folder}")) == [ObjectInfo(name, len(DATA), guarded)]


def test_a_wrong_secret_is_refused(guarded: str, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    result = folder.carry("s3://guarded", [Piece(0, KEY, len(DATA), guarded, "", 0, len(DATA), "whole")])[0]
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.S3_ACCESS
    assert "403 SignatureDoesNotMatch" in str(result.error)
    with pytest.raises(Exception, match="was refused"):
        list(stored_checksums("s3://guarded", [(KEY, guarded)]))
    with pytest.raises(Exception, match="403 SignatureDoesNotMatch"):
        list(objects_below("s3://guarded"))


def test_keys_that_are_still_good_outlast_whoever_gave_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore asks ten minutes before they end; who gives them may be away for as long."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    ends = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    given = {"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c", "Expiration": ends}
    (tmp_path / "given").write_text(json.dumps(given))
    (tmp_path / "config").write_text(f"[default]\ncredential_process = cat {tmp_path}/given\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    identity = Identity("s3://b")
    assert identity.keys() == Keys("a", "b", "c")
    (tmp_path / "given").unlink()
    assert identity.keys() == Keys("a", "b", "c")
    with pytest.raises(StoreError, match="cannot get AWS credentials"):
        identity.renew()  # which is asked when the store has refused them
