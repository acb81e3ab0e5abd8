"""What staging knows of each file it published: one line per file, by key as the bytes sort.

Fields are separated by tabs, which no key may have; a line needs no parser, and lines sort as their keys do.
"""

from __future__ import annotations

from typing import NamedTuple

from argosy.steps.contract.errors import InputError
from argosy.steps.data.manifest import DataObject

_FIELDS = 7


class FileRecord(NamedTuple):
    """A published file: which version of which object it is, its CRC-64/NVME, and its mtime on this disk (ns).

    ``checksum``: what the dataset's manifest said of the bytes, which was compared with them ("" nothing).
    """

    key: str
    size: int
    mtime_ns: int
    crc64nvme: int
    etag: str
    version: str
    checksum: str

    def is_of(self, one: DataObject) -> bool:
        """Whether the file was made from exactly this version of the object, and compared with what is known of it."""
        same = (self.key, self.size, self.etag, self.version) == (one.key, one.size, one.etag, one.version)
        return same and one.checksum in ("", self.checksum)

    def line(self) -> bytes:
        """The record with its line feed.

        Raises:
            InputError: a field has a control character.
        """
        key, size, mtime_ns, crc, etag, version, checksum = self
        text = f"{key}\t{size}\t{mtime_ns}\t{crc:016x}\t{etag}\t{version}\t{checksum}"
        if text.count("\t") != _FIELDS - 1 or "\n" in text:
            raise InputError(f"object {key!r}: its key, ETag or version has a control character; rename or rewrite it")
        return f"{text}\n".encode()


def record_of(line: bytes) -> FileRecord | None:
    """What :meth:`FileRecord.line` wrote; None for a torn or foreign line."""
    fields = line.rstrip(b"\n").split(b"\t")
    if len(fields) != _FIELDS or not line.endswith(b"\n"):
        return None
    try:
        key, size, mtime_ns, crc, etag, version, checksum = fields
        texts = etag.decode(), version.decode(), checksum.decode()
        return FileRecord(key.decode(), int(size), int(mtime_ns), int(crc, 16), *texts)
    except ValueError:
        return None


def key_of(line: bytes) -> bytes:
    """The key of a record's line, undecoded."""
    return line.partition(b"\t")[0]
