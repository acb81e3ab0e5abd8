"""Other people's S3 servers as processes on loopback: what none of us wrote must be read, too.

``moto`` comes with the development environment. The others are looked for in PATH and in ``~/go/bin``:

    go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
    CGO_ENABLED=0 go install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
    go install github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.s3.bucket import Bucket, Stored

KEYS = {"AWS_ACCESS_KEY_ID": "argosytests", "AWS_SECRET_ACCESS_KEY": "of-no-secret", "AWS_REGION": "us-east-1"}
_READY_SECONDS = 60.0
_PLAIN = re.compile("[a-z0-9-]+(?:[./][a-z0-9-]+)*")


class NoServer(Exception):
    """It cannot be had here."""


def _moto(port: int, folder: Path) -> list[str]:
    return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]


def _versitygw(port: int, folder: Path) -> list[str]:
    return [_found("versitygw"), "--port", f"127.0.0.1:{port}", "--region", "us-east-1", "posix", str(folder)]


def _minio(port: int, folder: Path) -> list[str]:
    return [_found("minio"), "server", "--quiet", "--address", f"127.0.0.1:{port}", str(folder)]


def _gofakes3(port: int, folder: Path) -> list[str]:
    return [_found("gofakes3"), "-host", f"127.0.0.1:{port}", "-backend", "memory"]


PROGRAMS: dict[str, Callable[[int, Path], list[str]]] = {
    "moto": _moto,
    "versitygw": _versitygw,
    "minio": _minio,
    "gofakes3": _gofakes3,
}
CHECK_SIGNATURES = ("versitygw", "minio")


def _found(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path=str(Path.home() / "go" / "bin"))
    if path is None:
        raise NoServer(f"no program {name} in PATH")
    return path


@contextmanager
def serving(name: str, folder: Path) -> Iterator[str]:
    """The endpoint of a server that is empty.

    Raises:
        NoServer: it is not here, or does not start.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder.mkdir(parents=True)
    secret = {"ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
    secret |= {"MINIO_ROOT_USER": KEYS["AWS_ACCESS_KEY_ID"], "MINIO_ROOT_PASSWORD": KEYS["AWS_SECRET_ACCESS_KEY"]}
    secret |= {"MINIO_BROWSER": "off", "MINIO_UPDATE": "off"}
    command = PROGRAMS[name](port, folder)
    log = folder.with_suffix(".log").open("wb")
    with log, subprocess.Popen(command, env={**os.environ, **secret}, stdout=log, stderr=log) as process:
        try:
            endpoint = f"http://127.0.0.1:{port}"
            _wait(name, process, endpoint)
            yield endpoint
        finally:
            process.kill()


def client_of(endpoint: str) -> Any:
    """boto3's client of a server here."""
    config = Config(s3={"addressing_style": "path"}, connect_timeout=5, retries={"total_max_attempts": 1})
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=KEYS["AWS_REGION"],
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        config=config,
    )


def _wait(name: str, process: subprocess.Popen[bytes], endpoint: str) -> None:
    client, deadline = client_of(endpoint), time.monotonic() + _READY_SECONDS
    while True:
        try:
            client.list_buckets()
            return
        except (BotoCoreError, ClientError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoServer(f"{name} does not serve: {error}") from error
            time.sleep(0.1)
        finally:
            client.close()


class NotStored(Exception):
    """The server does not take this key."""


class RemoteBucket(Bucket):
    """A bucket of such a server, filled by boto3."""

    def __init__(self, endpoint: str, name: str) -> None:
        super().__init__()
        self._client, self._name = client_of(endpoint), name
        self._client.create_bucket(Bucket=name)

    def put(self, key: str, data: bytes, *, absent: bool = False, match: str = "") -> Stored:
        """Raises NotStored: it is refused, or listed under another name (versitygw's folders, control characters)."""
        try:
            self._client.put_object(Bucket=self._name, Key=key, Body=data)
            if not _PLAIN.fullmatch(key):
                self._check_listed(key)
        except (BotoCoreError, ClientError, UnicodeEncodeError) as error:
            raise NotStored(f"{key!r}: {error}") from error
        return super().put(key, data)

    def _check_listed(self, key: str) -> None:
        found = self._client.list_objects_v2(Bucket=self._name, Prefix=key).get("Contents", [])
        if key not in [one["Key"] for one in found]:
            self._client.delete_object(Bucket=self._name, Key=key)
            raise NotStored(f"{key!r} is listed under another name")

    def replace(self, objects: dict[str, Stored]) -> None:
        """Everything away; nothing else is asked of it."""
        assert not objects
        for key in self.objects:
            self._client.delete_object(Bucket=self._name, Key=key)
        super().replace(objects)
