"""From HTTP requests to a bucket's verbs and back: the part of S3's REST API that object-store clients use."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from email.utils import formatdate
from urllib.parse import quote_plus
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.s3.bucket import Bucket, Refused, Stored
from tests.s3.wire import Answer, Request

CHECKSUMS: dict[str, Callable[[bytes], bytes]] = {
    "x-amz-checksum-crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "x-amz-checksum-sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "x-amz-checksum-sha256": lambda data: hashlib.sha256(data).digest(),
    "content-md5": lambda data: hashlib.md5(data, usedforsecurity=False).digest(),
}
"""Verified when sent; CRC32C and CRC64NVME are taken as they are."""


class Service:
    """Buckets by name, path style; signatures are not looked at."""

    def __init__(self, buckets: dict[str, Bucket]) -> None:
        self.buckets = buckets

    def operation(self, request: Request) -> str:
        """S3's name for what the request asks."""
        _, bucket, key = (request.path + "//").split("/", 2)
        key = key.rstrip("/") if not request.path.endswith("/") else key
        return _operation(request.method, request.query, bool(bucket), bool(key.strip("/")))

    def answer(self, request: Request) -> Answer:
        """Carry it out."""
        name, _, key = request.path.lstrip("/").partition("/")
        try:
            operation = self.operation(request)
            if operation == "CreateBucket":
                self.buckets.setdefault(name, Bucket())
                return Answer(200)
            if operation == "ListBuckets":
                return _xml("<ListAllMyBucketsResult/>")
            if name not in self.buckets:
                raise Refused(404, "NoSuchBucket")
            if operation not in OPERATIONS:
                raise Refused(501, "NotImplemented")
            return OPERATIONS[operation](self.buckets[name], key, request)
        except Refused as error:
            return refusal(error.status, error.code, head=request.method == "HEAD")


def refusal(status: int, code: str, *, head: bool = False) -> Answer:
    """An error as S3 words it."""
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    return Answer(status, {"content-type": "application/xml"}, b"" if head else body)


def _operation(method: str, query: dict[str, str], bucket: bool, key: bool) -> str:
    if not bucket:
        return "ListBuckets"
    if not key:
        named = {"uploads": "ListMultipartUploads", "location": "GetBucketLocation", "delete": "DeleteObjects"}
        special = next((name for flag, name in named.items() if flag in query), "")
        return special or {"GET": "ListObjectsV2", "PUT": "CreateBucket", "HEAD": "HeadBucket"}.get(method, method)
    if "uploadId" in query:
        of_upload = {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload"}
        return of_upload.get(method, "ListParts")
    if method == "POST":
        return "CreateMultipartUpload" if "uploads" in query else "PostObject"
    return {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "PutObject", "DELETE": "DeleteObject"}.get(method, method)


def _body(request: Request) -> bytes:
    """The payload, out of its aws-chunked frames if need be, and its checksums verified."""
    data, sums = request.body, dict(request.headers)
    if "aws-chunked" in request.headers.get("content-encoding", "") or "x-amz-decoded-content-length" in sums:
        data, trailer = _unframed(request.body)
        sums.update(trailer)
    for name, compute in CHECKSUMS.items():
        if name in sums and base64.b64decode(sums[name]) != compute(data):
            raise Refused(400, "BadDigest")
    claimed = sums.get("x-amz-content-sha256", "")
    if len(claimed) == 64 and claimed != hashlib.sha256(data).hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch")
    return data


def _unframed(body: bytes) -> tuple[bytes, dict[str, str]]:
    chunks: list[bytes] = []
    at = 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].split(b";")[0], 16)
        if not size:
            lines = body[end + 2 :].decode("latin-1").split("\r\n")
            return b"".join(chunks), dict(line.split(":", 1) for line in lines if ":" in line)
        chunks.append(body[end + 2 : end + 2 + size])
        at = end + 4 + size


def _conditions(request: Request) -> tuple[bool, str]:
    unless = request.headers.get("if-none-match", "")
    if unless not in ("", "*"):
        raise Refused(501, "NotImplemented")
    return unless == "*", request.headers.get("if-match", "")


def _facts(stored: Stored) -> dict[str, str]:
    return {
        "etag": stored.etag,
        "last-modified": formatdate(stored.modified, usegmt=True),
        "content-type": "application/octet-stream",
        "accept-ranges": "bytes",
    }


def _put(bucket: Bucket, key: str, request: Request) -> Answer:
    if "x-amz-copy-source" in request.headers:
        raise Refused(501, "NotImplemented")
    absent, match = _conditions(request)
    return Answer(200, {"etag": bucket.put(key, _body(request), absent=absent, match=match).etag})


def _get(bucket: Bucket, key: str, request: Request) -> Answer:
    head = request.method == "HEAD"
    stored = bucket.head(key) if head else bucket.get(key)
    match, unless = request.headers.get("if-match"), request.headers.get("if-none-match")
    if match not in (None, "*", stored.etag):
        raise Refused(412, "PreconditionFailed")
    if unless is not None and unless in ("*", stored.etag):
        return Answer(304, _facts(stored))
    size = len(stored.data)
    if head or "range" not in request.headers:
        told = bucket.checksums(stored) if request.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED" else {}
        return Answer(200, {**_facts(stored), **told}, b"" if head else stored.data, size if head else None)
    start, end = _range(request.headers["range"], size)
    facts = {**_facts(stored), "content-range": f"bytes {start}-{end - 1}/{size}"}
    return Answer(206, facts, bucket.cut(stored, start, end))


def _range(asked: str, size: int) -> tuple[int, int]:
    first, _, last = asked.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= size or start >= end:
        raise Refused(416, "InvalidRange")
    return start, end


def _delete(bucket: Bucket, key: str, request: Request) -> Answer:
    bucket.delete(key)
    return Answer(204)


def _delete_many(bucket: Bucket, key: str, request: Request) -> Answer:
    gone = []
    for element in ElementTree.fromstring(_body(request)).iter():
        if element.tag.rpartition("}")[2] == "Key":
            bucket.delete(element.text or "")
            gone.append(f"<Deleted><Key>{escape(element.text or '')}</Key></Deleted>")
    return _xml(f"<DeleteResult>{''.join(gone)}</DeleteResult>")


def _list(bucket: Bucket, key: str, request: Request) -> Answer:
    query = request.query
    prefix, cut = query.get("prefix", ""), query.get("delimiter", "")
    limit = min(1000, int(query.get("max-keys") or 1000))
    after = query.get("continuation-token") or query.get("start-after") or ""
    encode = _as_url if query.get("encoding-type") == "url" else _escaped
    rows: list[str] = []
    folders: set[str] = set()
    last, more = "", False
    for name in bucket.keys(prefix, after):
        folder = prefix + name[len(prefix) :].partition(cut)[0] + cut if cut and cut in name[len(prefix) :] else ""
        stored = bucket.listed(name)
        if stored is None or (folder and (folder in folders or folder == after)):
            continue
        if len(rows) + len(folders) == limit:
            more = True
            break
        last = folder + "\U0010ffff" if folder else name
        if folder:
            folders.add(folder)
        else:
            rows.append(_row(encode(name), stored))
    shared = "".join(f"<CommonPrefixes><Prefix>{encode(name)}</Prefix></CommonPrefixes>" for name in sorted(folders))
    token = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>" if more else ""
    encoding = "<EncodingType>url</EncodingType>" if encode is _as_url else ""
    return _xml(
        f"<ListBucketResult><Prefix>{encode(prefix)}</Prefix><KeyCount>{len(rows) + len(folders)}</KeyCount>"
        f"<MaxKeys>{limit}</MaxKeys><IsTruncated>{str(more).lower()}</IsTruncated>{encoding}{token}"
        f"{''.join(rows)}{shared}</ListBucketResult>"
    )


def _row(name: str, stored: Stored) -> str:
    return (
        f"<Contents><Key>{name}</Key><LastModified>{_iso(stored.modified)}</LastModified>"
        f"<ETag>{escape(stored.etag)}</ETag><Size>{len(stored.data)}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )


def _iso(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _begin(bucket: Bucket, key: str, request: Request) -> Answer:
    upload = bucket.begin(key)
    inside = f"<Key>{escape(key)}</Key><UploadId>{upload}</UploadId>"
    return _xml(f"<InitiateMultipartUploadResult>{inside}</InitiateMultipartUploadResult>")


def _part(bucket: Bucket, key: str, request: Request) -> Answer:
    number = int(request.query["partNumber"])
    return Answer(200, {"etag": bucket.add_part(request.query["uploadId"], key, number, _body(request))})


def _complete(bucket: Bucket, key: str, request: Request) -> Answer:
    absent, match = _conditions(request)
    parts = []
    for element in ElementTree.fromstring(_body(request)):
        told = {child.tag.rpartition("}")[2]: child.text or "" for child in element}
        parts.append((int(told["PartNumber"]), told["ETag"].strip('"')))
    made = bucket.complete(request.query["uploadId"], key, parts, absent=absent, match=match)
    inside = f"<Key>{escape(key)}</Key><ETag>{escape(made.etag)}</ETag>"
    return _xml(f"<CompleteMultipartUploadResult>{inside}</CompleteMultipartUploadResult>")


def _abort(bucket: Bucket, key: str, request: Request) -> Answer:
    bucket.abort(request.query["uploadId"], key)
    return Answer(204)


def _parts(bucket: Bucket, key: str, request: Request) -> Answer:
    rows = "".join(
        f"<Part><PartNumber>{number}</PartNumber><LastModified>{_iso(part.modified)}</LastModified>"
        f"<ETag>{escape(part.etag)}</ETag><Size>{len(part.data)}</Size></Part>"
        for number, part in sorted(bucket.parts(request.query["uploadId"], key).items())
    )
    return _xml(f"<ListPartsResult><IsTruncated>false</IsTruncated>{rows}</ListPartsResult>")


def _uploads(bucket: Bucket, key: str, request: Request) -> Answer:
    prefix = request.query.get("prefix", "")
    rows = "".join(
        f"<Upload><Key>{escape(one.key)}</Key><UploadId>{name}</UploadId>"
        f"<Initiated>{_iso(one.started)}</Initiated></Upload>"
        for name, one in sorted(bucket.uploads.items())
        if one.key.startswith(prefix)
    )
    return _xml(f"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>{rows}</ListMultipartUploadsResult>")


def _location(bucket: Bucket, key: str, request: Request) -> Answer:
    return _xml("<LocationConstraint/>")


def _xml(text: str) -> Answer:
    declared = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'
    return Answer(200, {"content-type": "application/xml"}, declared.encode())


OPERATIONS: dict[str, Callable[[Bucket, str, Request], Answer]] = {
    "PutObject": _put,
    "GetObject": _get,
    "HeadObject": _get,
    "DeleteObject": _delete,
    "DeleteObjects": _delete_many,
    "ListObjectsV2": _list,
    "CreateMultipartUpload": _begin,
    "UploadPart": _part,
    "CompleteMultipartUpload": _complete,
    "AbortMultipartUpload": _abort,
    "ListParts": _parts,
    "ListMultipartUploads": _uploads,
    "GetBucketLocation": _location,
    "HeadBucket": lambda bucket, key, request: Answer(200),
}


def _as_url(key: str) -> str:
    return quote_plus(key, safe="/", errors="surrogateescape")


def _escaped(key: str) -> str:
    # A raw carriage return would reach the reader of the XML as a line feed: another key.
    return escape(key, {"\r": "&#13;"})
