"""Listings over our own wire: what a store may say, what goes wrong on the way, and what is refused."""

from __future__ import annotations

import random
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from urllib.parse import quote_plus

import boto3
import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.store.cloud import CloudStore
from argosy.steps.transfer.pages import objects_below
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.process import Origin
from tests.s3 import Bucket, S3Server, Seen, at, at_random, on
from tests.s3.moto import moto
from tests.transfer.conftest import BUCKET, both
from tests.transfer.raw import HANG_UP, Proxy, RawServer

URI = f"s3://{BUCKET}/below"
ODD = ["a b+c", "100%", "é/日本", "a%2Fb", "q?x=1&y#z", "<k>", "]]>", "&amp;", "'\"", "line\nfeed", "\r", "\x01", "🙂"]
HOSTILE = ["..", "../up", "/abs", "a//b", "a/./b", "folder/", "folder//", "\0"]


def keys(uri: str = URI) -> list[str]:
    return [one.key for one in objects_below(uri)]


@both
def test_every_key_comes_as_it_is(bucket: Bucket) -> None:
    for key in [*ODD, *HOSTILE, ""]:
        bucket.put(f"below/{key}", key.encode())
    bucket.put("below-not", b"")
    found = {one.key: (one.size, one.etag) for one in objects_below(URI)}
    stored = {key: bucket.get(f"below/{key}") for key in [*ODD, *HOSTILE, ""]}
    assert found == {key: (len(one.data), one.etag) for key, one in stored.items()}
    assert len(keys(f"s3://{BUCKET}")) == len(stored) + 1


@both
def test_a_key_that_is_no_utf8_is_recognizable(bucket: Bucket) -> None:
    bucket.put("below/a\udcff", b"")
    assert keys() == ["a\udcff"]


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    with moto() as endpoint:
        yield endpoint


@both
def test_moto_is_listed_as_obstore_lists_it(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "50")
    client = boto3.client("s3")
    client.create_bucket(Bucket="listed")
    for number in range(121):
        client.put_object(Bucket="listed", Key=f"d/é {number:04d}+", Body=b"x" * (number % 7))
    client.close()
    found = list(objects_below("s3://listed/d"))
    assert [one.key for one in found] == [f"é {number:04d}+" for number in range(121)]
    # When an object was stored nobody needs to know who stages it.
    assert found == [one._replace(stored=0.0) for one in CloudStore("s3://listed/d").scan()]


@both
def test_the_origin_of_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Dataset("list", 3001, 5, 5)
    with Origin([data]) as origin:
        for name, value in origin.environment().items():
            if name.startswith("AWS_"):
                monkeypatch.setenv(name, value)
        assert keys(origin.uri(data)) == [one.key.removeprefix("list/") for one in data]
        assert origin.counted().requests == {"ListObjectsV2": 4}


def many(bucket: Bucket, count: int = 2500) -> list[str]:
    for number in range(count):
        bucket.put(f"below/{number:06d}", b"")
    return [f"{number:06d}" for number in range(count)]


@both
@pytest.mark.parametrize("kind", ["slow-down", "error-before", "reset-before", "cut", "slow"])
@pytest.mark.parametrize("number", [0, 2])
def test_a_page_that_fails_is_asked_for_again(kind: str, number: int, server: S3Server, bucket: Bucket) -> None:
    wanted = many(bucket)
    server.begin(at(number, kind))
    assert keys() == wanted
    assert len(server.requests) == (3 if kind == "slow" else 4)


@both
def test_a_network_that_fails_often(server: S3Server, bucket: Bucket, seed: int) -> None:
    wanted = many(bucket, 9500)
    server.begin(at_random(seed, 0.4, ("slow-down", "error-before", "reset-before", "cut")))
    assert keys() == wanted


@both
@pytest.mark.parametrize(
    ("kind", "cause", "words"),
    [
        ("slow-down", Cause.S3_THROTTLE, "cannot list s3://.*503 SlowDown"),
        ("cut", Cause.STORE_UNAVAILABLE, "cannot list s3://.*did not serve it"),
        ("denied", Cause.S3_ACCESS, r"list s3://.* was refused \(403 AccessDenied\)"),
        ("expired", Cause.CREDENTIALS_EXPIRED, "cannot list s3://.*credentials expired"),
    ],
)
def test_a_store_that_does_not_list(kind: str, cause: Cause, words: str, server: S3Server, bucket: Bucket) -> None:
    many(bucket, 10)
    server.begin(on("ListObjectsV2", kind, times=1000))
    with pytest.raises(StoreError, match=words) as caught:
        list(objects_below(URI, retry_seconds=0.3))
    assert caught.value.cause == cause


@both
def test_a_bucket_that_is_not_there(server: S3Server) -> None:
    told = r"cannot list s3://nowhere/x: the bucket does not exist .*correct the name$"
    with pytest.raises(StoreError, match=told) as caught:
        keys("s3://nowhere/x")
    assert caught.value.cause == Cause.S3_MISSING


@both
def test_an_unknown_user_is_no_missing_object(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"<Error><Code>XAdminUserNotFound</Code></Error>"
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with RawServer(lambda number, head: answer) as raw:
        monkeypatch.setenv("AWS_ENDPOINT_URL", raw.endpoint)
        with pytest.raises(StoreError, match=r"list s3://b/d was refused \(404 XAdminUserNotFound\)") as caught:
            keys("s3://b/d")
    assert caught.value.cause == Cause.S3_ACCESS


def test_what_is_asked_for(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REQUEST_PAYER", "requester")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    pages = [page(["d/a"], token="x+/= &é"), page(["d/b"])]
    with RawServer(lambda number, head: pages[number]) as raw:
        monkeypatch.setenv("AWS_ENDPOINT_URL", raw.endpoint)
        assert keys("s3://b/d") == ["a", "b"]
    first, second = raw.asked
    assert first.startswith(b"GET /b/?encoding-type=url&list-type=2&prefix=d%2F HTTP/1.1\r\n")
    assert second.startswith(b"GET /b/?continuation-token=x%2B%2F%3D%20%26%C3%A9&encoding-type=url&")
    assert b"x-amz-request-payer: requester\r\n" in first
    assert b"authorization" not in first.lower()


@both
def test_through_a_proxy(server: S3Server, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = many(bucket, 1001)
    with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert keys() == wanted
    assert [one.split("?")[0].removesuffix("/") + "/" for one in proxy.asked] == [
        f"GET {server.endpoint}/{BUCKET}/"
    ] * 2


WHEN = "<LastModified>2026-01-01T00:00:00Z</LastModified>"
ROW = f"<Contents><Key>{{}}</Key>{WHEN}<ETag>&quot;e&quot;</ETag><Size>7</Size></Contents>"


def answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def page(named: list[str], token: str = "", before: str = "", row: str = ROW, url: bool = True) -> bytes:
    rows = "".join(row.format(quote_plus(key, safe="/") if url else key) for key in named)
    more = f"<NextContinuationToken>{token.replace('&', '&amp;')}</NextContinuationToken>" if token else ""
    coded = "<EncodingType>url</EncodingType>" if url else ""
    text = f"{before}<ListBucketResult>{coded}{more}<IsTruncated>{str(bool(token)).lower()}</IsTruncated>{rows}"
    return answer(f"{text}</ListBucketResult>".encode())


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[tuple[str, int, str]], int]]:
    """What is listed below s3://b/d when a server says this, the last of it again and again; and how often it did."""

    def run(*bodies: bytes, patience: float = 20.0) -> tuple[list[tuple[str, int, str]], int]:
        with RawServer(lambda number, head: bodies[min(number, len(bodies) - 1)]) as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
            found = [(one.key, one.size, one.etag) for one in objects_below("s3://b/d", retry_seconds=patience)]
            return found, len(server.asked)

    return run


EMPTY = '<Contents><Owner><ID/></Owner><Key>{}</Key><Size>7</Size><ETag><![CDATA["e"]]></ETag></Contents>'
INDENTED = """
  <Contents>
    <ETag>
      &#34;e&#34;
    </ETag><Owner><ID>Key</ID><DisplayName/></Owner>
    <Size>
      7</Size>
    <Key>
      {}
    </Key>
  </Contents>
"""


@both
@pytest.mark.parametrize(
    "body",
    [
        page(["d/k"]),
        page(["d/k"], url=False),
        page(["d/k"], before='<?xml version="1.0" encoding="UTF-16"?>'),
        page(["d/k"], row=INDENTED),
        page(["d/k"], row="\n  " + ROW.replace("<", "\n    <").replace("\n    </", "</"), url=False),
        page(["d/k"], row=EMPTY),
        answer(
            b"<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Contents><Key>d&#x2F;k</Key><ETag>\"e\""
            b"</ETag><Size>7</Size></Contents><!-- - --><IsTruncated>false</IsTruncated></ListBucketResult>"
        ),
    ],
    ids=["usual", "not encoded", "lies of its encoding", "indented", "apart", "elements without text", "last"],
)  # fmt: skip
def test_ways_to_write_a_page(body: bytes, said: Callable[..., tuple[list[tuple[str, int, str]], int]]) -> None:
    assert said(body) == ([("k", 7, '"e"')], 1)


@both
def test_an_element_without_text_is_empty(said: Callable[..., tuple[list[tuple[str, int, str]], int]]) -> None:
    row = "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00Z</LastModified><ETag/><Size>7</Size></Contents>"
    assert said(page(["d/k", "d/l"], row=row))[0] == [("k", 7, ""), ("l", 7, "")]


@both
def test_no_key_is_split(said: Callable[..., tuple[list[tuple[str, int, str]], int]]) -> None:
    assert said(page(["d/" + "k&#108;" * 30_000], url=False))[0] == [("kl" * 30_000, 7, '"e"')]


@both
def test_an_empty_page_in_the_middle(said: Callable[..., tuple[list[tuple[str, int, str]], int]]) -> None:
    assert said(page([], token="1"), page(["d/k"], token="2"), page([]))[0] == [("k", 7, '"e"')]


LAST = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
BOMB = '<!DOCTYPE x [<!ENTITY a "{}"><!ENTITY b "{}">]>'.format("a" * 1000, "&a;" * 1000)
FILE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
NONSENSE = {
    "entities": page(["d/k"], before=BOMB),
    "a file": page(["d/&a;"], before=FILE, url=False),
    "a document type": page(["d/k"], before="<!DOCTYPE ListBucketResult>"),
    "an unknown entity": page(["d/&a;"], url=False),
    "another tree": answer(b"<html>" + b"<p>" * 10_000 + b"</p>" * 10_000 + b"</html>"),
    "no XML": answer(b"<html><br>log in, please</html>"),
    "an error": answer(b"<Error><Code>InternalError</Code></Error>"),
    "no next token": page(["d/k"], token=" "),
    "no word of a next page": answer(b"<ListBucketResult></ListBucketResult>"),
    "no size": page(["d/k"], row="<Contents><Key>{}</Key><ETag>e</ETag></Contents>"),
    "a size below zero": page(["d/k"], row="<Contents><Key>{}</Key><Size>-1</Size></Contents>"),
    "a key elsewhere": page(["d/k", "elsewhere"]),
    "a document type in UTF-16": answer(f"<!DOCTYPE x>{LAST}".encode("utf-16")),
}


@pytest.mark.parametrize("transport", ["wire", "auto"], indirect=True)
@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE)
def test_what_is_no_listing(
    transport: str, body: bytes, said: Callable[..., tuple[list[tuple[str, int, str]], int]]
) -> None:
    with pytest.raises(StoreError, match="cannot list s3://b/d: what came is no page of a listing") as caught:
        said(body)
    assert caught.value.cause == Cause.DATA_CORRUPT
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


@both
def test_nonsense_once_is_an_accident(said: Callable[..., tuple[list[tuple[str, int, str]], int]]) -> None:
    assert said(NONSENSE["no XML"], page(["d/k"])) == ([("k", 7, '"e"')], 2)


def test_a_page_without_end_is_asked_for_again(
    said: Callable[..., tuple[list[tuple[str, int, str]], int]],
) -> None:
    """Some say nothing of a length, so that the XML alone tells that something is missing."""
    body = page(["d/k"]).partition(b"\r\n\r\n")[2]
    for cut in random.Random(1).sample(range(len(body)), 12):
        assert said(b"HTTP/1.0 200 OK\r\n\r\n" + body[:cut] + HANG_UP, page(["d/k"])) == ([("k", 7, '"e"')], 2)


@both
@pytest.mark.parametrize("pages", [1, 2, 7])
def test_a_listing_in_a_circle_ends(pages: int, said: Callable[..., tuple[list[tuple[str, int, str]], int]]) -> None:
    before, circle = [page(["d/k"], token=f"before {at}") for at in range(3)], range(pages)
    with pytest.raises(StoreError, match="names the same page again") as caught:
        said(*before, *[page(["d/k"], token=str(at)) for at in circle] * 20, page(["d/k"]))
    assert caught.value.cause == Cause.DATA_CORRUPT


def test_memory_is_a_page_s(bucket: Bucket) -> None:
    many(bucket, 20_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in objects_below(URI)) == 20_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 << 20, "this process also serves: a buffer of a megabyte, and two pages on each side"


def test_the_next_page_is_asked_for_while_the_caller_is_busy(server: S3Server, bucket: Bucket) -> None:
    many(bucket, 1001)
    asked = threading.Event()

    def plan(seen: Seen) -> str:
        if seen.number == 1:
            asked.set()
        return ""

    server.begin(plan)
    found = objects_below(URI)
    next(found)
    assert asked.wait(10), "nothing was asked before the first page was used up"
    assert sum(1 for _ in found) == 1000


def test_a_page_that_only_the_library_reads_is_read_by_it(
    said: Callable[..., tuple[list[tuple[str, int, str]], int]], capfd: pytest.CaptureFixture[str]
) -> None:
    """From where the wire had come; said once, and nothing twice."""
    other = [page(["d/l"], token="2"), page(["d/m"])]
    other = [answer(one.partition(b"\r\n\r\n")[2].replace(b"ListBucketResult", b"ListBucketV2Result")) for one in other]
    found, asked = said(page(["d/k"], token="1"), other[0], other[0], *other)
    assert [key for key, _, _ in found] == ["k", "l", "m"]
    assert asked == 5, "the page that was not understood, twice; then by the library"
    told = capfd.readouterr().err
    assert told.count("the library") == 1
    assert "its root is 'ListBucketV2Result'" in told
