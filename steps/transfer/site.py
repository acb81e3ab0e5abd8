"""One bucket or prefix on S3: how requests for its objects are made, and what may be learnt from its refusals."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.env import S3_TRANSPORT
from argosy.steps.store.base import StoreError, check_key
from argosy.steps.store.s3_settings import KEY_SECONDS, Identity, Keys, s3_settings
from argosy.steps.transfer.answers import Head
from argosy.steps.transfer.asking import Headers
from argosy.steps.transfer.jobs import Again, Request
from argosy.steps.transfer.refusals import SKEWED, Refusal
from argosy.steps.transfer.transport import LIBRARY, WIRE, BeyondWire, say_taken, transport
from argosy.steps.transfer.wire.route import Route
from argosy.steps.transfer.wire.signing import Signer

if TYPE_CHECKING:
    from argosy.steps.transfer.library import LibraryRoute
    from argosy.steps.transfer.library_signing import LibrarySigner

_SKEW_SECONDS = 60.0
_RENEW_SECONDS = 10.0


class Site:
    """The store at ``uri``; its ``route`` changes when the bucket turns out to be in another region, or when the
    library takes over."""

    def __init__(self, uri: str, on_taken: Callable[[str], None] | None = None) -> None:
        """``on_taken`` is told why the library takes over, when it does; None: people are.

        Raises:
            StoreError: there are no keys, or the environment says what cannot be.
        """
        parts = urlsplit(uri)
        self.uri = uri
        self.prefix = f"{parts.path.strip('/')}/".lstrip("/")
        """What the keys of all its objects begin with in the bucket."""
        self.settings = s3_settings(parts.netloc)
        self._identity = Identity(uri)
        self._keys: Keys | None = None if self.settings.anonymous else self._identity.keys()
        self._asked, self._renewed = time.monotonic(), 0.0
        self._moved = False
        self.generation = 0
        """Grows with everything that was mended: what was signed before may be asked again."""
        self._on_taken = on_taken or (lambda why: say_taken(uri, why))
        self._transport = transport()
        self._library = self._transport == LIBRARY
        self.route: Route | LibraryRoute
        self._signer: Signer | LibrarySigner
        self._set_out()

    def surprised(self, what: str) -> bool:
        """An answer was nothing that the wire knows: whether the library reads on from here."""
        if self._library or self._transport == WIRE:
            return False
        self._library = True
        self._set_out()
        self._on_taken(what)
        return True

    @property
    def by_library(self) -> bool:
        """Whether the library reads."""
        return self._library

    def at(self, key: str) -> str:
        """The object's uri."""
        return f"{self.uri}/{key}"

    def request(self, method: str, key: str, *, version: str = "", amz: Headers = (), plain: str = "") -> Request:
        """See :meth:`argosy.steps.transfer.wire.signing.Signer.head`; ``key`` is below the uri.

        Raises:
            StoreError: a key that cannot be read, or keys that cannot be had any more.
        """
        check_key(key, self.uri)
        self._refresh_keys()
        try:
            return self._signer.head(method, f"{self.prefix}{key}", version=version, amz=amz, plain=plain)
        except UnicodeEncodeError as error:
            raise StoreError(Cause.DATA_CORRUPT, f"key {key!r} of {self.uri} is no text") from error

    def list_request(self, token: str) -> Request:
        """A page of ListObjectsV2 of everything below the uri; ``token``: not the first one.

        Raises:
            StoreError: keys that cannot be had any more.
        """
        self._refresh_keys()
        asked = (("continuation-token", token), ("encoding-type", "url"), ("list-type", "2"), ("prefix", self.prefix))
        # By name, as they are signed.
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in asked if value)
        return self._signer.head("GET", "", query=query)

    def refused(
        self, head: Head, body: bytes, key: str, etag: str, signed: int, *, action: str = "read"
    ) -> StoreError | Again:
        """What an answer means to a request of generation ``signed``; what can be mended is: clock, keys, region."""
        refusal = Refusal(head.status, body)
        at = self.at(key) if key else self.uri
        error = refusal.error(at, etag, action)
        if (
            isinstance(error, StoreError)
            and refusal.mendable
            and (signed < self.generation or self._mend(refusal, head))
        ):
            return Again(error, at_once=True, elsewhere=refusal.redirected)
        if refusal.redirected:
            where = head.get("x-amz-bucket-region") or refusal.region or head.get("location")
            text = f"cannot {action} {at}: the bucket is elsewhere ({where or refusal.said}); set AWS_REGION"
            return StoreError(Cause.S3_ACCESS, text, quote=refusal.said)
        return error

    def _refresh_keys(self) -> None:
        if self._keys is not None and time.monotonic() - self._asked > KEY_SECONDS:
            self._sign_with(self._identity.keys())

    def _set_out(self) -> None:
        """The way to the host, and who signs."""
        settings = self.settings
        if not self._library:
            try:
                self.route = Route(settings.base, settings.ca_bundle)
            except BeyondWire as reason:
                if not self.surprised(str(reason)):
                    text = f"{reason}: {S3_TRANSPORT} = {WIRE!r} cannot read {self.uri}; write auto"
                    raise StoreError(Cause.S3_ACCESS, text) from reason
                return
        else:
            from argosy.steps.transfer.library import LibraryRoute

            self.route = LibraryRoute(settings)
        self._signer = self._make_signer()

    def _make_signer(self) -> Signer | LibrarySigner:
        if isinstance(self.route, Route):
            return Signer(self.settings, self._keys, proxy=self.route.proxy)
        from argosy.steps.transfer.library_signing import LibrarySigner

        return LibrarySigner(self.settings, self._keys)

    def _sign_with(self, keys: Keys) -> None:
        self._asked = time.monotonic()
        if keys != self._keys:
            skew, self._keys = self._signer.skew, keys
            self._signer = self._make_signer()
            self._signer.skew = skew

    def _mend(self, refusal: Refusal, head: Head) -> bool:
        """Whether the next request will be another one."""
        if refusal.redirected:
            mended = self._move(head.get("x-amz-bucket-region") or refusal.region)
        elif refusal.code in SKEWED:
            mended = self._set_clock(head.get("date"))
        else:
            mended = self._renew()
        self.generation += mended
        return mended

    def _renew(self) -> bool:
        now = time.monotonic()
        if self._keys is None or now - self._renewed < _RENEW_SECONDS:
            return False
        before, self._renewed = self._keys, now
        self._sign_with(self._identity.renew())
        return self._keys != before

    def _set_clock(self, date: str) -> bool:
        import calendar  # it is slow to import, and clocks are seldom wrong

        try:
            skew = calendar.timegm(time.strptime(date, "%a, %d %b %Y %H:%M:%S GMT")) - time.time()
        except ValueError:
            return False
        if abs(skew - self._signer.skew) < _SKEW_SECONDS:
            return False
        self._signer.skew = skew
        return True

    def _move(self, region: str) -> bool:
        if not region or self._moved or self.settings.endpoint:
            return False
        self._moved = True
        self.settings = self.settings.in_region(region)
        self._set_out()
        return True
