"""HTTP/1.1 answers: heads, and bodies with a length, in chunks, or up to the end of the connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

LONGEST_HEAD = 64 << 10
_LONGEST_LINE = 1 << 10


class Malformed(Exception):
    """What came is not HTTP: whoever sent it, the answer is lost."""


class Head:
    """Status and headers. Headers are looked for when they are asked for: few of the many are."""

    __slots__ = ("_names", "_text", "chunked", "length", "status")

    def __init__(self, raw: bytes) -> None:
        """``raw``: everything up to the empty line, without it."""
        self._text = text = raw.decode("latin-1") + "\r\n"
        self._names = text.lower()
        status = text[9:12]
        if not text.startswith("HTTP/1.") or not (status.isdecimal() and text[12:13] in (" ", "\r")):
            raise Malformed(f"an answer begins with {text[:60]!r}")
        self.status = int(status)
        self.chunked = "chunked" in self.get("transfer-encoding").lower()
        said = "" if self.chunked else self.get("content-length")
        if said and not (said.isascii() and said.isdecimal()):
            raise Malformed(f"content-length: {said[:60]!r}")
        self.length = int(said) if said else None
        """Of the body in bytes; None where the head does not say."""

    def get(self, name: str) -> str:
        """The value of a header, "" if there is none; ``name`` in lower case."""
        at = self._names.find(f"\r\n{name}:")
        if at < 0:
            return ""
        start = at + len(name) + 3
        return self._text[start : self._text.index("\r\n", start)].strip()

    def names(self, prefix: str) -> list[str]:
        """Names of the headers that begin so, in lower case."""
        at, found = 0, []
        while (at := self._names.find(f"\r\n{prefix}", at)) >= 0:
            found.append(self._names[at + 2 : self._names.index("\r\n", at + 2)].partition(":")[0])
            at += 2
        return found

    @property
    def keeps(self) -> bool:
        """Whether the connection may be used again."""
        said = self.get("connection").lower()
        return "keep-alive" in said if self._text.startswith("HTTP/1.0") else "close" not in said


class Receiver(Protocol):
    """Takes one answer. StoreError, Again or Malformed from any verb: the connection is closed, and its owner told."""

    method: str

    def head(self, head: Head) -> None:
        """The answer's head."""

    def body(self, data: memoryview) -> None:
        """Bytes of the body, which are gone when this returns."""


Take = Callable[[memoryview], None]


class Sized:
    """A body of a known length."""

    __slots__ = ("missing",)

    def __init__(self, length: int) -> None:
        self.missing = length
        """As many bytes will come for sure, or the answer is lost."""

    @property
    def ended(self) -> bool:
        """Whether all of it has come."""
        return not self.missing

    def feed(self, data: memoryview, take: Take) -> int:
        """Pass on what of ``data`` is body; how many bytes of it were used."""
        used = min(len(data), self.missing)
        self.missing -= used
        take(data[:used])
        return used

    def closed(self) -> bool:
        """The connection ended: whether that was the body's end."""
        return False


class UntilClose:
    """A body that ends with its connection."""

    __slots__ = ()
    ended = False
    missing = 0

    def feed(self, data: memoryview, take: Take) -> int:
        """Everything is body."""
        take(data)
        return len(data)

    def closed(self) -> bool:
        """It is whole, as far as anybody can tell."""
        return True


class Chunked:
    """A body in chunks; what follows the last one is skipped."""

    __slots__ = ("_line", "_missing", "_state", "ended")
    missing = 0

    def __init__(self) -> None:
        self.ended = False
        self._state = "size"
        self._missing = 0
        self._line = b""

    def feed(self, data: memoryview, take: Take) -> int:
        """Pass on what of ``data`` is body; how many bytes of it were used."""
        at = 0
        while at < len(data) and not self.ended:
            if self._state == "data":
                used = min(self._missing, len(data) - at)
                take(data[at : at + used])
                self._missing -= used
                at += used
                if not self._missing:
                    self._state = "end"
            else:
                at += self._take_line(data[at:])
        return at

    def closed(self) -> bool:
        """It ended without its last chunk."""
        return False

    def _take_line(self, data: memoryview) -> int:
        some = bytes(data[:_LONGEST_LINE])
        end = some.find(b"\n")
        used = end + 1 if end >= 0 else len(some)
        self._line += some[:used]
        if len(self._line) > _LONGEST_LINE:
            raise Malformed("a chunk's head is too long")
        if end >= 0:
            line, self._line = self._line.strip(), b""
            self._line_ended(line)
        return used

    def _line_ended(self, line: bytes) -> None:
        if self._state == "end":
            if line:
                raise Malformed("a chunk is longer than it said")
            self._state = "size"
        elif self._state == "size":
            size = line.partition(b";")[0].strip()
            if not size or size.strip(b"0123456789abcdefABCDEF"):
                raise Malformed(f"a chunk of size {line[:40]!r}")
            self._missing = int(size, 16)
            self._state = "data" if self._missing else "trailer"
        elif not line:
            self.ended = True


Body = Sized | UntilClose | Chunked


def body_of(head: Head, method: str) -> Body:
    """How the body behind a head is framed."""
    if method == "HEAD" or head.status in (204, 304):
        return Sized(0)
    if head.chunked:
        return Chunked()
    return UntilClose() if head.length is None else Sized(head.length)
