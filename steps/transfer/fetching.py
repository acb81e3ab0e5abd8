"""One piece on its way: asked for, written and verified as it comes, gone on with where it broke off."""

from __future__ import annotations

from collections.abc import Callable

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.transfer import crc
from argosy.steps.transfer.answers import Head
from argosy.steps.transfer.asking import Headers
from argosy.steps.transfer.jobs import Again, Job, Request
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from argosy.steps.transfer.refusals import lost
from argosy.steps.transfer.sink import Sink
from argosy.steps.transfer.site import Site

WITH_CHECKSUM = (("x-amz-checksum-mode", "ENABLED"),)
_CHECKSUM = "x-amz-checksum-"
_OWN, _TYPE = f"{_CHECKSUM}{crc.OWN}", f"{_CHECKSUM}type"
_PROGRESS = 64 << 10
_TEXT = 16 << 10
_WRONG = 2
Tell = Callable[[Arrived | Failed], None]


class Fetching(Job):
    """Brings one piece into its file, then tells; see :class:`argosy.steps.transfer.jobs.Job`."""

    def __init__(self, piece: Piece, site: Site, parts: int, tell: Tell) -> None:
        self.piece, self._site, self._parts, self._tell = piece, site, parts, tell
        self._sink: Sink | None = None
        self._etag = piece.etag
        self._stored: dict[str, int] = {}
        self._refused: Head | None = None
        self._text = b""
        self._wrong, self._from, self._signed = 0, 0, 0

    @property
    def arrived(self) -> int:
        """Bytes of it that are written."""
        return self._sink.arrived if self._sink is not None else 0

    def begin(self) -> Request:
        """The rest of the piece, at the version it was begun with."""
        piece = self.piece
        self._refused, self._text = None, b""
        if self._sink is not None and (self.arrived == piece.length or not self._etag):
            self._restart()
        self._from = arrived = self.arrived
        self._signed = self._site.generation
        plain = match_line(self._etag)
        amz: Headers = WITH_CHECKSUM
        if arrived or not piece.whole:
            plain += f"range: bytes={piece.start + arrived}-{piece.start + piece.length - 1}\r\n"
            amz = ()
        return self._site.request(self.method, piece.key, version=piece.version, amz=amz, plain=plain)

    def head(self, head: Head) -> None:
        """Check that it is what was asked for, before any of it is written."""
        if head.status not in (200, 206):
            self._refused = head
            return
        self._check_version(head)
        if head.status == 206 or self._from or not self.piece.whole:
            self._check_range(head)
        else:
            self._check_size(head)
            self._stored = stored_checksums_of(head)
        self._refused = None
        if self._sink is None:
            self._sink = Sink(self._parts, self.piece)
        if not self._from:
            for algorithm in self._stored:
                self._sink.running.begin(algorithm)

    def body(self, data: memoryview) -> None:
        """Write it."""
        if self._refused is not None:
            self._text += bytes(data[: _TEXT - len(self._text)])
            return
        sink = self._sink
        assert sink is not None
        if sink.arrived + len(data) > self.piece.length:
            self._spoil("more bytes", f"{self.piece.length}")
        sink.write(data)

    def finish(self) -> int:
        """Compare the checksums, close the file, and tell."""
        if self._refused is not None:
            raise self._site.refused(self._refused, self._text, self.piece.key, self._etag, self._signed)
        sink = self._sink
        assert sink is not None
        if sink.arrived < self.piece.length:
            raise Again(self.broken(EOFError(f"{sink.arrived} of {self.piece.length} bytes")))
        crcs = sink.running.values()
        for name, value in self._stored.items():
            if crcs[name] != value:
                self._spoil(crc.text(name, crcs[name]), crc.text(name, value))
        sink.close()
        self._tell(Arrived(self.piece.number, crcs, tuple(self._stored)))
        return sink.arrived

    def broken(self, error: Exception) -> StoreError:
        """The next try goes on from what arrived, if the version is known."""
        self._note_progress()
        return lost(self._site.at(self.piece.key), error)

    def fail(self, error: StoreError) -> None:
        """Tell that it will not come."""
        if self._sink is not None:
            self._sink.abandon()
        self._tell(Failed(self.piece.number, error))

    def _note_progress(self) -> None:
        if self.arrived - self._from >= _PROGRESS:
            self.tries, self.failing_since = 1, 0.0

    def _restart(self) -> None:
        if self._sink is not None:
            self._sink.restart()
        self._stored = {}

    def _check_version(self, head: Head) -> None:
        check_etag(head, self._etag, self._site.at(self.piece.key))
        self._etag = self._etag or head.get("etag")

    def _check_size(self, head: Head) -> None:
        if head.length in (None, self.piece.length):
            return
        if not self.piece.etag:
            text = f"{self._site.at(self.piece.key)} has {head.length} bytes, not {self.piece.length}"
            raise StoreError(Cause.S3_MISSING, f"dataset changed: {text}")
        self._spoil(f"{head.length} bytes", f"{self.piece.length} bytes")

    def _check_range(self, head: Head) -> None:
        piece, at = self.piece, self._site.at(self.piece.key)
        if head.status == 200:
            raise StoreError(Cause.S3_ACCESS, f"cannot read {at}: the store does not serve ranges")
        first = piece.start + self._from
        said = head.get("content-range")
        span, _, size = said.removeprefix("bytes ").partition("/")
        if size not in (str(piece.object_size), "*"):
            raise StoreError(Cause.S3_MISSING, f"dataset changed: {at} has {size} bytes, not {piece.object_size}")
        if span.strip() != f"{first}-{piece.start + piece.length - 1}":
            self._spoil(f"bytes {span}", f"{first}-{piece.start + piece.length - 1}")

    def _spoil(self, found: str, expected: str) -> None:
        """Wrong bytes: all of it once more over another connection; the second time it is the store's fault."""
        self._wrong += 1
        text = f"object {self.piece.key!r} of {self._site.uri}, from {self.piece.start}: {found} came, not {expected}"
        error = StoreError(Cause.DATA_CORRUPT, text)
        if self._wrong >= _WRONG:
            raise error
        self._restart()
        raise Again(error, at_once=True, elsewhere=True)


def match_line(etag: str) -> str:
    """The header that asks for this version and no other."""
    return f"if-match: {_quoted(etag)}\r\n" if etag else ""


def check_etag(head: Head, etag: str, uri: str) -> None:
    """Not every store heeds ``If-Match``.

    Raises:
        StoreError: ``s3_missing``: another version was answered with.
    """
    found = head.get("etag")
    if etag and found and _quoted(found) != _quoted(etag):
        raise StoreError(Cause.S3_MISSING, f"dataset changed: {uri} is {found}, no longer version {etag}")


def _quoted(etag: str) -> str:
    return etag if etag.startswith(('"', "W/")) else f'"{etag}"'


def stored_checksums_of(head: Head) -> dict[str, int]:
    """Algorithm -> value of the whole object's checksums; those of parts' checksums say nothing about the bytes.

    Where the store keeps the one that is computed anyway, no other is looked for: small objects spend more time on
    their headers than on their bytes.
    """
    own = head.get(_OWN)
    if own and (number := crc.decoded(crc.OWN, own)) is not None and head.get(_TYPE).upper() != "COMPOSITE":
        return {crc.OWN: number}
    found: dict[str, int] = {}
    for name in head.names(_CHECKSUM):
        algorithm, value = name.removeprefix(_CHECKSUM), head.get(name)
        if algorithm == "type":
            if value.upper() == "COMPOSITE":
                return {}
        elif crc.known(algorithm) and (number := crc.decoded(algorithm, value)) is not None:
            found[algorithm] = number
    return found
