"""Answers that are HTTP and yet seldom, and some that are not."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from email.utils import formatdate

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.transfer import loop
from argosy.steps.transfer.answers import Head, Malformed
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from argosy.steps.transfer.wire.bodies import Chunked, body_of
from tests.transfer.conftest import Folder, both
from tests.transfer.raw import HANG_UP, RawServer, Say

BODY = bytes(range(256)) * 400
OK = b"HTTP/1.1 200 OK\r\n"
SIZED = OK + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def chunked(body: bytes, seed: int, trailer: bytes = b"") -> bytes:
    drawn, at, out = random.Random(seed), 0, b""
    while at < len(body):
        size = drawn.randrange(1, 30_000)
        some = body[at : at + size]
        out += b"%x;name=value\r\n%s\r\n" % (len(some), some)
        at += size
    return out + b"0\r\n" + trailer + b"\r\n"


def whole(number: int = 0, etag: str = "") -> Piece:
    return Piece(number, f"k{number}", len(BODY), etag, "", 0, len(BODY), f"part-{number}")


@pytest.fixture
def carry(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Arrived | Failed], RawServer]]:
    """Fetch pieces from a server that says what a test says; results in order."""

    def run(say: Say, *pieces: Piece, patience: float = 20.0) -> tuple[list[Arrived | Failed], RawServer]:
        with RawServer(say) as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
            told = folder.carry("s3://b", pieces or [whole()], patience=patience)
        for number, result in told.items():
            if isinstance(result, Arrived):
                assert folder.read(f"part-{number}") == BODY
        return [told[piece.number] for piece in pieces or [whole()]], server

    return run


@both
@pytest.mark.parametrize(
    "answer",
    [
        SIZED,
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(BODY, 1),
        OK + b"Transfer-Encoding: chunked\r\nTrailer: x\r\n\r\n" + chunked(BODY, 2, b"x-amz-checksum: y\r\n"),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + SIZED,
        OK + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY + HANG_UP,
        b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY + HANG_UP,
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"x: %s\r\n" % (b"y" * 30_000) + SIZED.partition(b"\r\n")[2],
    ],
    ids=["sized", "chunked", "trailer", "interim", "close", "http-1.0", "long-head"],
)
def test_framings(carry: Callable[..., tuple[list[Arrived | Failed], RawServer]], answer: bytes) -> None:
    results, server = carry(lambda number, head: answer, *[whole(number) for number in range(40)])
    assert all(isinstance(result, Arrived) for result in results)
    assert len(server.asked) == 40
    assert server.connections == (40 if answer.endswith(HANG_UP) else 32), "kept alive unless the server hangs up"


@pytest.mark.parametrize(
    "answer",
    [OK + b"\r\n" + BODY + HANG_UP, b"HTTP/1.1 200\r\ncontent-length:%d\r\n\r\n" % len(BODY) + BODY],
    ids=["until-close", "no-reason"],
)
def test_framings_that_the_library_does_not_know(
    carry: Callable[..., tuple[list[Arrived | Failed], RawServer]], answer: bytes
) -> None:
    results, _ = carry(lambda number, head: answer, *[whole(number) for number in range(40)])
    assert all(isinstance(result, Arrived) for result in results)


@pytest.mark.parametrize(
    "first",
    [
        None,
        HANG_UP,
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 2xx OK\r\n\r\n",
        b"HTTP/2 200\r\n\r\n" + HANG_UP,
        OK + b"Content-Length: -5\r\n\r\n",
        OK + b"Content-Length: many\r\n\r\n" + HANG_UP,
        OK + b"x" * 100_000,
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello world\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"5" * 5000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"5\r\n\x00\x01\x02\x03\x04\r\n" + HANG_UP,
        OK + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY[:1000] + HANG_UP,
        OK + b"Content-Le" + HANG_UP,
    ],
)
def test_what_is_broken_is_asked_again(
    carry: Callable[..., tuple[list[Arrived | Failed], RawServer]], first: bytes | None
) -> None:
    results, server = carry(lambda number, head: SIZED if number else first)
    assert isinstance(results[0], Arrived)
    assert len(server.asked) == 2


@both
def test_a_version_is_asked_for(carry: Callable[..., tuple[list[Arrived | Failed], RawServer]]) -> None:
    piece = Piece(0, "k", len(BODY), '"e"', "v/1+2 =", 0, len(BODY), "part-0")
    results, server = carry(lambda number, head: SIZED, piece)
    assert isinstance(results[0], Arrived)
    assert server.asked[0].startswith(b"GET /b/k?versionId=v%2F1%2B2%20%3D HTTP/1.1\r\n")


def test_an_address_where_nobody_is_does_not_matter(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of two addresses, of which one is served."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in ("127.0.0.2", "127.0.0.1")]

    def look_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        assert host == "two.example"
        return [(*one[:4], (one[4][0], port)) for one in found]

    with RawServer(lambda number, head: SIZED) as server:
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://two.example:{server.port}")
        told = folder.carry("s3://b", [whole(number) for number in range(40)])
    assert all(isinstance(result, Arrived) for result in told.values())
    assert len(server.asked) == 40


def test_an_answer_that_stands_still_is_given_up(
    carry: Callable[..., tuple[list[Arrived | Failed], RawServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "IDLE_SECONDS", 0.5)
    half = SIZED[: len(SIZED) // 2]
    began = time.monotonic()
    results, server = carry(lambda number, head: SIZED if number else half, patience=30)
    assert isinstance(results[0], Arrived)
    assert len(server.asked) == 2
    assert 0.5 < time.monotonic() - began < 10


def range_of(head: bytes) -> bytes:
    return head.lower().partition(b"range: bytes=")[2].partition(b"\r\n")[0]


def answer_range(span: bytes, total: int, body: bytes) -> bytes:
    return b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %s/%d\r\nContent-Length: %d\r\n\r\n%s" % (
        span,
        total,
        len(body),
        body,
    )


HALF = Piece(0, "k", 2 * len(BODY), '"e"', "", len(BODY), len(BODY), "part-0")


@both
@pytest.mark.parametrize(
    ("answer", "cause", "says", "requests"),
    [
        (OK + b"Content-Length: %d\r\n\r\n" % (2 * len(BODY)) + BODY, Cause.S3_ACCESS, "does not serve ranges", 1),
        (answer_range(b"0-102399", 204_800, BODY), Cause.DATA_CORRUPT, "bytes 0-102399 came", 2),
        (answer_range(b"102400-204799", 999_999, BODY), Cause.S3_MISSING, "has 999999 bytes", 1),
        (
            answer_range(b"102400-204799", 204_800, BODY).replace(b"\r\n\r\n", b'\r\nETag: "f"\r\n\r\n', 1),
            Cause.S3_MISSING,
            "no longer version",
            1,
        ),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", Cause.S3_ACCESS, "the store answered 304", 1),
    ],
)
def test_ranges_that_are_not_what_was_asked_for(
    carry: Callable[..., tuple[list[Arrived | Failed], RawServer]],
    answer: bytes,
    cause: Cause,
    says: str,
    requests: int,
) -> None:
    results, server = carry(lambda number, head: answer, HALF)
    (result,) = results
    assert isinstance(result, Failed)
    assert result.error.cause == cause
    assert says in str(result.error)
    assert len(server.asked) == requests
    assert b'if-match: "e"' in server.asked[0]
    assert range_of(server.asked[0]) == b"102400-204799"


def refusal(status: int, code: str, extra: str = "", headers: str = "") -> bytes:
    body = f"<Error><Code>{code}</Code><Message>so it is</Message>{extra}</Error>"
    return f"HTTP/1.1 {status} No\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode()


@both
def test_a_wrong_clock_is_set_by_the_stores(carry: Callable[..., tuple[list[Arrived | Failed], RawServer]]) -> None:
    there = time.time() + 7200
    skewed = refusal(403, "RequestTimeTooSkewed", headers=f"Date: {formatdate(there, usegmt=True)}\r\n")

    def say(number: int, head: bytes) -> bytes:
        hour = time.strftime("%Y%m%dT%H", time.gmtime(there)).encode()
        return SIZED if b"x-amz-date: " + hour.lower() in head.lower() else skewed

    results, server = carry(say, *[whole(number) for number in range(10)])
    assert all(isinstance(result, Arrived) for result in results)
    assert len(server.asked) <= 20


@both
def test_expired_keys_are_looked_for_again(
    carry: Callable[..., tuple[list[Arrived | Failed], RawServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = refusal(400, "ExpiredToken")

    def say(number: int, head: bytes) -> bytes:
        if b"Credential=fresh/" in head and b"x-amz-security-token: t2" in head.lower():
            return SIZED
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "fresh")
        monkeypatch.setenv("AWS_SESSION_TOKEN", "t2")
        return expired

    results, server = carry(say, *[whole(number) for number in range(10)])
    assert all(isinstance(result, Arrived) for result in results)
    assert len(server.asked) <= 20


@both
def test_keys_that_stay_expired(carry: Callable[..., tuple[list[Arrived | Failed], RawServer]]) -> None:
    results, server = carry(lambda number, head: refusal(400, "ExpiredToken"), whole())
    assert isinstance(results[0], Failed)
    assert results[0].error.cause == Cause.CREDENTIALS_EXPIRED
    assert "the credentials expired" in str(results[0].error)
    assert len(server.asked) == 1


@both
@pytest.mark.parametrize(
    "answer",
    [
        refusal(301, "PermanentRedirect", headers="x-amz-bucket-region: eu-west-1\r\n"),
        refusal(307, "TemporaryRedirect", headers="Location: https://eu-west-1.example/\r\n"),
        refusal(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"),
    ],
)
def test_another_region_of_a_given_endpoint_is_said(
    carry: Callable[..., tuple[list[Arrived | Failed], RawServer]], answer: bytes
) -> None:
    results, server = carry(lambda number, head: answer, whole())
    assert isinstance(results[0], Failed)
    assert results[0].error.cause == Cause.S3_ACCESS
    assert "eu-west-1" in str(results[0].error)
    assert "set AWS_REGION" in str(results[0].error)
    assert len(server.asked) == 1


def test_chunks_in_any_pieces(seed: int) -> None:
    drawn = random.Random(seed)
    raw = chunked(BODY, seed, b"a: b\r\nc: d\r\n") + b"rest"
    for _ in range(30):
        body, out, at = Chunked(), bytearray(), 0
        while not body.ended:
            some = raw[at : at + drawn.choice((1, 2, 3, 700, 50_000))]
            at += body.feed(memoryview(some), out.extend)
        assert bytes(out) == BODY
        assert raw[at:] == b"rest"


def test_headers_are_found_by_their_whole_name() -> None:
    raw = b'HTTP/1.1 200 OK\r\nX-Content-Length: 7\r\nETag:"x"\r\ncontent-LENGTH: 5 \r\nX-Amz-Checksum-Crc32: Ab=='
    head = Head(raw)
    assert (head.length, head.get("etag"), head.get("length"), head.status) == (5, '"x"', "", 200)
    assert head.names("x-amz-checksum-") == ["x-amz-checksum-crc32"]
    assert head.get("x-amz-checksum-crc32") == "Ab=="
    with pytest.raises(Malformed):
        body_of(Head(b"HTTP/1.1 200 OK\r\ncontent-length: 1_0"), "GET")
