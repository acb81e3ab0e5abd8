"""From a cloud uri to an obstore client: endpoint, addressing style, identity.

AWS identity is boto3's chain (profiles, SSO, IRSA, instance role), because obstore knows only a part of it. Static
keys in the environment need no boto3, which saves its import (0.4 s) in every pod that has them.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError

CREDENTIAL_SECONDS = 300
"""How long a key from boto3 is used before boto3 is asked again: shorter than its own refresh margin (10 minutes),
so that a key never expires while we hold it."""


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


def s3_endpoint() -> str | None:
    """The endpoint of another S3, or None for AWS itself."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def _s3(bucket: str, settings: dict[str, Any]) -> Any:
    from obstore.store import S3Store

    endpoint = s3_endpoint()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    # Other S3s seldom have DNS names per bucket; a dot in a bucket's name breaks AWS's certificate.
    config: Any = {
        "virtual_hosted_style_request": endpoint is None and "." not in bucket,
        "disable_bulk_delete": True,
    }
    if endpoint is not None:
        config["endpoint"] = endpoint.rstrip("/")
    static = os.environ.get("AWS_ACCESS_KEY_ID") and os.environ.get("AWS_SECRET_ACCESS_KEY")
    anonymous = os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true")
    if not anonymous and not (static and (region or endpoint)):
        provider = _boto3_provider(f"s3://{bucket}")
        settings["credential_provider"] = provider
        region = region or provider.config.get("region")
    config["region"] = region or "us-east-1"
    options = _client_options(allow_http=bool(endpoint and endpoint.startswith("http://")))
    return S3Store(bucket, config=config, client_options=options, **settings)


def _boto3_provider(uri: str) -> Any:
    import boto3
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        return Boto3CredentialProvider(boto3.Session(), ttl=timedelta(seconds=CREDENTIAL_SECONDS))
    except ValueError as error:
        raise StoreError(
            Cause.S3_ACCESS,
            f"no AWS credentials for {uri}: none in the environment, the profile, the pod's identity or the instance; "
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give the service account a role",
        ) from error


def _gcs(bucket: str, settings: dict[str, Any]) -> Any:
    from obstore.store import GCSStore

    return GCSStore(bucket, client_options=_client_options(allow_http=False), **settings)


def _azure(container: str, settings: dict[str, Any]) -> Any:
    from obstore.store import AzureStore

    return AzureStore(container, client_options=_client_options(allow_http=False), **settings)
