"""What staging knows of each file it published: one JSON line per file, the same in journal and marker."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from argosy.steps.data.manifest import DataObject

FORMAT = "argosy-staged-1"
_TYPES = [str, int, str, str, str, int]


@dataclass(frozen=True)
class FileRecord:
    """A published file: which version of which object it is, its SHA-256, and its mtime on this disk (ns)."""

    key: str
    size: int
    etag: str
    version: str
    sha256: str
    mtime_ns: int

    def is_of(self, one: DataObject) -> bool:
        """Whether the file was made from exactly this version of the object."""
        same = (self.key, self.size, self.etag, self.version) == (one.key, one.size, one.etag, one.version)
        # Another algorithm's checksum was compared while the bytes came.
        return same and (not one.checksum.startswith("sha256:") or one.checksum == f"sha256:{self.sha256}")

    def line(self) -> bytes:
        """One JSON line with its line feed."""
        return json.dumps(astuple(self), separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class Marker:
    """Says that a folder holds one share of one dataset, whole."""

    dataset_digest: str
    share: str
    objects: int
    total_bytes: int

    def document(self, files: Iterable[FileRecord]) -> bytes:
        """The marker file: a head line, then the files by key."""
        head = {"format": FORMAT, **self.__dict__}
        lines = b"".join(record.line() for record in sorted(files, key=lambda record: record.key))
        return json.dumps(head).encode() + b"\n" + lines


def read_marker(raw: bytes) -> Marker | None:
    """The marker in a document, or None if it is none of ours or of another format."""
    try:
        head = json.loads(raw.split(b"\n", 1)[0])
        if head["format"] != FORMAT:
            return None
        return Marker(str(head["dataset_digest"]), str(head["share"]), int(head["objects"]), int(head["total_bytes"]))
    except (ValueError, KeyError, TypeError):
        return None


def read_records(raw: bytes) -> dict[str, FileRecord]:
    """Records by key, the last one of a key rules; torn or foreign lines are no records."""
    found: dict[str, FileRecord] = {}
    for line in raw.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, list) and [type(cell) for cell in row] == _TYPES:
            found[row[0]] = FileRecord(*row)
    return found
