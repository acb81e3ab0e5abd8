"""An answer as its receiver sees it, whoever brought it."""

from __future__ import annotations

from typing import Protocol


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
        """Bytes of the body; None where the head does not say."""

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
