"""A real S3 server (moto) on loopback, and a proxy before it that answers as broken networks do."""

from __future__ import annotations

import contextlib
import http.client
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest

from argosy.steps.store import ObjectStore, open_store
from argosy.steps.store.cloud import CloudStore
from benchmarks.staging.origin.process import Origin
from tests.s3 import S3Server
from tests.s3.moto import moto

BUCKET = "argosy-tests"
Fault = Callable[[str, str, int], str]
"""(method, path, number of this request from 0) -> "", "before:CODE:NAME", "after:CODE:NAME", "drop", "cut", "more"."""


class S3Proxy:
    """Serves until :meth:`close`; ``fault`` decides about each request."""

    def __init__(self, endpoint: str) -> None:
        self.fault: Fault = lambda method, path, number: ""
        self.requests: list[tuple[str, str]] = []
        self.forget: set[str] = set()
        """Request headers (lower case) that do not reach the store."""
        proxy, target, lock = self, urlsplit(endpoint).netloc, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                with lock:
                    number = len(proxy.requests)
                    proxy.requests.append((self.command, self.path))
                    fault = proxy.fault(self.command, self.path, number)
                if fault.startswith("before:"):
                    return self.refuse(fault)
                if fault == "drop":
                    self.close_connection = True
                    return None
                headers_kept = {k: v for k, v in self.headers.items() if k.lower() not in proxy.forget}
                with contextlib.closing(http.client.HTTPConnection(target, timeout=60)) as upstream:
                    upstream.request(self.command, self.path, body, headers_kept)
                    answer = upstream.getresponse()
                    data, headers = answer.read(), answer.getheaders()
                if fault.startswith("after:"):
                    return self.refuse(fault)
                if fault == "more":  # a page that says that it is not the last
                    data = data.replace(b"<IsTruncated>false", b"<IsTruncated>true")
                self.send_response(answer.status)
                for name, value in headers:
                    if name.lower() not in ("connection", "transfer-encoding", "date", "server", "content-length"):
                        self.send_header(name, value)
                length = {n.lower(): v for n, v in headers}.get("content-length", str(len(data)))
                self.send_header("content-length", length if self.command == "HEAD" else str(len(data)))
                self.end_headers()
                if fault == "cut":
                    self.close_connection = True
                    data = data[: len(data) // 2]
                self.wfile.write(data)
                return None

            def refuse(self, fault: str) -> None:
                _, code, name = fault.split(":")
                text = f"<Error><Code>{name}</Code><Message>made by the test</Message></Error>"
                data = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()  # as AWS begins it
                self.send_response(int(code))
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else data)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = serve

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with moto() as endpoint:
        client = boto3.client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        client.create_bucket(Bucket=BUCKET)
        client.close()
        yield endpoint


@pytest.fixture
def s3_environment(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    return s3_endpoint


@pytest.fixture(scope="session")
def own_s3() -> Iterator[S3Server]:
    with S3Server((BUCKET,)) as server:
        yield server


@pytest.fixture(scope="session")
def origin_s3() -> Iterator[Origin]:
    with Origin(buckets=(BUCKET,)) as origin:
        yield origin


@pytest.fixture(params=["file", "s3", "own-s3", "origin-s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """``own-s3``: the server of tests/s3, ``origin-s3``: that of the benchmarks; both must promise what moto does."""
    if request.param == "file":
        return open_store(f"file://{tmp_path}/store")
    if request.param in ("own-s3", "origin-s3"):
        request.getfixturevalue("s3_environment")
        monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue(request.param.replace("-", "_")).endpoint)
        return open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}/deep")
    request.getfixturevalue("s3_environment")
    return open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}/deep")


@pytest.fixture
def impatient(s3_environment: str) -> Callable[[str], CloudStore]:
    """An S3 store below a prefix of its own that gives up after a moment."""

    def opened(path: str) -> CloudStore:
        return CloudStore(f"s3://{path}", retry_seconds=0.3)

    return opened


@pytest.fixture
def proxy(s3_environment: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    served = S3Proxy(s3_environment)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", served.endpoint)
    yield served
    served.close()
