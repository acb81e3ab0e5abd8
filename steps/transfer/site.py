"""One bucket or prefix on S3: how requests for its objects are made, and what may be learnt from its refusals."""

from __future__ import annotations

import time
from urllib.parse import quote, urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError, check_key
from argosy.steps.store.s3_settings import KEY_SECONDS, Identity, Keys, s3_settings
from argosy.steps.transfer.jobs import Again
from argosy.steps.transfer.refusals import SKEWED, Refusal
from argosy.steps.transfer.response import Head
from argosy.steps.transfer.route import Route
from argosy.steps.transfer.signing import Headers, Signer

_SKEW_SECONDS = 60.0
_RENEW_SECONDS = 10.0


class Site:
    """The store at ``uri``; its ``route`` changes once at most, when the bucket turns out to be in another region."""

    def __init__(self, uri: str) -> None:
        """Raises StoreError: there are no keys, or the environment says what cannot be."""
        parts = urlsplit(uri)
        self.uri = uri
        self.prefix = f"{parts.path.strip('/')}/".lstrip("/")
        """What the keys of all its objects begin with in the bucket."""
        self._settings = s3_settings(parts.netloc)
        self._identity = Identity(uri)
        self._keys: Keys | None = None if self._settings.anonymous else self._identity.keys()
        self._asked, self._renewed = time.monotonic(), 0.0
        self._moved = False
        self.generation = 0
        """Grows with everything that was mended: what was signed before may be asked again."""
        self.route = Route(self._settings.base, self._settings.ca_bundle)
        self._signer = self._make_signer()

    def at(self, key: str) -> str:
        """The object's uri."""
        return f"{self.uri}/{key}"

    def request(self, method: str, key: str, *, version: str = "", amz: Headers = (), plain: str = "") -> bytes:
        """See :meth:`argosy.steps.transfer.signing.Signer.head`; ``key`` is below the uri.

        Raises:
            StoreError: a key that cannot be read, or keys that cannot be had any more.
        """
        check_key(key, self.uri)
        self._refresh_keys()
        try:
            return self._signer.head(method, f"{self.prefix}{key}", version=version, amz=amz, plain=plain)
        except UnicodeEncodeError as error:
            raise StoreError(Cause.DATA_CORRUPT, f"key {key!r} of {self.uri} is no text") from error

    def list_request(self, token: str) -> bytes:
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

    def _make_signer(self) -> Signer:
        return Signer(self._settings, self._keys, proxy=self.route.proxy)

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
        if not region or self._moved or self._settings.endpoint:
            return False
        self._moved = True
        self._settings = self._settings.in_region(region)
        self.route = Route(self._settings.base, self._settings.ca_bundle)
        self._signer = self._make_signer()
        return True
