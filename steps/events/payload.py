"""What the services of buckets send when an object was created, in whatever envelope it arrives.

An event is a hint, never a fact: it says that a dataset may be complete. The store is read before anything starts.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.steps.events.formats import REMEDY, DatasetEvent, read_record, shown

MAX_EVENT_BYTES = 1 << 20
_ENVELOPES = ("Records", "Messages", "notification", "body", "Body", "Message", "Sns", "message", "data", "data_base64")
_MAX_DEPTH = 12

__all__ = ["MAX_EVENT_BYTES", "DatasetEvent", "parse_events"]


def parse_events(raw: bytes | str, source: str = "event") -> list[DatasetEvent]:
    """Every object that the notification says was created; test events and other kinds give none.

    ``source`` names the input in messages. Understood: records of S3, MinIO, Ceph and versitygw; EventBridge; GCS
    (Pub/Sub); Azure Event Grid; CloudEvents 1.0; each bare or as SQS, SNS, Lambda, Pub/Sub and Argo Events wrap it,
    also in base64.

    Raises:
        InputError: not JSON, too large, or a record without bucket or key, naming the place in the document.
    """
    if len(raw) > MAX_EVENT_BYTES:
        raise InputError(f"{source}: {len(raw)} bytes; an event has at most {MAX_EVENT_BYTES}; {REMEDY}")
    found: dict[str, DatasetEvent] = {}
    for event in _walk(_json(raw, source), source, 0):
        found.setdefault(event.id, event)
    return list(found.values())


def _json(raw: bytes | str, where: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        plain = _base64(raw)
        if plain is not None:
            return _json(plain, where)
        raise InputError(f"{where}: not JSON ({error}); {REMEDY}") from error


def _base64(raw: bytes | str) -> bytes | None:
    """What it holds if it is JSON's beginning in base64, which is how it passes through templates unread."""
    try:
        plain = base64.b64decode(raw, validate=True)
    except (ValueError, binascii.Error):
        return None
    return plain if plain.lstrip()[:1] in (b"{", b"[", b'"') else None


def _walk(node: Any, where: str, depth: int) -> list[DatasetEvent]:
    """Unpack envelopes until records are reached."""
    if depth > _MAX_DEPTH:
        raise InputError(f"{where}: envelopes are nested more than {_MAX_DEPTH} deep; {REMEDY}")
    if isinstance(node, str):
        return _walk(_json(node, where), where, depth + 1)
    if isinstance(node, list):
        if not node:
            raise InputError(f"{where}: an empty list; {REMEDY}")
        return [event for i, item in enumerate(node) for event in _walk(item, f"{where}[{i}]", depth + 1)]
    if not isinstance(node, dict):
        raise InputError(f"{where}: {shown(node)} is neither an object nor a list; {REMEDY}")
    record = read_record(node, where)
    if record is not None:
        return record
    for name in _ENVELOPES:
        if name in node:
            return _walk(node[name], f"{where}.{name}", depth + 1)
    raise InputError(f"{where}: none of {', '.join(('s3', *_ENVELOPES))} is in it; {REMEDY}")
