"""Signatures against AWS's documented example, and against botocore's for requests of every kind."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from argosy.steps.store.s3_settings import Keys, S3Settings
from argosy.steps.transfer.asking import Headers
from argosy.steps.transfer.wire.signing import Signer

NOW = datetime(2013, 5, 24, tzinfo=UTC)
KEYS = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


def settings(endpoint: str = "", *, virtual: bool = False, pays: bool = False, region: str = "us-east-1") -> S3Settings:
    return S3Settings("examplebucket", endpoint, region, virtual, False, pays, "")


def parsed(raw: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = raw.decode().removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    return method, target, dict(line.split(": ", 1) for line in lines)


def test_the_example_of_the_documentation() -> None:
    """«GET Object» of docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html"""
    signer = Signer(settings("https://s3.amazonaws.com", virtual=True), KEYS, now=NOW.timestamp)
    _, target, headers = parsed(signer.head("GET", "test.txt", amz=(("range", "bytes=0-9"),)))
    assert target == "/test.txt"
    assert headers["host"] == "examplebucket.s3.amazonaws.com"
    assert headers["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def signed_by_botocore(method: str, url: str, headers: dict[str, str], keys: Keys, region: str) -> str:
    """The authorization header for the same request at the same time."""
    signed = {name: value for name, value in headers.items() if name.startswith("x-amz-") or name == "host"}
    signed.pop("x-amz-security-token", None)
    request = AWSRequest(method=method, url=url, headers=signed)
    request.context["payload_signing_enabled"] = True
    auth = S3SigV4Auth(Credentials(keys.key_id, keys.secret, keys.token or None), "s3", region)
    # What add_auth() does, at a time of ours: how it asks for its own differs between versions.
    request.context["timestamp"] = NOW.strftime("%Y%m%dT%H%M%SZ")
    auth._modify_request_before_signing(request)
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    auth._inject_signature_to_request(request, signature)
    return str(request.headers["Authorization"])


ENDPOINTS = [
    settings(),
    settings(virtual=True, region="cn-north-1"),
    settings(pays=True),
    settings("http://127.0.0.1:9000"),
    settings("https://gateway.example/s3 base", pays=True),
    settings("https://other.example:8443", virtual=True),
]


@pytest.mark.parametrize("where", ENDPOINTS, ids=lambda one: one.base)
@pytest.mark.parametrize("token", ["", "FwoGZXIvYXdzEXAMPLE//token+="])
def test_as_botocore_signs(where: S3Settings, token: str, seed: int) -> None:
    drawn = random.Random(seed)
    keys = Keys(KEYS.key_id, KEYS.secret, token)
    signer = Signer(where, keys, now=NOW.timestamp)
    base = urlsplit(where.base)
    alphabet = "aZ09-._~/ +%&=?#'(){}[]!*,;:@$\"\\^`|<>éß日🙂\u0301"
    for _ in range(40):
        key = "".join(drawn.choices(alphabet, k=drawn.randrange(1, 30))).strip("/") or "k"
        amz: Headers = drawn.choice([(), (("x-amz-checksum-mode", "ENABLED"),)])
        version = drawn.choice(["", "null", "3/L4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY+MTRCxf3vjVBH40Nr8X8gdRQBpUMLUo"])
        method = drawn.choice(["GET", "HEAD"])
        asked, target, headers = parsed(
            signer.head(method, key, version=version, amz=amz, plain="range: bytes=1-2\r\n")
        )
        assert asked == method
        assert ("x-amz-request-payer" in headers) == where.requester_pays
        url = f"{base.scheme}://{base.netloc}{target}"
        assert headers["authorization"] == signed_by_botocore(method, url, headers, keys, where.region), key


@pytest.mark.parametrize("where", ENDPOINTS, ids=lambda one: one.base)
def test_what_is_asked_of_a_bucket(where: S3Settings, seed: int) -> None:
    drawn = random.Random(seed)
    signer = Signer(where, KEYS, now=NOW.timestamp)
    base = urlsplit(where.base)
    for _ in range(20):
        token = "".join(drawn.choices("aZ09-._~/ +%&=?#'é日\"", k=20))
        query = f"continuation-token={quote(token, safe='')}&encoding-type=url&list-type=2"
        _, target, headers = parsed(signer.head("GET", "", query=query))
        assert target.endswith(f"/?{query}")
        url = f"{base.scheme}://{base.netloc}{target}"
        assert headers["authorization"] == signed_by_botocore("GET", url, headers, KEYS, where.region), token


def test_anonymous_requests_are_not_signed() -> None:
    _, _, headers = parsed(Signer(settings(), None).head("GET", "k"))
    assert set(headers) == {"host", "user-agent", "accept"}


def test_another_day_is_another_key() -> None:
    clock = [datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC).timestamp()]
    signer = Signer(settings(), KEYS, now=lambda: clock[0])
    before = parsed(signer.head("GET", "k"))[2]
    clock[0] += 1
    after = parsed(signer.head("GET", "k"))[2]
    assert (before["x-amz-date"], after["x-amz-date"]) == ("20261121T235959Z", "20261122T000000Z")
    fresh = parsed(Signer(settings(), KEYS, now=lambda: clock[0]).head("GET", "k"))[2]
    assert after == fresh
