"""HTTP/1.1 answers: heads, and bodies with a length, in chunks, or up to the end of the connection."""

from __future__ import annotations

from collections.abc import Callable

LONGEST_HEAD = 64 << 10
_LONGEST_LINE = 1 << 10


class Malformed(Exception):
    """What came is not HTTP: whoever sent it, the answer is lost."""


class Head:
    """Status and headers, names in lower case."""

    __slots__ = ("headers", "status", "version")

    def __init__(self, raw: bytes) -> None:
        """``raw``: everything up to the empty line, without it."""
        first, *lines = raw.decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isdecimal() and len(words[1]) == 3):
            raise Malformed(f"an answer begins with {first[:60]!r}")
        self.version, self.status = words[0], int(words[1])
        self.headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise Malformed(f"a header without a colon: {line[:60]!r}")
            self.headers[name.lower()] = value.strip()

    @property
    def keeps(self) -> bool:
        """Whether the connection may be used again."""
        said = self.headers.get("connection", "").lower()
        return "keep-alive" in said if self.version == "HTTP/1.0" else "close" not in said

    @property
    def length(self) -> int | None:
        """Of the body in bytes; None where the head does not say."""
        said = self.headers.get("content-length")
        if said is None or "transfer-encoding" in self.headers:
            return None
        if not (said.isascii() and said.isdecimal()):
            raise Malformed(f"content-length: {said[:60]!r}")
        return int(said)


Take = Callable[[memoryview], None]


class Sized:
    """A body of a known length."""

    __slots__ = ("_missing",)

    def __init__(self, length: int) -> None:
        self._missing = length

    @property
    def ended(self) -> bool:
        """Whether all of it has come."""
        return not self._missing

    def feed(self, data: memoryview, take: Take) -> int:
        """Pass on what of ``data`` is body; how many bytes of it were used."""
        used = min(len(data), self._missing)
        self._missing -= used
        take(data[:used])
        return used

    def closed(self) -> bool:
        """The connection ended: whether that was the body's end."""
        return False


class UntilClose:
    """A body that ends with its connection."""

    __slots__ = ()
    ended = False

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
    """How the body behind a head is framed.

    Raises:
        Malformed: a length that is none.
    """
    if method == "HEAD" or head.status in (204, 304):
        return Sized(0)
    if "chunked" in head.headers.get("transfer-encoding", "").lower():
        return Chunked()
    length = head.length
    return UntilClose() if length is None else Sized(length)
