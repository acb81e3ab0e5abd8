"""What checksums a store keeps of whole objects, without reading them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from argosy.steps.store.base import StoreError
from argosy.steps.transfer import crc
from argosy.steps.transfer.answers import Head
from argosy.steps.transfer.fetching import WITH_CHECKSUM, check_etag, match_line, stored_checksums_of
from argosy.steps.transfer.jobs import Job, Request
from argosy.steps.transfer.loop import Loop
from argosy.steps.transfer.refusals import lost
from argosy.steps.transfer.site import Site

_AHEAD = 1024
_TURN_SECONDS = 1.0
_PREFERRED = ("crc64nvme", "crc32c", "crc32", "sha256", "sha1")


class _Looking(Job):
    method = "HEAD"

    def __init__(self, site: Site, key: str, etag: str) -> None:
        self.key, self._etag, self._site = key, etag, site
        self._head: Head | None = None
        self._signed = 0
        self.checksum: str | None = None
        self.error: StoreError | None = None

    def begin(self) -> Request:
        self._signed = self._site.generation
        return self._site.request(self.method, self.key, amz=WITH_CHECKSUM, plain=match_line(self._etag))

    def head(self, head: Head) -> None:
        self._head = head

    def body(self, data: memoryview) -> None:
        pass

    def finish(self) -> int:
        head = self._head
        assert head is not None
        if head.status != 200:
            raise self._site.refused(head, b"", self.key, self._etag, self._signed)
        check_etag(head, self._etag, self._site.at(self.key))
        found = stored_checksums_of(head)
        self.checksum = next((crc.text(name, found[name]) for name in _PREFERRED if name in found), "")
        return 0

    def broken(self, error: Exception) -> StoreError:
        return lost(self._site.at(self.key), error)

    def fail(self, error: StoreError) -> None:
        self.error = error


def stored_checksums(uri: str, keys: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """For each (key, ETag; "" any) the key and ``crc64nvme:<base64>``, in the order of ``keys``.

    "" where the store has no checksum of the whole object: none at all, one of parts' checksums, or a store that is
    not ``s3://``. One HEAD each, many at the same time; ``keys`` is read a thousand ahead.

    Raises:
        StoreError: ``s3_missing``: an object is gone or has another ETag; or what the store reported.
    """
    if not uri.startswith("s3://"):
        yield from ((key, "") for key, _ in keys)
        return
    site = Site(uri)
    wire = Loop(site)
    waiting = iter(keys)
    asked: deque[_Looking] = deque()
    try:
        while True:
            for key, etag in islice(waiting, _AHEAD - len(asked)):
                job = _Looking(site, key, etag)
                asked.append(job)
                wire.add(job)
            if not asked:
                return
            first = asked[0]
            while first.checksum is None and first.error is None:
                wire.turn(_TURN_SECONDS)
            while asked and (told := asked[0].checksum) is not None:
                yield asked.popleft().key, told
            if asked and asked[0].error is not None:
                raise asked[0].error
    finally:
        wire.close()
