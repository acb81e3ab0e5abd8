"""The generated bucket: answers to GET, HEAD and LIST, made ready beforehand as far as they do not depend on the asker.

What is looked at in a request is looked for in its raw head: parsing headers would cost more than the answer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

from benchmarks.staging.origin.content import MODIFIED, MODIFIED_ISO, Dataset, Window

BUCKET = "bench"
_PAGE = 1000
_XML = b'<?xml version="1.0" encoding="UTF-8"?>\n'


@dataclass(frozen=True, slots=True)
class Entry:
    """An object and what is told of it: ``facts`` are header lines, ``row`` is what a listing says."""

    key: str
    size: int
    offset: int
    etag: bytes
    facts: bytes
    checksum: bytes
    row: bytes

    @classmethod
    def of(cls, window: Window) -> Entry:
        """Everything computed: CRC and MD5 of the bytes among it."""
        etag = window.etag()
        facts = f"Last-Modified: {MODIFIED}\r\nETag: {etag}\r\nAccept-Ranges: bytes\r\n"
        checksum = f"x-amz-checksum-crc64nvme: {window.crc64nvme()}\r\nx-amz-checksum-type: FULL_OBJECT\r\n"
        row = (
            f"<Contents><Key>{window.key}</Key><LastModified>{MODIFIED_ISO}</LastModified><ETag>&quot;{etag[1:-1]}&quot;"
            "</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>"
            f"<Size>{window.size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        )
        told = f"{facts}Content-Type: binary/octet-stream\r\n".encode()
        return cls(window.key, window.size, window.offset, etag.encode(), told, checksum.encode(), row.encode())


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes out: ``head``, and behind it ``length`` bytes of the pool from ``offset``."""

    head: bytes
    offset: int = 0
    length: int = 0


def reply(status: bytes, body: bytes = b"", extra: bytes = b"", *, head: bool = False) -> Reply:
    """An answer whose body is XML or JSON; ``head``: without the body."""
    lines = b"HTTP/1.1 %s\r\nContent-Type: application/xml\r\n%sContent-Length: %d\r\n\r\n" % (status, extra, len(body))
    return Reply(lines if head else lines + body)


def refusal(status: bytes, code: bytes, *, head: bool = False) -> Reply:
    """An error as S3 words it."""
    return reply(status, _XML + b"<Error><Code>%s</Code><Message>%s</Message></Error>" % (code, code), head=head)


class Catalogue:
    """All entries, by the target of a request and in the order of their keys."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        entries = sorted((Entry.of(each) for dataset in datasets for each in dataset), key=lambda entry: entry.key)
        self._entries = entries
        self._keys = [entry.key for entry in entries]
        self._by_target = {f"/{BUCKET}/{entry.key}".encode(): entry for entry in entries}

    def find(self, path: bytes) -> Entry | None:
        """The object at the raw path of a request."""
        return self._by_target.get(path)

    def object(self, entry: Entry, raw: bytes, *, head: bool, crc: bool) -> Reply:
        """GetObject or HeadObject; ``raw`` is the request's head."""
        asked = raw.lower()
        match, unless = _header(asked, b"if-match"), _header(asked, b"if-none-match")
        if match not in (b"", b"*") and entry.etag.strip(b'"') != match.strip(b'"'):
            return refusal(b"412 Precondition Failed", b"PreconditionFailed", head=head)
        if unless == b"*" or (unless and unless.strip(b'"') == entry.etag.strip(b'"')):
            return Reply(b"HTTP/1.1 304 Not Modified\r\n%s\r\n" % entry.facts)
        wanted = _header(asked, b"range")
        if wanted:
            return _part(entry, wanted, head=head)
        checksum = entry.checksum if crc and b"\r\nx-amz-checksum-mode:" in asked else b""
        lines = b"HTTP/1.1 200 OK\r\n%s%sContent-Length: %d\r\n\r\n" % (entry.facts, checksum, entry.size)
        return Reply(lines) if head else Reply(lines, entry.offset, entry.size)

    def listing(self, query: bytes) -> Reply:
        """ListObjectsV2, and the first version where ``list-type`` is not 2."""
        given = dict(parse_qsl(query.decode(), keep_blank_values=True))
        prefix, cut = given.get("prefix", ""), given.get("delimiter", "")
        limit = min(_PAGE, int(given.get("max-keys") or _PAGE))
        after = given.get("continuation-token") or given.get("start-after") or given.get("marker") or ""
        rows, folders, last, more = self._page(prefix, cut, after, limit)
        coded = quote if given.get("encoding-type") == "url" else str
        told = [f"<Name>{BUCKET}</Name><Prefix>{coded(prefix)}</Prefix><MaxKeys>{limit}</MaxKeys>"]
        told.append(f"<KeyCount>{len(rows) + len(folders)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>")
        if coded is quote:
            told.append("<EncodingType>url</EncodingType>")
        if more:
            told.append(f"<NextContinuationToken>{last}</NextContinuationToken><NextMarker>{last}</NextMarker>")
        told += [f"<CommonPrefixes><Prefix>{coded(folder)}</Prefix></CommonPrefixes>" for folder in folders]
        inside = "".join(told).encode() + b"".join(rows)
        space = b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        return reply(b"200 OK", _XML + space + inside + b"</ListBucketResult>")

    def _page(self, prefix: str, cut: str, after: str, limit: int) -> tuple[list[bytes], list[str], str, bool]:
        at = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
        end = bisect_left(self._keys, prefix + "\U0010ffff")
        if not cut:
            chosen = self._entries[at : min(at + limit, end)]
            return [entry.row for entry in chosen], [], chosen[-1].key if chosen else "", at + limit < end
        rows: list[bytes] = []
        folders: list[str] = []
        last = ""
        while at < end and len(rows) + len(folders) < limit:
            name, found, _ = self._keys[at][len(prefix) :].partition(cut)
            if not found:
                rows.append(self._entries[at].row)
                last, at = self._keys[at], at + 1
                continue
            folder = f"{prefix}{name}{cut}"
            if folder != after:
                folders.append(folder)
            last, at = folder, bisect_left(self._keys, folder + "\U0010ffff")
        return rows, folders, last, at < end


def _header(lowered: bytes, name: bytes) -> bytes:
    at = lowered.find(b"\r\n%s:" % name)
    if at < 0:
        return b""
    begin = at + len(name) + 3
    return lowered[begin : lowered.index(b"\r\n", begin)].strip()


def _part(entry: Entry, wanted: bytes, *, head: bool) -> Reply:
    first, _, last = wanted.removeprefix(b"bytes=").partition(b"-")
    start = int(first) if first else max(0, entry.size - int(last))
    end = min(entry.size, int(last) + 1) if first and last else entry.size
    if start >= end:
        return refusal(b"416 Range Not Satisfiable", b"InvalidRange", head=head)
    facts = (entry.facts, start, end - 1, entry.size, end - start)
    lines = b"HTTP/1.1 206 Partial Content\r\n%sContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n" % facts
    return Reply(lines) if head else Reply(lines, entry.offset + start, end - start)
