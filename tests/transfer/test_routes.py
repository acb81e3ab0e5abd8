"""TLS, proxies, regions and identities."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.store.cloud import CloudStore
from argosy.steps.transfer.answers import Head
from argosy.steps.transfer.jobs import Again
from argosy.steps.transfer.pages import objects_below
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from argosy.steps.transfer.site import Site
from tests.s3 import S3Server
from tests.transfer.conftest import BUCKET, Folder, both
from tests.transfer.raw import Proxy

DATA = bytes(range(256)) * 8000
URI = f"s3://{BUCKET}"


def piece(etag: str, number: int = 0) -> Piece:
    return Piece(number, "k", len(DATA), etag, "", 0, len(DATA), f"part-{number}")


@pytest.fixture
def secure(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.with_name("server.pem"))
    with S3Server((BUCKET,), tls=context) as served:
        monkeypatch.setenv("AWS_ENDPOINT_URL", served.endpoint)
        yield served


@both
def test_tls_with_certificates_of_ones_own(
    secure: S3Server, certificate: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    etag = secure.buckets[BUCKET].put("k", DATA).etag
    told = folder.fetch(URI, [piece(etag, number) for number in range(40)])
    assert all(isinstance(result, Arrived) for result in told.values()), told
    assert {folder.read(f"part-{number}") for number in range(40)} == {DATA}
    assert [one.etag for one in objects_below(URI)] == [etag]


def test_obstore_trusts_the_same_certificates(
    secure: S3Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    secure.buckets[BUCKET].put("k", DATA)
    assert CloudStore(URI, retry_seconds=1).get("k") == DATA


def test_a_certificate_that_is_not_trusted(secure: S3Server, folder: Folder) -> None:
    result = folder.carry(URI, [piece("")])[0]
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.S3_ACCESS
    assert "AWS_CA_BUNDLE" in str(result.error)
    with pytest.raises(StoreError, match=r"cannot list .* AWS_CA_BUNDLE"):
        list(objects_below(URI))
    assert not secure.requests


@both
@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_certificates_that_are_none(
    secure: S3Server, folder: Folder, tmp_path: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "ca.pem"
    if content is not None:
        bundle.write_bytes(content)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    result = folder.fetch(URI, [piece("")])[0]
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.S3_ACCESS
    assert f"AWS_CA_BUNDLE = '{bundle}'" in str(result.error)


@both
def test_through_a_proxy(server: S3Server, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    etag = server.buckets[BUCKET].put("k", DATA).etag
    with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://us%40er:pass@127.0.0.1:{proxy.port}")
        told = folder.carry(URI, [piece(etag)])
    assert isinstance(told[0], Arrived)
    assert folder.read("part-0") == DATA
    assert proxy.asked == [f"GET {server.endpoint}/{BUCKET}/k HTTP/1.1"]
    (told_proxy,) = proxy.authorizations
    assert told_proxy.lower() == f"proxy-authorization: basic {base64.b64encode(b'us@er:pass').decode()}".lower()
    assert len(server.requests) == 1


@both
def test_through_a_tunnel(secure: S3Server, certificate: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    etag = secure.buckets[BUCKET].put("k", DATA).etag
    with Proxy() as proxy:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
        told = folder.carry(URI, [piece(etag)])
    assert isinstance(told[0], Arrived)
    assert folder.read("part-0") == DATA
    assert proxy.asked == [f"CONNECT 127.0.0.1:{secure.port} HTTP/1.1"]


def test_a_proxy_that_refuses(secure: S3Server, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxy(refuse=b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        result = folder.carry(URI, [piece("")], patience=0.2)[0]
    assert isinstance(result, Failed)
    assert "the proxy answered 407 to CONNECT" in str(result.error)


@both
def test_no_proxy(server: S3Server, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    etag = server.buckets[BUCKET].put("k", DATA).etag
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    assert isinstance(folder.carry(URI, [piece(etag)])[0], Arrived)


@both
def test_a_proxy_of_another_kind(server: S3Server, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(StoreError, match="'socks5'; use http://host:port"):
        Site(URI)


def test_a_bucket_of_another_region_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; the second time it is said."""
    site = Site("s3://the-bucket")
    assert site.route.host == "the-bucket.s3.us-east-1.amazonaws.com"
    moved = Head(b"HTTP/1.1 301 Moved\r\nx-amz-bucket-region: eu-west-1")
    assert isinstance(site.refused(moved, b"", "k", "", site.generation), Again)
    assert site.route.host == "the-bucket.s3.eu-west-1.amazonaws.com"
    assert b"/eu-west-1/s3/aws4_request" in site.request("GET", "k")
    assert isinstance(site.refused(moved, b"", "k", "", site.generation - 1), Again), "asked before it was known"
    again = site.refused(moved, b"", "k", "", site.generation)
    assert isinstance(again, StoreError)
    assert "set AWS_REGION" in str(again)


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ({}, "https://b-1.s3.us-east-1.amazonaws.com"),
        ({"AWS_REGION": "cn-north-1"}, "https://b-1.s3.cn-north-1.amazonaws.com.cn"),
        ({"AWS_ENDPOINT_URL": "https://x.example/"}, "https://x.example/b-1"),
        ({"AWS_ENDPOINT_URL": "https://y", "AWS_ENDPOINT_URL_S3": "http://x:9000"}, "http://x:9000/b-1"),
        ({"AWS_ENDPOINT_URL": "https://x", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}, "https://b-1.x"),
    ],
)
def test_where_a_bucket_is(given: dict[str, str], base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    request = Site("s3://b-1/prefix").request("GET", "k").decode()
    host, _, path = base.partition("://")[2].partition("/")
    assert f"\r\nhost: {host}\r\n" in request
    assert request.startswith(f"GET /{path}/prefix/k HTTP/1.1\r\n".replace("//", "/"))


def test_a_dot_in_the_bucket_is_no_host() -> None:
    assert Site("s3://a.b").request("GET", "k").startswith(b"GET /a.b/k HTTP/1.1\r\n")


def test_requester_pays_and_anonymous(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REQUEST_PAYER", "requester")
    assert b"\r\nx-amz-request-payer: requester\r\n" in Site("s3://b").request("GET", "k")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    assert b"authorization" not in Site("s3://b").request("GET", "k")


def test_keys_of_a_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """boto3's chain: a profile's keys and region."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    config = tmp_path / "config"
    config.write_text(
        "[profile p]\nregion = eu-north-1\naws_access_key_id = AKP\naws_secret_access_key = s\naws_session_token = t\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_PROFILE", "p")
    request = Site("s3://b").request("GET", "k")
    assert b"Credential=AKP/" in request
    assert b"/eu-north-1/s3/" in request
    assert b"\r\nx-amz-security-token: t\r\n" in request


@both
def test_no_keys_at_all(folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    told = folder.fetch(URI, [piece("", number) for number in range(3)])
    for result in told.values():
        assert isinstance(result, Failed)
        assert result.error.cause == Cause.S3_ACCESS
        assert "no AWS credentials" in str(result.error)


def test_a_store_that_does_not_answer_is_spoken_of_while_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("argosy.steps.transfer.loop._SILENT_SECONDS", 0.1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreError) as failed:
        list(objects_below(URI, retry_seconds=1.0))
    assert failed.value.cause == Cause.STORE_UNAVAILABLE
    told = capfd.readouterr().err
    assert told.count("Connection refused") == 1
    assert "; it is asked again for 1 s" in told
