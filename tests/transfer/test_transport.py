"""The library takes over where the wire does not know the way, or what it is answered."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from argosy.steps.transfer.site import Site
from tests.s3 import S3Server
from tests.transfer.conftest import BUCKET, Folder, Put, both
from tests.transfer.raw import Proxy, RawServer

BODY = bytes(range(256)) * 40
LONG_EXTENSION = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x;note=%s\r\n%s\r\n0\r\n\r\n" % (
    len(BODY),
    b"y" * 3000,
    BODY,
)
"""Right, and more than the wire takes for the head of a chunk."""


def whole(number: int) -> Piece:
    return Piece(number, f"k{number}", len(BODY), "", "", 0, len(BODY), f"part-{number}")


def test_answers_that_the_wire_does_not_know_are_read_by_the_library(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with RawServer(lambda number, head: LONG_EXTENSION) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        told = folder.fetch("s3://surprising", [whole(number) for number in range(20)], workers=2)
    assert all(isinstance(result, Arrived) for result in told.values()), told
    assert {folder.read(f"part-{number}") for number in range(20)} == {BODY}
    said = capfd.readouterr().err
    assert said.count("the library") == 1, "two workers met it, people are told once"
    assert "s3://surprising" in said
    assert "a chunk's head is too long" in said


def test_the_wire_alone_names_what_it_does_not_know(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_S3_TRANSPORT", "wire")
    with RawServer(lambda number, head: LONG_EXTENSION) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        result = folder.carry("s3://b", [whole(0)], patience=0.3)[0]
    assert isinstance(result, Failed)
    assert "a chunk's head is too long" in str(result.error)


def test_what_a_store_answers_plainly_is_no_surprise(
    server: S3Server, folder: Folder, put: Put, capfd: pytest.CaptureFixture[str]
) -> None:
    gone = put("gone", b"1")
    server.buckets[BUCKET].delete("gone")
    assert isinstance(folder.fetch(f"s3://{BUCKET}", [gone])[gone.number], Failed)
    assert "the library" not in capfd.readouterr().err


def test_a_proxy_over_tls(
    server: S3Server, folder: Folder, put: Put, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.with_name("server.pem"))
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    piece = put("k", BODY)
    with Proxy(tls=context) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"https://127.0.0.1:{proxy.port}")
        assert isinstance(folder.carry(f"s3://{BUCKET}", [piece])[piece.number], Arrived)
        monkeypatch.setenv("ARGOSY_S3_TRANSPORT", "wire")
        with pytest.raises(StoreError, match=r"the proxy is spoken to over TLS.*write auto") as caught:
            Site(f"s3://{BUCKET}")
    assert caught.value.cause == Cause.S3_ACCESS
    assert folder.read(piece.part) == BODY
    assert proxy.asked == [f"GET {server.endpoint}/{BUCKET}/k HTTP/1.1"]


def test_a_transport_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_S3_TRANSPORT", "fast")
    with pytest.raises(StoreError, match="ARGOSY_S3_TRANSPORT = 'fast': write auto, wire or library"):
        Site("s3://b")


NO_LENGTH = b"HTTP/1.0 200 OK\r\n\r\n" + BODY + b"<hang up>"
ZIPPED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + b"\x1f\x8b" + b"\0" * 18
AWS_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Encoding: aws-chunked\r\nContent-Length: 13\r\n\r\n5\r\nhello\r\n0\r\n"
NOWHERE = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"


@both
@pytest.mark.parametrize(
    ("answer", "cause", "words"),
    [
        (b"garbage of HTTP/0.9<hang up>", Cause.STORE_UNAVAILABLE, "the store did not serve it"),
        (NOWHERE, Cause.S3_ACCESS, "the bucket is elsewhere"),
        (ZIPPED, Cause.S3_MISSING, "has 20 bytes, not 10240"),
        (AWS_CHUNKED, Cause.S3_MISSING, "has 13 bytes, not 10240"),
        (b"HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\n\r\n", Cause.S3_ACCESS, "the store answered 418"),
    ],
    ids=["http-0.9", "redirect to nowhere", "gzip", "aws-chunked", "no status of S3"],
)
def test_one_clear_error(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, answer: bytes, cause: Cause, words: str
) -> None:
    with RawServer(lambda number, head: answer) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        result = folder.carry("s3://b", [whole(0)], patience=0.3)[0]
    assert isinstance(result, Failed)
    assert result.error.cause == cause
    assert words in str(result.error)


@pytest.mark.parametrize("transport", ["auto", "wire"], indirect=True)
def test_a_body_that_ends_with_its_connection(folder: Folder, transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of HTTP/1.0; the library does not know it, so it is good that the wire is asked first."""
    with RawServer(lambda number, head: NO_LENGTH) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        assert isinstance(folder.carry("s3://b", [whole(0)])[0], Arrived)
    assert folder.read("part-0") == BODY
