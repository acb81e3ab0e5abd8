"""Whether an event concerns a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from argosy.steps.data.keys import READY_MARKERS
from argosy.steps.events.formats import DatasetEvent

MARKERS = (*READY_MARKERS, ".manifest.json")
"""What ends the name of an object that says "this dataset is complete"; its folder is the dataset."""


@dataclass(frozen=True)
class StartDecision:
    """Whether to start, why, with which event id, and on which dataset (``dataset_uri`` of the run or below it)."""

    start: bool
    reason: str
    event_id: str = ""
    dataset_uri: str = ""


def match(event: DatasetEvent, dataset_uri: str) -> str | None:
    """None when the event's object lies in the dataset, else the reason why it does not.

    ``s3://`` and other buckets: same service, same bucket and a key below the prefix. ``file://``, which has no
    bucket: the last folder (or folders) of its path must be how the key, or bucket and key, begin: an event for bucket
    ``b`` and key ``corpus/x`` concerns ``file:///data/corpus`` as well as ``file:///data/b/corpus``.
    """
    return None if below(event, dataset_uri) is not None else f"{event.uri} is not below {dataset_uri}"


def below(event: DatasetEvent, dataset_uri: str) -> str | None:
    """The event's key relative to the dataset, or None when it lies elsewhere."""
    parts = urlsplit(dataset_uri)
    if parts.scheme != "file":
        prefix = parts.path.strip("/")
        if (parts.scheme, parts.netloc) != (event.uri.partition(":")[0], event.bucket):
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
        inside = below(event, uri)
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
