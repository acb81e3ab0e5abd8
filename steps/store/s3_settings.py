"""How an S3 bucket is reached, and as whom: what the environment says, read in one place.

``AWS_ENDPOINT_URL_S3``, ``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_DEFAULT_REGION``, ``AWS_PROFILE``,
``AWS_SKIP_SIGNATURE`` (anonymous), ``AWS_REQUEST_PAYER=requester``, ``AWS_CA_BUNDLE``,
``AWS_VIRTUAL_HOSTED_STYLE_REQUEST`` (for another S3), and the keys. Proxies: :mod:`argosy.steps.transfer.proxies`.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.store.base import StoreError

_HOST = re.compile(r"[A-Za-z0-9_.:-]+")
"""A name, or the number of an IPv4 or IPv6 address."""
KEY_SECONDS = 300
"""How long a key from boto3 is used before boto3 is asked again: shorter than its own refresh margin (10 minutes),
so that a key never expires while we hold it."""
_YES = ("1", "true", "yes")


class S3Settings(NamedTuple):
    """Where a bucket's objects are and how requests for them look.

    ``endpoint`` is that of another S3, "" for AWS itself; ``region`` is what signatures name. ``virtual``: the bucket
    is part of the host's name. ``ca_bundle``: file of certificates to trust ("" those of the system).
    """

    bucket: str
    endpoint: str
    region: str
    virtual: bool
    anonymous: bool
    requester_pays: bool
    ca_bundle: str

    @property
    def base(self) -> str:
        """The url that keys follow after a slash: scheme, host, and what of a path comes first."""
        if not self.endpoint:
            domain = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
            host = f"s3.{self.region}.{domain}"
            return f"https://{self.bucket}.{host}" if self.virtual else f"https://{host}/{self.bucket}"
        scheme, _, rest = self.endpoint.partition("://")
        return f"{scheme}://{self.bucket}.{rest}" if self.virtual else f"{self.endpoint}/{self.bucket}"

    def in_region(self, region: str) -> S3Settings:
        """The same bucket, found to be in another region."""
        return self._replace(region=region)


def s3_endpoint() -> str | None:
    """The endpoint of another S3, or None for AWS itself."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def asked_of(uri: str) -> str:
    """Which server a request that nobody answered went to; "" where the uri says it."""
    if not uri.startswith("s3://"):
        return ""
    endpoint = s3_endpoint()
    return f"; it was asked at {endpoint}" if endpoint else "; AWS_ENDPOINT_URL is not set, so AWS was asked"


def s3_settings(bucket: str) -> S3Settings:
    """What the environment says about ``bucket``.

    Raises:
        StoreError: ``s3_access``: an endpoint that is no url, or a file of certificates that has none.
    """
    endpoint = (s3_endpoint() or "").rstrip("/")
    if endpoint and not _is_address(endpoint):
        text = f"AWS_ENDPOINT_URL = {endpoint!r}: write http://host:port or https://host"
        raise StoreError(Cause.S3_ACCESS, text, code=ExitCode.USAGE)
    ca_bundle = os.environ.get("AWS_CA_BUNDLE", "")
    if ca_bundle:
        _check_certificates(ca_bundle)
    # Other S3s seldom have DNS names per bucket; a dot in a bucket's name breaks AWS's certificate.
    chosen = os.environ.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower()
    virtual = chosen in _YES if chosen else not endpoint and "." not in bucket
    return S3Settings(
        bucket=bucket,
        endpoint=endpoint,
        region=_region(bool(endpoint)),
        virtual=virtual,
        anonymous=os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in _YES,
        requester_pays=os.environ.get("AWS_REQUEST_PAYER", "").lower() == "requester",
        ca_bundle=ca_bundle,
    )


def _is_address(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # of a port that is no number, or of half an IPv6 address
        return False
    plain = not re.search(r"\s", endpoint) and _HOST.fullmatch(host) is not None
    return parts.scheme in ("http", "https") and plain and port != 0


def _check_certificates(ca_bundle: str) -> None:
    import ssl  # slow to import, and seldom needed within a cluster

    try:
        ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:
        why = "no certificates in it" if isinstance(error, ssl.SSLError) else error.strerror
        remedy = "name a PEM file of the authorities to trust, or unset it for those of the system"
        text = f"AWS_CA_BUNDLE = {ca_bundle!r}: {why}; {remedy}"
        raise StoreError(Cause.S3_ACCESS, text, quote=str(error), code=ExitCode.USAGE) from error


def _region(own_endpoint: bool) -> str:
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named or own_endpoint:
        return named or "us-east-1"
    try:
        # Only a profile can name a region that the environment does not.
        import botocore.session
    except ImportError:
        return "us-east-1"
    return str(botocore.session.get_session().get_config_variable("region") or "us-east-1")


class Keys(NamedTuple):
    """What requests are signed with; ``token`` is "" for keys that last."""

    key_id: str
    secret: str
    token: str = ""


class Identity:
    """The keys of this process: those of the environment, else boto3's chain (profiles, SSO, IRSA, instance role).

    Keys in the environment need no boto3, which saves its import (0.4 s) in every pod that has them.
    """

    def __init__(self, uri: str) -> None:
        """``uri`` is named in errors."""
        self._uri = uri
        self._session: Any = None
        self._known: Keys | None = None

    def keys(self) -> Keys:
        """The keys that are right now.

        Raises:
            StoreError: ``s3_access``: there are none, or they cannot be had.
        """
        found = static_keys()
        return found if found is not None else self._chain()

    def renew(self) -> Keys:
        """Keys after a refusal: read again from where they come from."""
        self._session = self._known = None
        return self.keys()

    def _chain(self) -> Keys:
        try:
            import botocore.session

            if self._session is None:
                self._session = botocore.session.get_session()
            found = self._session.get_credentials()
            frozen = found.get_frozen_credentials() if found is not None else None
        except Exception as error:
            if self._known is not None:  # botocore asks ten minutes before they end; then the store says so
                return self._known
            quote = (str(error).strip() or type(error).__name__).splitlines()[0]
            text = f"cannot get AWS credentials for {self._uri}: {quote}"
            raise StoreError(Cause.S3_ACCESS, text, quote=quote) from error
        if frozen is None:
            raise no_credentials(self._uri)
        self._known = Keys(frozen.access_key, frozen.secret_key, frozen.token or "")
        return self._known


def static_keys() -> Keys | None:
    """Keys that stand in the environment."""
    key_id, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    return Keys(key_id, secret, os.environ.get("AWS_SESSION_TOKEN", "")) if key_id and secret else None


def no_credentials(uri: str) -> StoreError:
    """What is said when nobody knows any keys."""
    return StoreError(
        Cause.S3_ACCESS,
        f"no AWS credentials for {uri}: none in the environment, the profile, the identity of the pod or the instance; "
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give the service account a role "
        "(AWS_SKIP_SIGNATURE=true: a public bucket)",
    )
