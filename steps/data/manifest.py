"""The immutable dataset manifest: every object with the version it had, and one digest over all of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import islice
from typing import Any, Protocol, Self

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.keys import check_key, check_keys
from argosy.steps.data.shards import MAX_LENGTH, ROWS, Read, Shard, parsed, sized

FORMAT = "argosy-dataset-2"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHECKSUM = re.compile(r"crc64nvme:[A-Za-z0-9+/]{11}=|crc32c?:[A-Za-z0-9+/]{6}==|sha256:[0-9a-f]{64}")
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def check_digest(digest: str, field: str) -> str:
    """``digest`` unchanged, if it is 64 lower-case hex digits.

    Raises:
        InputError: it is not; ``field`` is named.
    """
    if not _DIGEST.fullmatch(digest):
        raise InputError(
            f"{field} = {digest!r}: a digest is 64 hex digits; what shows 12 of them shows all with --json"
        )
    return digest


@dataclass(frozen=True, slots=True)
class DataObject:
    """One object: key below the dataset's uri, size in bytes, ETag and version as the store named them.

    ``checksum`` of the whole object when it is known beforehand, else empty: ``crc64nvme:``, ``crc32c:`` or
    ``crc32:`` and base64 (big-endian, as S3 writes it), or ``sha256:`` and 64 hex digits.
    """

    key: str
    size: int
    etag: str = ""
    version: str = ""
    checksum: str = ""

    def line(self) -> bytes:
        """The object as one line of canonical JSON without line feed: what the manifest's digest is taken over."""
        return _encode([self.key, self.size, self.etag, self.version, self.checksum]).encode()

    @classmethod
    def of_row(cls, row: Any) -> Self:
        """The object of a parsed line.

        Raises:
            ValueError: not such a row.
            InputError: its key cannot be a file.
        """
        if not isinstance(row, list) or [type(cell) for cell in row] != [str, int, str, str, str] or row[1] < 0:
            raise ValueError(f"not an object of a dataset: {row!r}")
        check_key(row[0])
        return cls(*row).checked()

    def checked(self) -> Self:
        """This object, if its checksum is written as it has to be; else ValueError."""
        if self.checksum and not _CHECKSUM.fullmatch(self.checksum):
            raise ValueError(f"object {self.key!r}: {self.checksum!r} is no checksum")
        return self


class Objects(Protocol):
    """Objects by key, as many times as they are asked for: a manifest, a share of it, or a list."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[DataObject]: ...


class DatasetManifest:
    """All objects of a dataset by key; iterating reads them shard by shard, as often as it is asked for.

    Make one with :meth:`of`, :meth:`from_bytes` or :func:`argosy.steps.data.stored_manifest.load_manifest`.
    """

    def __init__(self, uri: str, shards: Iterable[Shard], read: Read) -> None:
        """``read`` gives the verified text of each of ``shards``."""
        self.uri = uri
        self.shards = tuple(shards)
        self.digest = _digest(uri, self.shards)
        self._read = read

    @classmethod
    def of(cls, uri: str, objects: Iterable[DataObject]) -> Self:
        """Sort, check the keys, and take the digest; everything stays in memory (else ``build_manifest``).

        Raises:
            InputError: a key that cannot be a file (see :func:`argosy.steps.data.keys.check_keys`).
        """
        ordered = sorted(objects, key=lambda one: one.key)
        check_keys(one.key for one in ordered)
        texts: dict[Shard, bytes] = {}
        for first in range(0, len(ordered), ROWS):
            rows = ordered[first : first + ROWS]
            text = b"".join(one.line() + b"\n" for one in rows)
            texts[Shard.of(text, sum(one.size for one in rows))] = text
        return cls(uri, texts, texts.__getitem__)

    @property
    def count(self) -> int:
        """Number of objects."""
        return sum(shard.rows for shard in self.shards)

    @property
    def total_bytes(self) -> int:
        """Sum of the sizes."""
        return sum(shard.total_bytes for shard in self.shards)

    def __len__(self) -> int:
        return self.count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetManifest) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def text(self, shard: Shard) -> bytes:
        """The verified lines of one shard.

        Raises:
            StepError: ``data_corrupt`` when what is kept is not it, or what the store reported.
        """
        try:
            return self._read(shard)
        except ValueError as error:
            raise _corrupt(self.uri, str(error)) from error

    def __iter__(self) -> Iterator[DataObject]:
        """The objects by key.

        Raises:
            StepError: ``data_corrupt`` when a shard is not what the digest says, or what the store reported.
            InputError: a key that cannot be a file.
        """
        last = ""
        for one in map(DataObject.of_row, self._all_rows()):
            if one.key <= last:
                raise _corrupt(self.uri, f"{one.key!r} stands after {last!r}")
            last = one.key
            yield one

    def every(self, step: int) -> Iterator[DataObject]:
        """The first object, the ``step``-th after it, and so on."""
        return map(DataObject.of_row, islice(self._all_rows(), 0, None, step))

    def keys(self) -> Iterator[str]:
        """The keys alone, in order, not checked again."""
        return (row[0] for row in self._all_rows())

    def rows(self, shard: Shard) -> Iterator[Any]:
        """``[key, size, etag, version, checksum]`` of a shard's objects, as they were parsed and not checked again.

        Raises:
            StepError: ``data_corrupt`` when the shard is not what the digest says, or what the store reported.
        """
        return parsed(self.text(shard))

    def sized(self, shard: Shard) -> Iterator[tuple[bytes, int, bytes]]:
        """Key as it stands in the row, size, and the row, of a shard's objects: faster than :meth:`rows`.

        Raises:
            StepError: as :meth:`rows`.
        """
        try:
            return sized(shard, self.text(shard))
        except ValueError as error:
            raise _corrupt(self.uri, str(error)) from error

    def _all_rows(self) -> Iterator[Any]:
        return (row for shard in self.shards for row in self.rows(shard))

    def to_bytes(self) -> bytes:
        """The root document: JSON, the same bytes for the same dataset; rows inline where one shard holds them."""
        head = {"format": FORMAT, "uri": self.uri, "digest": self.digest, "count": self.count}
        begin = json.dumps({**head, "bytes": self.total_bytes})[:-1]
        if len(self.shards) > 1:
            rows = ",\n".join(_encode(astuple(shard)) for shard in self.shards)
            return f'{begin}, "shards": [\n{rows}\n]}}\n'.encode()
        text = b"".join(map(self.text, self.shards))
        return begin.encode() + b', "objects": [\n' + text.rstrip(b"\n").replace(b"\n", b",\n") + b"\n]}\n"

    @classmethod
    def from_bytes(cls, raw: bytes, read: Read | None = None) -> Self:
        """Parse what :meth:`to_bytes` wrote; the digest is checked, keys of inline rows too.

        Raises:
            ValueError: not a manifest, another format, or the digest is not that of the content.
            InputError: a key that cannot be a file.
        """
        record = json.loads(raw)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ValueError(f"not a dataset manifest of format {FORMAT}")
        uri = str(record.get("uri"))
        if "shards" in record:
            if read is None:
                raise ValueError("its shards lie in a store")
            manifest = cls(uri, [_shard(row) for row in record["shards"]], read)
        else:
            manifest = cls.of(uri, [DataObject.of_row(row) for row in record.get("objects", ())])
        if manifest.digest != record.get("digest"):
            raise ValueError(f"content has digest {manifest.digest}, the manifest says {record.get('digest')}")
        if (manifest.count, manifest.total_bytes) != (record.get("count"), record.get("bytes")):
            raise ValueError("count or bytes are not those of its rows")
        return manifest


def _corrupt(uri: str, reason: str) -> StepError:
    return StepError(Cause.DATA_CORRUPT, f"dataset manifest of {uri}: {reason}", quote=reason)


def _shard(row: Any) -> Shard:
    if not isinstance(row, list) or [type(cell) for cell in row] != [str, int, int, int]:
        raise ValueError(f"not a shard of a manifest: {row!r}")
    if not _DIGEST.fullmatch(row[0]) or not 0 < row[1] <= ROWS or row[2] < 0 or not 0 < row[3] <= MAX_LENGTH:
        raise ValueError(f"not a shard of a manifest: {row!r}")
    return Shard(*row)


def _digest(uri: str, shards: Iterable[Shard]) -> str:
    # The uri is part of it: the same keys and ETags in another bucket are read from another place. Over the shards'
    # names instead of the rows, so that each shard can be checked alone and the digest without reading any.
    running = hashlib.sha256(f"{FORMAT}\n{json.dumps(uri)}\n".encode())
    for shard in shards:
        running.update(_encode(astuple(shard)).encode() + b"\n")
    return running.hexdigest()
