"""From a uri to a store; the one place that knows the schemes."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from argosy.steps.contract.errors import InputError
from argosy.steps.store.base import ObjectStore

PERSON_SECONDS = 15.0
"""How long a request is repeated where somebody waits for it."""
POD_SECONDS = 180.0
"""The same in a pod."""
SAVE_SECONDS = 720.0
"""The same for what a save stores, while training goes on. Less than a Checkpointer's ranks wait for each other (900 s)
and than a hang takes to be one (1800 s): the store is named."""
CLOUD_SCHEMES = ("s3", "gs", "az")


def check_uri(uri: str, field: str = "uri") -> str:
    """The uri without trailing slashes.

    Raises:
        InputError: unknown scheme, no bucket, relative file path, query or fragment, ``..`` or control characters.
    """
    parts = urlsplit(uri)
    if uri.startswith("/"):
        raise InputError(f"{field} = {uri!r}: a path is no uri; write {Path(uri).as_uri()}")
    if parts.scheme not in (*CLOUD_SCHEMES, "file"):
        raise InputError(f"{field} = {uri!r}: unknown scheme; use s3://bucket/prefix, gs://, az:// or file:///path")
    if parts.query or parts.fragment or not uri.isprintable() or ".." in parts.path.split("/"):
        raise InputError(f"{field} = {uri!r}: a store uri has no '?', '#', '..' or control characters; remove them")
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
        raise InputError(f"{field} = {uri!r}: a file uri is absolute; write file:///path with three slashes")
    if parts.scheme != "file" and not parts.netloc:
        raise InputError(f"{field} = {uri!r}: no bucket; write {parts.scheme}://bucket/prefix")
    return uri.rstrip("/") if parts.path.strip("/") or parts.netloc else uri


def open_store(uri: str, *, retry_seconds: float = POD_SECONDS, quiet: bool = False) -> ObjectStore:
    """Open the store at ``uri``; nothing is contacted yet.

    Credentials of ``s3://`` come from boto3's chain; ``AWS_ENDPOINT_URL`` (or ``AWS_ENDPOINT_URL_S3``) names
    another S3. ``retry_seconds``: how long a request is repeated that the store fails to serve; that is said on
    stderr unless ``quiet``, for who says it in words of their own.

    Raises:
        InputError: see :func:`check_uri`.
    """
    checked = check_uri(uri)
    if checked.startswith("file:"):
        from argosy.steps.store.files import FileStore

        return FileStore(checked)
    from argosy.steps.store.cloud import CloudStore

    return CloudStore(checked, retry_seconds=retry_seconds, quiet=quiet)
