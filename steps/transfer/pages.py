"""ListObjectsV2 over the wire: every object below a uri of S3, page by page."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import ObjectInfo, StoreError
from argosy.steps.transfer.answers import Head
from argosy.steps.transfer.jobs import Again, Job, Request
from argosy.steps.transfer.listing_xml import BrokenOff, Hostile, NoListing, Page, Turns, parse_page
from argosy.steps.transfer.loop import RETRY_SECONDS, Loop
from argosy.steps.transfer.refusals import lost
from argosy.steps.transfer.site import Site

_TURN_SECONDS = 1.0
_LONGEST = 64 << 20
"""Bytes of a page; a thousand keys of a kilobyte, each letter written as ``%XX``, are three million."""
_SECOND_OPINION = 5.0
"""How many seconds the library may try what the wire could not read."""
_WRONG = 2
"""How often something that is no listing is taken for an accident on the way."""


class _Asking(Job):
    def __init__(self, site: Site, token: str) -> None:
        self._site, self.token = site, token
        self._signed, self._wrong = 0, 0
        self._head: Head | None = None
        self._text = bytearray()
        self.page: Page | None = None
        self.error: StoreError | None = None

    @property
    def done(self) -> bool:
        return self.page is not None or self.error is not None

    def begin(self) -> Request:
        self._signed = self._site.generation
        self._text = bytearray()
        return self._site.list_request(self.token)

    def head(self, head: Head) -> None:
        self._head = head

    def body(self, data: memoryview) -> None:
        self._text += data
        if len(self._text) > _LONGEST:
            raise self._nonsense(NoListing(f"it is longer than {_LONGEST} bytes"))

    def finish(self) -> int:
        head = self._head
        assert head is not None
        if head.status != 200:
            raise self._site.refused(head, bytes(self._text), "", "", self._signed, action="list")
        try:
            self.page = parse_page(self._text, self._site.prefix)
        except BrokenOff as error:
            raise Again(self.broken(error)) from error
        except NoListing as error:
            raise self._nonsense(error) from error
        return 0

    def broken(self, error: Exception) -> StoreError:
        return lost(self._site.uri, error, action="list")

    def fail(self, error: StoreError) -> None:
        self.error = error

    def _nonsense(self, error: NoListing) -> StoreError | Again:
        self._wrong += 1
        refused = _nonsense(self._site.uri, error)
        return Again(refused) if self._wrong < _WRONG else refused


def objects_below(uri: str, *, retry_seconds: float | None = None) -> Iterator[ObjectInfo]:
    """Every object below an ``s3://`` uri as the store names it, keys relative to the uri, one page in memory.

    The next page is asked for while the caller is busy with the last one. A page that does not arrive whole is asked
    for again. A folder's placeholder is an object like any other: its key ends with ``/``, and is "" for the uri's own.
    ``retry_seconds``: how long one page is asked for; None: as long as other requests.

    Raises:
        StoreError: ``data_corrupt``: what came, twice, is no listing, or not the one that was asked for; or what the
            store reported.
    """
    site, token = Site(uri), ""
    patience = RETRY_SECONDS if retry_seconds is None else retry_seconds
    unknown: UnknownListing | None = None
    if not site.by_library:
        try:
            for page in _by_wire(site, patience):
                yield from page.objects
                token = page.token
            return
        except UnknownListing as error:
            if not site.surprised(f"a page of the listing is none that we know ({error.quote})"):
                raise
            unknown = error
    from argosy.steps.transfer.library_pages import LibraryListing  # botocore takes 0.4 s to import

    library = LibraryListing(uri, site.prefix, site.settings, patience if unknown is None else _SECOND_OPINION)
    try:
        for page in library.pages(token):
            yield from page.objects
            unknown, library.retry_seconds = None, patience
    except (NoListing, StoreError) as error:
        # Nobody can read it: the first word on it says why.
        refused = _nonsense(uri, error) if isinstance(error, NoListing) else error
        raise unknown or refused from error


class UnknownListing(StoreError):
    """What came, twice, is no page of a listing."""


def _nonsense(uri: str, error: NoListing) -> StoreError:
    kind = StoreError if isinstance(error, Hostile) else UnknownListing
    text = f"cannot list {uri}: what came is no page of a listing: {error}"
    return kind(Cause.DATA_CORRUPT, text, quote=str(error))


def _by_wire(site: Site, patience: float) -> Iterator[Page]:
    wire = Loop(site)
    wire.retry_seconds = patience
    turns = Turns("")
    try:
        asked: _Asking | None = _ask(wire, site, "")
        while asked is not None:
            page = _page(wire, asked)
            if turns.again(page.token):
                raise StoreError(Cause.DATA_CORRUPT, f"cannot list {site.uri}: the store names the same page again")
            asked = _ask(wire, site, page.token) if page.token else None
            yield page
    finally:
        wire.close()


def _ask(wire: Loop, site: Site, token: str) -> _Asking:
    job = _Asking(site, token)
    wire.add(job)
    wire.turn(0.0)
    return job


def _page(wire: Loop, asked: _Asking) -> Page:
    while not asked.done:
        wire.turn(_TURN_SECONDS)
    if asked.error is not None:
        raise asked.error
    assert asked.page is not None
    return asked.page
