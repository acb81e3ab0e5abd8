"""Samples in tar archives, as WebDataset lays them out: members of one stem, in a row, are one sample.

ArchiveSamples are never unpacked: only their headers are read, to know which bytes of the object a member is, and no
member's name ever becomes a path. What could mean a file somewhere else is refused all the same.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.keys import check_key
from argosy.steps.store import StoreError
from argosy.steps.stream.blocks import sealed, unsealed
from argosy.steps.stream.catalogue import Catalogue, Rows
from argosy.steps.stream.extents import Extent
from argosy.steps.stream.samples import Read, SampleIndex

FORMAT = "argosy-archives-1"
_AT_ONCE = 8
_WINDOW = 256 << 10
_HEADER_BYTES = 1 << 20
"""A header (a long name, extended attributes) is never this long: a larger one is an attack on memory."""
_STEM = re.compile(r"((?:.*/|)[^./]+)[.]([^/]*)")
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link", tarfile.LNKTYPE: "a hard link", tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device", tarfile.FIFOTYPE: "a named pipe", tarfile.GNUTYPE_SPARSE: "a sparse file",
}  # fmt: skip


@dataclass(frozen=True)
class ArchiveSamples:
    """Tar archives of samples: ``{"__key__": stem, "jpg": bytes, "cls": bytes, ...}``, one entry per extension."""

    recipe: str = field(default="archives", init=False)

    def scan(self, catalogue: Catalogue, read: Read) -> bytes:
        """Read the headers of every archive.

        Raises:
            StepError: ``data_corrupt``: no tar archive, a broken one, or a member that is refused; it is named.
        """
        rows = Rows()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for found in pool.map(lambda number: list(_samples(catalogue, number, read)), range(len(catalogue))):
                for row in found:
                    rows.append(json.dumps(row, separators=(",", ":")).encode())
        return sealed(FORMAT, {"samples": len(rows)}, rows.to_bytes())

    def index(self, catalogue: Catalogue, scanned: bytes) -> SampleIndex:
        """The index made of the rows that were found."""
        _, body = unsealed(FORMAT, scanned)
        return _ArchiveIndex(Rows(body))


class _ArchiveIndex:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def extents(self, number: int) -> list[Extent]:
        one, _, members = json.loads(self._rows[number])
        return [Extent(one, start, length) for _, start, length in members]

    def sample(self, number: int, parts: list[bytes]) -> Any:
        _, key, members = json.loads(self._rows[number])
        names = [name for name, _, _ in members]
        return {"__key__": key, **dict(zip(names, parts, strict=True))}


_Row = tuple[int, str, list[tuple[str, int, int]]]
"""Object, stem, (extension, start, length) of each member."""


def _samples(catalogue: Catalogue, number: int, read: Read) -> Iterator[_Row]:
    stem, members = "", list[tuple[str, int, int]]()
    for name, start, length in _members(catalogue, number, read):
        found = _STEM.fullmatch(name)
        if found is None:
            continue
        if found[1] != stem and members:
            yield number, stem, members
            members = []
        stem = found[1]
        if any(found[2] == known for known, _, _ in members):
            raise _broken(catalogue, number, f"two members {name!r} in one sample")
        members.append((found[2], start, length))
    if members:
        yield number, stem, members


def _members(catalogue: Catalogue, number: int, read: Read) -> Iterator[tuple[str, int, int]]:
    size = catalogue.sizes[number]
    source = _ObjectFile(number, size, read)
    try:
        with tarfile.open(fileobj=source, mode="r:", errorlevel=2) as archive:
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # or they would all stay in memory
                if member.isdir():
                    _check_name(catalogue, number, member.name)
                    continue
                yield _regular(catalogue, number, member, size)
            _check_end(catalogue, number, source, archive.offset)
    except (tarfile.TarError, EOFError, UnicodeError, OverflowError, _TooLong) as error:
        raise _broken(catalogue, number, str(error) or type(error).__name__) from error


def _regular(catalogue: Catalogue, number: int, member: tarfile.TarInfo, size: int) -> tuple[str, int, int]:
    _check_name(catalogue, number, member.name)
    if not member.isreg() or member.issparse():
        kind = "a sparse file" if member.isreg() else _KINDS.get(member.type, f"of type {member.type!r}")
        raise _broken(catalogue, number, f"member {member.name!r} is {kind}; only plain files are read")
    if member.size < 0 or member.offset_data + member.size > size:
        raise _broken(catalogue, number, f"member {member.name!r} goes on after the archive's end")
    return member.name, member.offset_data, member.size


def _check_name(catalogue: Catalogue, number: int, name: str) -> None:
    plain = name.removeprefix("./").rstrip("/")
    if plain in ("", "."):
        return
    try:
        check_key(plain)
    except ValueError as error:
        rule = str(error).partition(": ")[2].partition("; ")[0]
        raise _broken(catalogue, number, f"member {name!r} is refused: {rule}") from error


def _check_end(catalogue: Catalogue, number: int, source: _ObjectFile, offset: int) -> None:
    # tarfile takes a broken header in the middle for the end, and reads no archive that was joined to another.
    source.seek(offset)
    if any(source.read(tarfile.BLOCKSIZE)):
        raise _broken(catalogue, number, f"no header and no end of the archive at byte {offset}")
    while rest := source.read(_WINDOW):  # what fills the last physical block POSIX leaves undefined: headers are not
        starts = range(257, len(rest), tarfile.BLOCKSIZE)
        if rest.strip(b"\0") and any(rest.startswith(b"ustar", at) for at in starts):
            raise _broken(catalogue, number, f"something follows its end at byte {offset}; were archives joined?")


def _broken(catalogue: Catalogue, number: int, what: str) -> StepError:
    text = f"archive {catalogue[number].key!r} of {catalogue.uri}: {what}; mend or remove it, or choose by match="
    return StoreError(Cause.DATA_CORRUPT, text, quote=text)


class _TooLong(Exception):
    """A header asks for more memory than any header needs."""


class _ObjectFile(io.RawIOBase):
    """An object as tarfile reads one: forward, by headers; windows of it are kept so that small members cost little."""

    def __init__(self, number: int, size: int, read: Read) -> None:
        super().__init__()
        self._number, self._size, self._read = number, size, read
        self._at = 0
        self._window, self._start = b"", 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        wanted = max(0, self._size - self._at) if size < 0 else min(size, max(0, self._size - self._at))
        if wanted > _HEADER_BYTES:
            raise _TooLong(f"a header of {wanted} bytes at byte {self._at}")
        if not self._start <= self._at <= self._at + wanted <= self._start + len(self._window):
            length = min(max(_WINDOW, wanted), self._size - self._at)
            (self._window,) = self._read([Extent(self._number, self._at, length)]) if length > 0 else (b"",)
            self._start = self._at
        at = self._at - self._start
        self._at += wanted
        return self._window[at : at + wanted]
