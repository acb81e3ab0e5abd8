"""The bodies of HTTP/1.1 answers: with a length, in chunks, or up to the end of the connection."""

from __future__ import annotations

from collections.abc import Callable

from argosy.steps.transfer.answers import Head, Malformed

LONGEST_HEAD = 64 << 10
_LONGEST_LINE = 1 << 10
Take = Callable[[memoryview], None]


class Sized:
    """A body of a known length."""

    __slots__ = ("missing",)

    def __init__(self, length: int) -> None:
        self.missing = length
        """How many bytes must still come, or the answer is lost."""

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
        """Whether the body is whole when the connection ends: nobody can tell otherwise."""
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
        """Whether the body is whole when the connection ends: no, its last chunk is missing."""
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
