"""What lies below a dataset's uri now, by one listing: the facts that an event only hints at."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote

from argosy.steps.contract.trigger_arguments import TriggerArgs
from argosy.steps.data.keys import READY_MARKERS, STATE_FOLDER
from argosy.steps.events.matching import MARKERS, is_marker
from argosy.steps.store import ObjectInfo, open_store

_WIDTH = 64


@dataclass(frozen=True)
class Found:
    """Data that may start a run: where, which version (``digest``, 64 hex digits), how much, and why they count."""

    uri: str
    digest: str
    objects: int
    size: int
    why: str


@dataclass
class _Sum:
    """Objects in any order, in a few bytes however many there are: their hashes are added up."""

    objects: int = 0
    markers: int = 0
    """Beside the objects: their words only name the version of these."""
    size: int = 0
    total: int = 0

    def add(self, uri: str, info: ObjectInfo, *, marks: bool) -> None:
        line = json.dumps([uri, info.size, info.etag]).encode()
        self.merge(_Sum(not marks, marks, info.size, int.from_bytes(hashlib.sha512(line).digest())))

    def merge(self, other: _Sum) -> None:
        self.objects += other.objects
        self.markers += other.markers
        self.size += other.size
        self.total = (self.total + other.total) % (1 << 8 * _WIDTH)

    def found(self, uri: str, why: str) -> Found:
        text = b"%d %d " % (self.objects + self.markers, self.size) + self.total.to_bytes(_WIDTH)
        return Found(uri, hashlib.sha256(text).hexdigest(), self.objects, self.size, why)


@dataclass
class Look:
    """One listing below ``folder`` of the trigger's dataset ("" for all of it); keys are relative to the dataset.

    With ``before`` (seconds since 1970) it sees what was there at that time and has not changed since.
    """

    args: TriggerArgs
    folder: str = ""
    before: float = math.inf
    seen: int = 0
    _sums: dict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    _markers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._read(open_store(dataset_below(self.args.dataset_uri, self.folder)).scan())

    def _read(self, infos: Iterable[ObjectInfo]) -> None:
        root = self.args.dataset_uri.rstrip("/")
        markers = self.args.marker or MARKERS
        for info in infos:
            self.seen += 1
            if info.stored >= self.before:
                continue
            key = f"{self.folder}/{info.key}" if self.folder else info.key
            folder, _, name = key.rpartition("/")
            if marks := is_marker(key, markers) and wanted(self.args, key):
                self._markers[folder] = name
            if name in READY_MARKERS or key.startswith(f"{STATE_FOLDER}/"):
                continue
            if self.args.on == "marker" or wanted(self.args, key):
                # What is marked by a name of one's own, as .parquet, may be the data.
                empty = marks and self.args.on == "marker" and (not info.size or is_marker(key, MARKERS))
                self._sums[folder].add(f"{root}/{key}", info, marks=empty)

    def marked(self) -> list[Found]:
        """Every folder with a marker, by name, and all that lies in it and below."""
        sums = {folder: _Sum() for folder in self._markers}
        for folder, part in self._sums.items():
            for above in _with_parents(folder):
                if above in sums:
                    sums[above].merge(part)
        root = self.args.dataset_uri
        return [
            part.found(dataset_below(root, folder), f"{self._markers[folder]} marks a complete dataset")
            for folder, part in sorted(sums.items())
        ]

    def whole(self) -> Found:
        """All of it, whatever markers there are."""
        total = _Sum()
        for part in self._sums.values():
            total.merge(part)
        return total.found(dataset_below(self.args.dataset_uri, self.folder), "")

    def state(self) -> str:
        """Equal for two looks between which nothing changed: data or markers."""
        return f"{self.whole().digest} {sorted(self._markers)}"


def wanted(args: TriggerArgs, key: str) -> bool:
    """Whether the trigger's prefix and suffix let an object pass; ``key`` is relative to the dataset."""
    return key.startswith(args.prefix) and key.endswith(args.suffix)


def dataset_below(uri: str, folder: str) -> str:
    """The uri of a folder of the dataset; a key's ``%`` is a ``%`` of a file's name."""
    inner = quote(folder, errors="surrogateescape") if uri.startswith("file:") else folder
    return f"{uri.rstrip('/')}/{inner}".rstrip("/")


def _with_parents(folder: str) -> list[str]:
    parts = folder.split("/") if folder else []
    return ["/".join(parts[:length]) for length in range(len(parts) + 1)]
