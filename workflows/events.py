"""Bucket notifications: the JSON that S3, SQS, SNS and MinIO send, and whether it concerns a run.

An event is a hint, never a fact: it says that a dataset may be complete. ``snapshot`` reads the store itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, unquote_plus, urlsplit

from argosy.steps.contract.errors import InputError
from argosy.steps.data.keys import READY_MARKERS, check_key

MAX_EVENT_BYTES = 1 << 20
MARKERS = (*READY_MARKERS, ".manifest.json")
"""What ends the name of an object that says "this dataset is complete"; its folder is the dataset."""
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ENVELOPES = ("Records", "Messages", "notification", "body", "Body", "Message", "Sns")
_MAX_DEPTH = 12
_REMEDY = "save the notification as S3, SQS, SNS or MinIO sent it, unchanged"


@dataclass(frozen=True)
class DatasetEvent:
    """One created object. ``id`` is the same for every delivery of the same version of the object."""

    id: str
    uri: str
    bucket: str
    key: str
    etag: str


@dataclass(frozen=True)
class StartDecision:
    """Whether to start, why, with which event id, and on which dataset (``dataset_uri`` of the run or below it)."""

    start: bool
    reason: str
    event_id: str = ""
    dataset_uri: str = ""


def parse_events(raw: bytes | str, source: str = "event") -> list[DatasetEvent]:
    """Every object that the notification says was created; test events and other kinds give none.

    ``source`` names the input in messages. Understood: S3 and MinIO records; SQS messages (``Body``), also as
    ``aws sqs receive-message`` prints them; SNS notifications (``Message``); Lambda's batches of both; and the
    body that Argo Events hands on.

    Raises:
        InputError: not JSON, too large, or a record without bucket or key, naming the place in the document.
    """
    if len(raw) > MAX_EVENT_BYTES:
        raise InputError(f"{source}: {len(raw)} bytes; an event has at most {MAX_EVENT_BYTES}; {_REMEDY}")
    found: dict[str, DatasetEvent] = {}
    for event in _walk(_json(raw, source), source, 0):
        found.setdefault(event.id, event)
    return list(found.values())


def _json(raw: bytes | str, where: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON ({error}); {_REMEDY}") from error


def _walk(node: Any, where: str, depth: int) -> list[DatasetEvent]:
    """Unpack envelopes until S3 records are reached."""
    if depth > _MAX_DEPTH:
        raise InputError(f"{where}: envelopes are nested more than {_MAX_DEPTH} deep; {_REMEDY}")
    if isinstance(node, str):
        return _walk(_json(node, where), where, depth + 1)
    if isinstance(node, list):
        if not node:
            raise InputError(f"{where}: an empty list; {_REMEDY}")
        return [event for i, item in enumerate(node) for event in _walk(item, f"{where}[{i}]", depth + 1)]
    if not isinstance(node, dict):
        raise InputError(f"{where}: {_short(node)} is neither an object nor a list; {_REMEDY}")
    if "s3" in node:
        return _record(node, where)
    if node.get("Event") == "s3:TestEvent":
        return []
    for name in _ENVELOPES:
        if name in node:
            return _walk(node[name], f"{where}.{name}", depth + 1)
    raise InputError(f"{where}: none of {', '.join(('s3', *_ENVELOPES))} is in it; {_REMEDY}")


def _record(record: dict[str, Any], where: str) -> list[DatasetEvent]:
    kind = _text(record, "eventName", where)
    if not kind.removeprefix("s3:").startswith("ObjectCreated:"):
        return []
    s3 = _object(record, "s3", where)
    bucket = _text(_object(s3, "bucket", f"{where}.s3"), "name", f"{where}.s3.bucket")
    if not _BUCKET.fullmatch(bucket):
        raise InputError(f"{where}.s3.bucket.name = {_short(bucket)}: not a bucket's name; {_REMEDY}")
    item = _object(s3, "object", f"{where}.s3")
    place = f"{where}.s3.object"
    key = _decoded(_text(item, "key", place), f"{place}.key")
    etag, version = _optional(item, "eTag", place), _optional(item, "versionId", place)
    # A sequencer differs with every write of the same bytes; it serves only where nothing names the content.
    content = [etag, version] if etag or version else [_optional(item, "sequencer", place)]
    digest = hashlib.sha256(json.dumps([bucket, key, *content]).encode()).hexdigest()
    return [DatasetEvent(digest[:32], f"s3://{bucket}/{key}", bucket, key, etag)]


def _decoded(encoded: str, where: str) -> str:
    """Keys are URL-encoded once: ``+`` is a space, MinIO also encodes ``/``."""
    if broken := _BROKEN_ESCAPE.search(encoded):
        raise InputError(f"{where} = {_short(encoded)}: broken escape at {broken.start()}; {_REMEDY}")
    try:
        key = unquote_plus(encoded, errors="strict")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} = {_short(encoded)}: not UTF-8 after URL-decoding; {_REMEDY}") from error
    folder = key[:-1] if key.endswith("/") else key  # a placeholder object of a folder
    try:
        check_key(folder)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return key


def _object(node: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    value = node.get(name)
    if not isinstance(value, dict):
        raise InputError(f"{where}.{name}: {_short(value)} is not an object; {_REMEDY}")
    return value


def _text(node: dict[str, Any], name: str, where: str) -> str:
    value = node.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}.{name}: {_short(value)} is not a text; {_REMEDY}")
    return value


def _optional(node: dict[str, Any], name: str, where: str) -> str:
    value = node.get(name)
    return "" if value is None or value == "" else _text(node, name, where).strip('"')


def _short(value: Any) -> str:
    shown = "nothing" if value is None else ascii(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def match(event: DatasetEvent, dataset_uri: str) -> str | None:
    """None when the event's object lies in the dataset, else the reason why it does not.

    ``s3://`` and other buckets: same bucket and a key below the prefix. ``file://``, which has no bucket: the
    last folder (or folders) of its path must be how the key, or bucket and key, begin: an event for bucket
    ``b`` and key ``corpus/x`` concerns ``file:///data/corpus`` as well as ``file:///data/b/corpus``.
    """
    return None if _below(event, dataset_uri) is not None else f"{event.uri} is not below {dataset_uri}"


def _below(event: DatasetEvent, dataset_uri: str) -> str | None:
    """The event's key relative to the dataset, or None when it lies elsewhere."""
    parts = urlsplit(dataset_uri)
    if parts.scheme != "file":
        prefix = parts.path.strip("/")
        if parts.netloc != event.bucket:
            return None
        if not prefix:
            return event.key
        return event.key[len(prefix) + 1 :] if event.key.startswith(f"{prefix}/") else None
    folders = [part for part in unquote(parts.path).split("/") if part]
    for path in (f"{event.bucket}/{event.key}".split("/"), event.key.split("/")):
        for length in range(min(len(folders), len(path) - 1), 0, -1):
            if folders[-length:] == path[:length]:
                return "/".join(path[length:])
    return None


def is_marker(key: str, markers: Sequence[str] = MARKERS) -> bool:
    """Whether the object says that its folder is a complete dataset."""
    name = key.rpartition("/")[2]
    return any(name == marker or (marker.startswith(".") and name.endswith(marker)) for marker in markers)


def start_reason(
    run_dataset_uri: str, events: Sequence[DatasetEvent], *, markers: Sequence[str] = MARKERS
) -> StartDecision:
    """Whether these events start the run that reads ``run_dataset_uri``.

    A marker object starts it on the marker's folder, which is the run's dataset or a folder below it; any other
    object of the dataset starts it on the dataset as a whole. The first marker wins, then the first object.
    """
    uri = run_dataset_uri.rstrip("/")
    if not uri:
        return StartDecision(False, "the run has no dataset that an event could concern")
    if not events:
        return StartDecision(False, "the event says of no object that it was created (a test event, or other kinds)")
    ordered = sorted(events, key=lambda event: not is_marker(event.key, markers))
    for event in ordered:
        inside = _below(event, uri)
        if inside is None:
            continue
        if not is_marker(event.key, markers):
            return StartDecision(True, f"{event.uri} was created in the dataset", event.id, uri)
        folder = inside.rpartition("/")[0]
        if uri.startswith("file:"):
            folder = quote(folder)  # a key's "%" is a "%" of the file's name
        return StartDecision(True, f"{event.uri} marks a complete dataset", event.id, f"{uri}/{folder}".rstrip("/"))
    more = f" (and {len(ordered) - 1} more)" if len(ordered) > 1 else ""
    return StartDecision(False, f"the event is for another dataset: {match(ordered[0], uri)}{more}", ordered[0].id)
