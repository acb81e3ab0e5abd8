"""A log as UTF-8, whatever it was packed or written with; what is no text is refused with a word."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
from collections.abc import Callable
from typing import IO, cast

from argosy.steps.contract.errors import InputError

HEAD_BYTES = 4096
_PACKED: dict[bytes, Callable[[IO[bytes]], object]] = {
    b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open, b"BZh91AY&SY": bz2.open,
}  # fmt: skip
_ZSTD, _ZIP, _TAR, _TAR_AT = b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"ustar", 257
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",  # begins as the next one
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
_CONTROL = re.compile(rb"[\0-\x06\x0e-\x1a\x1c-\x1f]")
_MOST_CONTROLS = 0.05
"""Of a log's bytes; of anything else's a tenth are control characters."""


def is_log(head: bytes) -> bool:
    """Whether a file that begins so can be read as a log."""
    if head.startswith((_ZSTD, _ZIP)):
        return False
    return b"\0" not in head or head.startswith((*_PACKED,)) or _encoding(head) != ""


def unpacked(source: IO[bytes], name: str) -> IO[bytes]:
    """The same as UTF-8; a source that cannot be looked into is taken for that.

    Raises:
        InputError: an archive, or no text at all.
    """
    peek = getattr(source, "peek", None)
    head = b"" if peek is None else bytes(peek(HEAD_BYTES)[:HEAD_BYTES])
    if begin := next((each for each in _PACKED if head.startswith(each)), b""):
        return unpacked(cast("IO[bytes]", _PACKED[begin](source)), name)
    if head.startswith(_ZSTD):
        raise InputError(f"{name}: is packed with zstd, which is not read; unpack it: zstd -d {name}")
    if head.startswith(_ZIP) or head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        raise InputError(f"{name}: is an archive; unpack it and name the folder with its logs")
    if encoding := _encoding(head):
        return cast("IO[bytes]", codecs.EncodedFile(source, "utf-8", encoding, "replace"))
    head = head.strip(b"\0")  # where a file was emptied under who writes it, there is a hole
    if len(_CONTROL.findall(head)) > _MOST_CONTROLS * len(head):
        raise InputError(f"{name}: is no text; name a log, a folder with logs, or - for standard input")
    return source


def _encoding(head: bytes) -> str:
    """How a text is written that is not UTF-8; "" for all others, Latin-1 too: its ASCII is the same."""
    marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "")
    if marked or not head:
        return marked
    even, odd = head[::2].count(0), head[1::2].count(0)
    most = len(head) // 2 * 0.7
    return "utf-16-le" if odd > most and even < odd / 10 else "utf-16-be" if even > most and odd < even / 10 else ""
