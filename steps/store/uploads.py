"""Uploads in parts that nobody will finish: S3 keeps (and bills) what a killed writer sent, and no listing shows it.

Only ``s3://`` is asked. Azure drops unfinished uploads after a week, GCS when a lifecycle rule says so; ``file://``
keeps half-written objects in one folder that the next writer clears.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import ObjectStore, StoreError
from argosy.steps.store.cloud_client import first_line
from argosy.steps.store.s3_settings import s3_endpoint, s3_settings


@dataclass(frozen=True)
class Upload:
    """One unfinished upload."""

    key: str
    """Below the store's root."""
    upload_id: str


def unfinished(store: ObjectStore, prefix: str) -> Iterator[Upload]:
    """Uploads below the prefix that have not been completed; nothing where the store is not ``s3://``.

    Raises:
        StoreError: the store refused or failed.
    """
    if not store.uri.startswith("s3://"):
        return
    client, bucket, root = _client(store.uri, s3_endpoint())
    below = f"{root}{prefix}/"
    # MinIO takes a prefix for a whole key (github.com/minio/minio/issues/20989), other gateways ignore it.
    marker: dict[str, str] = {} if s3_endpoint() else {"Prefix": below}
    while True:
        try:
            page = client.list_multipart_uploads(Bucket=bucket, **marker)
        except Exception as error:
            raise _refused("list unfinished uploads below", f"{store.uri}/{prefix}", error) from error
        for found in page.get("Uploads", ()):
            if found["Key"].startswith(below):
                yield Upload(found["Key"][len(root) :], found["UploadId"])
        following = {name: page.get(f"Next{name}", "") for name in ("KeyMarker", "UploadIdMarker")}
        # A gateway may say that there are more and not where: the same page would come for ever.
        if not page.get("IsTruncated") or not following["KeyMarker"] or following.items() <= marker.items():
            return
        marker |= following


def abort(store: ObjectStore, upload: Upload) -> None:
    """Drop the upload and its parts; one that is gone is no error.

    Raises:
        StoreError: the store refused or failed.
    """
    client, bucket, root = _client(store.uri, s3_endpoint())
    try:
        client.abort_multipart_upload(Bucket=bucket, Key=root + upload.key, UploadId=upload.upload_id)
    except Exception as error:
        if "NoSuchUpload" not in str(error):
            raise _refused("abort an unfinished upload of", f"{store.uri}/{upload.key}", error) from error


@functools.lru_cache(maxsize=4)
def _client(uri: str, endpoint: str | None) -> tuple[Any, str, str]:
    """boto3's client for the store, its bucket, and its key prefix with a slash ("" for none)."""
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise StoreError(Cause.IMPORT_ERROR, "unfinished uploads are asked for with boto3; install it") from error
    parts = urlsplit(uri)
    config = Config(
        s3={"addressing_style": "virtual" if s3_settings(parts.netloc).virtual else "path"},
        retries={"max_attempts": 3},
        connect_timeout=10,
        read_timeout=60,
    )
    try:
        client = boto3.Session().client("s3", endpoint_url=endpoint, config=config)
    except Exception as error:  # of a profile that is not there, say: the store may have its keys from elsewhere
        raise _refused("ask with boto3 for unfinished uploads of", uri, error) from error
    prefix = parts.path.strip("/")
    return client, parts.netloc, f"{prefix}/" if prefix else ""


def _refused(action: str, uri: str, error: Exception) -> StoreError:
    quote = first_line(error)
    return StoreError(Cause.S3_ACCESS, f"cannot {action} {uri}: {quote}", quote=quote)
