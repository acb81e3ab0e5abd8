"""One record of each service: whether it says that an object was created, and which."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

from argosy.steps.contract.errors import InputError
from argosy.steps.data.keys import check_key

REMEDY = "save the notification as S3, SQS, SNS, EventBridge, MinIO, GCS or Azure sent it, unchanged"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_GCS_CREATED = ("OBJECT_FINALIZE", "google.cloud.storage.object.v1.finalized")
_AZURE = "Microsoft.Storage."
_VERSITYGW = tuple(f"{way}-global" for way in ("webhook", "kafka", "nats", "rabbitmq"))
"""``configurationId`` of versitygw, by which alone its records differ from S3's; it escapes no key."""
_CONFIRMATIONS = ("SubscriptionConfirmation", "UnsubscribeConfirmation")


@dataclass(frozen=True)
class DatasetEvent:
    """One created object. ``id`` is the same for every delivery of the same version of the object."""

    id: str
    uri: str
    bucket: str
    key: str
    etag: str


def read_record(node: dict[str, Any], where: str) -> list[DatasetEvent] | None:
    """The objects that a record announces, none for one that announces nothing; None: it is no record.

    Raises:
        InputError: it is one, and lacks its bucket or key, or they cannot be used.
    """
    if "s3" in node:
        return _s3(node, where)
    if node.get("Event") == "s3:TestEvent" or node.get("Type") in _CONFIRMATIONS:
        return []
    if "detail-type" in node and "detail" in node:
        return _event_bridge(node, where)
    kind = str(node.get("eventType", node.get("type", "")))
    if kind.startswith((_AZURE, "Microsoft.EventGrid.")):
        return _azure(node, kind, where)
    attributes = node.get("attributes")
    if isinstance(attributes, dict) and "objectId" in attributes:
        return _gcs_attributes(attributes, f"{where}.attributes")
    if kind.startswith("google.cloud.storage.") or node.get("kind") == "storage#object":
        return _gcs_object(node, kind, where)
    return None


def _s3(record: dict[str, Any], where: str) -> list[DatasetEvent]:
    kind = _text(record, "eventName", where)
    # Ceph writes "s3:ObjectCreated:Put", S3 and versitygw "ObjectCreated:Put" or the same with the prefix.
    if not kind.removeprefix("s3:").startswith("ObjectCreated:"):
        return []
    s3 = _object(record, "s3", where)
    bucket = _text(_object(s3, "bucket", f"{where}.s3"), "name", f"{where}.s3.bucket")
    place = f"{where}.s3.object"
    item = _object(s3, "object", f"{where}.s3")
    key = _text(item, "key", place)
    if s3.get("configurationId") not in _VERSITYGW:
        key = _unescaped(key, f"{place}.key", unquote_plus)  # MinIO encodes "/" as well
    etag, version = _optional(item, "eTag", place), _optional(item, "versionId", place)
    # A sequencer differs with every write of the same bytes; it serves only where nothing names the content.
    content = [etag, version] if etag or version else [_optional(item, "sequencer", place)]
    return [_event("s3", bucket, key, etag, content, f"{where}.s3.bucket.name", f"{place}.key")]


def _event_bridge(node: dict[str, Any], where: str) -> list[DatasetEvent]:
    if node["detail-type"] != "Object Created":
        return []
    detail = _object(node, "detail", where)
    place = f"{where}.detail.object"
    bucket = _text(_object(detail, "bucket", f"{where}.detail"), "name", f"{where}.detail.bucket")
    item = _object(detail, "object", f"{where}.detail")
    key, etag = _text(item, "key", place), _optional(item, "etag", place)  # EventBridge escapes nothing
    content = [etag, _optional(item, "version-id", place)]
    return [_event("s3", bucket, key, etag, content, f"{where}.detail.bucket.name", f"{place}.key")]


def _gcs_attributes(attributes: dict[str, Any], where: str) -> list[DatasetEvent]:
    if attributes.get("eventType") not in _GCS_CREATED:
        return []
    bucket, key = _text(attributes, "bucketId", where), _text(attributes, "objectId", where)
    generation = _optional(attributes, "objectGeneration", where)
    return [_event("gs", bucket, key, "", ["", generation], f"{where}.bucketId", f"{where}.objectId")]


def _gcs_object(node: dict[str, Any], kind: str, where: str) -> list[DatasetEvent]:
    if kind and kind not in _GCS_CREATED:
        return []
    item, place = (_object(node, "data", where), f"{where}.data") if kind else (node, where)
    bucket, key, etag = _text(item, "bucket", place), _text(item, "name", place), _optional(item, "etag", place)
    content = ["", str(item.get("generation") or etag)]
    return [_event("gs", bucket, key, etag, content, f"{place}.bucket", f"{place}.name")]


def _azure(node: dict[str, Any], kind: str, where: str) -> list[DatasetEvent]:
    if kind != f"{_AZURE}BlobCreated":
        return []
    data, place = _object(node, "data", where), f"{where}.data"
    try:
        path = urlsplit(_text(data, "url", place)).path
    except ValueError as error:
        raise InputError(f"{place}.url: {error}; {REMEDY}") from error
    container, _, escaped = path.lstrip("/").partition("/")
    key = _unescaped(escaped, f"{place}.url", unquote)
    etag = _optional(data, "eTag", place)
    return [_event("az", container, key, etag, [etag, ""], f"{place}.url", f"{place}.url")]


def _event(
    scheme: str, bucket: str, key: str, etag: str, content: list[str], bucket_place: str, key_place: str
) -> DatasetEvent:
    if not _BUCKET.fullmatch(bucket):
        raise InputError(f"{bucket_place} = {shown(bucket)}: not a bucket's name; {REMEDY}")
    try:
        check_key(key[:-1] if key.endswith("/") else key)  # "/": a placeholder object of a folder
    except InputError as error:
        raise InputError(f"{key_place}: {error}") from error
    named = [bucket, key, *content] if scheme == "s3" else [scheme, bucket, key, *content]
    digest = hashlib.sha256(json.dumps(named).encode()).hexdigest()
    return DatasetEvent(digest[:32], f"{scheme}://{bucket}/{key}", bucket, key, etag)


def _unescaped(escaped: str, where: str, unquoted: Callable[..., str]) -> str:
    """Keys are URL-encoded once; ``+`` is a space to S3 and itself to Azure."""
    if broken := _BROKEN_ESCAPE.search(escaped):
        raise InputError(f"{where} = {shown(escaped)}: broken escape at {broken.start()}; {REMEDY}")
    try:
        return unquoted(escaped, errors="strict")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} = {shown(escaped)}: not UTF-8 after URL-decoding; {REMEDY}") from error


def _object(node: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    value = node.get(name)
    if not isinstance(value, dict):
        raise InputError(f"{where}.{name}: {shown(value)} is not an object; {REMEDY}")
    return value


def _text(node: dict[str, Any], name: str, where: str) -> str:
    value = node.get(name)
    if value is None:
        raise InputError(f"{where}.{name}: is missing; {REMEDY}")
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}.{name}: {shown(value)} is not a text; {REMEDY}")
    return value


def _optional(node: dict[str, Any], name: str, where: str) -> str:
    value = node.get(name)
    return "" if value is None or value == "" else _text(node, name, where).strip('"')


def shown(value: Any) -> str:
    """A value as an error shows it: ASCII, short."""
    text = "nothing" if value is None else ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."
