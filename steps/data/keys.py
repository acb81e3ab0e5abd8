"""Which object keys may become file names: a key is input from whoever can write to the bucket."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from argosy.steps.contract.errors import InputError
from argosy.steps.data.sorting import sorted_lines

STATE_FOLDER = ".argosy-stage"
"""Folder of staging's own state inside a staged folder; keys below it are refused."""
READY_MARKERS = ("_READY", "_SUCCESS")
"""Objects of these names say that a dataset is complete; they are no data."""
MAX_SEGMENT_BYTES = 255
MAX_KEY_BYTES = 1024
NAMED = 20
"""Offenders that a refusal names; the others are counted."""
_REMEDY = "rename or remove the object, or its row in a listing of yours, then take a new snapshot"
# Names of printable ASCII that do not begin with a dot: nearly all keys, and no other rule can concern them.
_PLAIN = re.compile(
    r"[ !\"#$%&'()*+,\-0-\[\]-~][ -.0-\[\]-~]{0,254}(?:/[ !\"#$%&'()*+,\-0-\[\]-~][ -.0-\[\]-~]{0,254})*"
)
_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")


def broken_rule(key: str) -> str:
    """The rule that ``key`` breaks, in words; empty when it can be a path below a folder."""
    if len(key) <= MAX_KEY_BYTES and _PLAIN.fullmatch(key):
        return ""
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return "it is not valid UTF-8"
    if not key:
        return "it is empty"
    if size > MAX_KEY_BYTES:
        return f"it is longer than {MAX_KEY_BYTES} bytes"
    if "\\" in key:
        return "it has a backslash, which some systems read as a folder separator"
    if _CONTROL.search(key):
        return "it has a control character"
    segments = key.split("/")
    if folded(segments[0]) == STATE_FOLDER:
        return f"{STATE_FOLDER} belongs to staging"
    return next(filter(None, map(_segment_rule, segments)), "")


def _segment_rule(segment: str) -> str:
    if segment == "":
        return "it has an empty folder name (a leading, trailing or double '/')"
    if segment in (".", ".."):
        return f"the folder name {segment!r} would leave the staged folder"
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        return f"a name in it is longer than {MAX_SEGMENT_BYTES} bytes, which no file system takes"
    return ""


def check_key(key: str) -> str:
    """``key`` unchanged, if it can be a path below a folder.

    Raises:
        InputError: empty, absolute, ``.`` or ``..`` or empty segments, backslash, NUL or other control
            characters, text that is not UTF-8, names over 255 bytes, or staging's own folder.
    """
    if rule := broken_rule(key):
        raise InputError(f"object key {_shown(key)}: {rule}; {_REMEDY}")
    return key


def folded(key: str) -> str:
    """What a file system that ignores case and Unicode form takes the key for."""
    if key.isascii():
        return key.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", key).casefold())


def _shown(key: str) -> str:
    return repr(key if len(key) <= MAX_KEY_BYTES else key[:80] + "...")


class Offences:
    """The keys of one dataset that break a rule, the first ones by name."""

    def __init__(self) -> None:
        self._named: list[tuple[str, str]] = []
        self._count = 0

    def add(self, key: str, rule: str) -> None:
        """Note an offender."""
        self._count += 1
        if len(self._named) < NAMED:
            self._named.append((key, rule))

    def extend(self, other: Offences) -> None:
        """Take over another's."""
        self._count += other._count
        self._named = (self._named + other._named)[:NAMED]

    def sound(self, key: str) -> bool:
        """Whether the key alone breaks no rule; if it does, it is noted."""
        if rule := broken_rule(key):
            self.add(key, rule)
        return not rule

    def check(self) -> None:
        """Raise InputError if there was an offender: the first with its rule, the others by name."""
        if not self._count:
            return
        (key, rule), others = self._named[0], self._named[1:]
        more = f" (and {self._count - 1} more: {', '.join(_shown(other) for other, _ in others)}" if others else ""
        rest = ", ..." * (self._count > NAMED) + ")" if others else ""
        raise InputError(f"object key {_shown(key)}{more}{rest}: {rule}; {_REMEDY}")


class Meetings:
    """Notes keys that would meet on disk; they are shown to it in the order of their names.

    In that order every name that begins with ``x`` follows ``x`` without a gap, so that the names which the
    current one begins with are all there is to remember.
    """

    def __init__(self, offences: Offences) -> None:
        self._offences = offences
        self._open: list[tuple[str, str]] = []

    def see(self, name: str, key: str) -> None:
        """``name``: what ``key`` is compared as; never less than the last one."""
        above = self._open
        while above and not name.startswith(above[-1][0]):
            above.pop()
        if above:
            other, first = above[-1]
            if name == other:
                rule = f"it differs from {first!r} in nothing, or only in case or Unicode form"
                return self._offences.add(key, rule)
            if name[len(other)] == "/":
                above.pop()  # named once, not once per object below it
                self._offences.add(first, f"it is a file and, in {key!r}, a folder")
        above.append((name, key))


def see_folded(keys: Iterable[str], offences: Offences) -> None:
    """Note the keys that meet on a disk that ignores case and Unicode form; in any order, in bounded memory.

    Each key has passed :func:`broken_rule`: none holds NUL or a line feed.
    """
    meetings = Meetings(offences)
    for line in sorted_lines(b"%b\0%b" % (folded(key).encode(), key.encode()) for key in keys):
        name, _, key = line.decode().partition("\0")
        meetings.see(name, key)


def check_keys(keys: Iterable[str]) -> None:
    """Check every key, and that no two of them would meet on disk; memory does not grow with their number.

    Raises:
        InputError: see :func:`check_key`; or two keys that differ only in case or Unicode form; or a key that is
            a file and the folder of another. The first is named with its rule, the others are named or counted.
    """
    offences = Offences()
    see_folded(filter(offences.sound, keys), offences)
    offences.check()
