"""Which request is answered by what: generated objects, control, and the test suite's store for the rest."""

from __future__ import annotations

import random
from collections.abc import Iterable
from urllib.parse import parse_qsl

from benchmarks.staging.origin.catalogue import BUCKET, Catalogue, Entry, Reply, refusal, reply
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.settings import Counters, Settings
from tests.s3.bucket import Bucket
from tests.s3.service import Service
from tests.s3.wire import REASONS, Request

_ROOT = f"/{BUCKET}".encode()


class Site:
    """Answers one request after the other; knows nothing of sockets."""

    def __init__(self, datasets: Iterable[Dataset], buckets: Iterable[str], settings: Settings) -> None:
        self.settings, self.counters = settings, Counters()
        self._catalogue = Catalogue(datasets)
        self._service = Service({name: Bucket() for name in buckets})
        self._drawn = random.Random(1)

    def answer(self, raw: bytes, body: bytes) -> tuple[Reply, float]:
        """The reply to a request, given its head and its body, and after how many seconds it goes out."""
        method, target, _ = raw[: raw.index(b"\r\n")].split(b" ", 2)
        path, _, query = target.partition(b"?")
        entry = self._catalogue.find(path)
        if entry is not None and method in (b"GET", b"HEAD"):
            return self._object(entry, raw, head=method == b"HEAD"), self.settings.latency
        if path.startswith(b"/-/"):
            return self._control(path, query), 0.0
        if path == _ROOT or path.startswith(_ROOT + b"/"):
            return self._generated(method, path, query), self.settings.latency
        return self._stored(method, target, raw, body), self.settings.latency

    def _object(self, entry: Entry, raw: bytes, *, head: bool) -> Reply:
        self.counters.count("HeadObject" if head else "GetObject")
        if not head and self.settings.refuse and self._drawn.random() < self.settings.refuse:
            self.counters.count("refused")
            return refusal(b"503 Slow Down", b"SlowDown")
        return self._catalogue.object(entry, raw, head=head, crc=bool(self.settings.crc))

    def _generated(self, method: bytes, path: bytes, query: bytes) -> Reply:
        head = method == b"HEAD"
        if path.rstrip(b"/") != _ROOT:
            self.counters.count("HeadObject" if head else "GetObject")
            missing = method in (b"GET", b"HEAD")
            refused = (b"404 Not Found", b"NoSuchKey") if missing else (b"403 Forbidden", b"AccessDenied")
            return refusal(*refused, head=head)
        if head or b"location" in query.split(b"&") or b"location=" in query:
            self.counters.count("HeadBucket" if head else "GetBucketLocation")
            return reply(b"200 OK", b"" if head else b"<LocationConstraint/>")
        if method != b"GET":
            return refusal(b"403 Forbidden", b"AccessDenied")
        self.counters.count("ListObjectsV2" if b"list-type=2" in query else "ListObjects")
        return self._catalogue.listing(query)

    def _control(self, path: bytes, query: bytes) -> Reply:
        if path == b"/-/set":
            for name, value in parse_qsl(query.decode()):
                setattr(self.settings, name, float(value))
            self.counters = Counters()
        return reply(b"200 OK", self.counters.to_json())

    def _stored(self, method: bytes, target: bytes, raw: bytes, body: bytes) -> Reply:
        lines = (line.partition(":") for line in raw.decode("latin-1").split("\r\n")[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in lines}
        request = Request(method.decode(), target.decode("latin-1"), headers, body)
        self.counters.count(self._service.operation(request))
        answer = self._service.answer(request)
        told = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        if answer.status not in (204, 304):
            told += f"content-length: {len(answer.body) if answer.length is None else answer.length}\r\n"
        first = f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Refused')}\r\n"
        return Reply(f"{first}{told}\r\n".encode("latin-1") + (b"" if method == b"HEAD" else answer.body))
