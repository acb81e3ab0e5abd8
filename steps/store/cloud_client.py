"""From a cloud uri to an obstore client; AWS identity is boto3's chain, because obstore knows only a part of it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.store.s3_settings import KEY_SECONDS, Identity, s3_settings, static_keys

_ENVIRONMENT = threading.Lock()


def open_client(uri: str, *, retry_seconds: float) -> Any:
    """An obstore client for ``s3://``, ``gs://`` or ``az://``.

    ``retry_seconds`` bounds how long one request is repeated on 5xx, timeouts and lost connections.

    Raises:
        StoreError: there are no credentials at all (``s3_access``), or the configuration is refused.
    """
    parts = urlsplit(uri)
    prefix = parts.path.strip("/") or None
    settings: dict[str, Any] = {
        "prefix": prefix,
        "retry_config": {"max_retries": 10, "retry_timeout": timedelta(seconds=retry_seconds)},
    }
    opener = {"s3": _s3, "gs": _gcs, "az": _azure}[parts.scheme]
    try:
        return opener(parts.netloc, settings)
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(Cause.S3_ACCESS, f"cannot open {uri}: {first_line(error)}", quote=first_line(error)) from error


def first_line(error: BaseException) -> str:
    """What obstore says before its debug dump."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _client_options(*, allow_http: bool) -> Any:
    # obstore's default of 30 s covers the whole body: a large shard over a slow link would never arrive.
    return {
        "allow_http": allow_http,
        "timeout": timedelta(minutes=30),
        "read_timeout": timedelta(seconds=60),
        "connect_timeout": timedelta(seconds=10),
    }


def _s3(bucket: str, settings: dict[str, Any]) -> Any:
    from obstore.store import S3Store

    wanted = s3_settings(bucket)
    config: Any = {
        "virtual_hosted_style_request": wanted.virtual,
        "disable_bulk_delete": True,
        "region": wanted.region,
        "skip_signature": wanted.anonymous,
        "request_payer": wanted.requester_pays,
    }
    if wanted.endpoint:
        # The client puts the bucket into the path by itself, but not into the host's name.
        config["endpoint"] = wanted.base if wanted.virtual else wanted.endpoint
    if not wanted.anonymous and static_keys() is None:
        settings["credential_provider"] = _provider(f"s3://{bucket}")
    options = _client_options(allow_http=wanted.endpoint.startswith("http://"))
    with _trusting(wanted.ca_bundle):
        return S3Store(bucket, config=config, client_options=options, **settings)


@contextlib.contextmanager
def _trusting(ca_bundle: str) -> Iterator[None]:
    """The client takes certificates from OpenSSL's variable only, and reads it when it is made."""
    if not ca_bundle:
        yield
        return
    with _ENVIRONMENT:
        before = os.environ.get("SSL_CERT_FILE")
        os.environ["SSL_CERT_FILE"] = ca_bundle
        try:
            yield
        finally:
            if before is None:
                del os.environ["SSL_CERT_FILE"]
            else:
                os.environ["SSL_CERT_FILE"] = before


def _provider(uri: str) -> Callable[[], dict[str, Any]]:
    identity = Identity(uri)
    identity.keys()  # none at all is said now, in our words

    def keys() -> dict[str, Any]:
        found = identity.keys()
        return {
            "access_key_id": found.key_id,
            "secret_access_key": found.secret,
            "token": found.token or None,
            "expires_at": datetime.now(UTC) + timedelta(seconds=KEY_SECONDS),
        }

    return keys


def _gcs(bucket: str, settings: dict[str, Any]) -> Any:
    from obstore.store import GCSStore

    return GCSStore(bucket, client_options=_client_options(allow_http=False), **settings)


def _azure(container: str, settings: dict[str, Any]) -> Any:
    from obstore.store import AzureStore

    return AzureStore(container, client_options=_client_options(allow_http=False), **settings)
