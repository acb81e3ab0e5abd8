"""Which object keys may become file names: a key is input from whoever can write to the bucket."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from argosy.steps.contract.errors import InputError

STATE_FOLDER = ".argosy-stage"
"""Folder of staging's own state inside a staged folder; keys below it are refused."""
MAX_SEGMENT_BYTES = 255
MAX_KEY_BYTES = 1024
_REMEDY = "rename or remove the object, then take a new snapshot"


def _refuse(key: str, rule: str) -> InputError:
    return InputError(f"object key {key!r}: {rule}; {_REMEDY}")


def _check_segment(key: str, segment: str) -> None:
    if segment == "":
        raise _refuse(key, "it has an empty folder name (a leading, trailing or double '/')")
    if segment in (".", ".."):
        raise _refuse(key, f"the folder name {segment!r} would leave the staged folder")
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        raise _refuse(key, f"a name in it is longer than {MAX_SEGMENT_BYTES} bytes, which no file system takes")


def check_key(key: str) -> str:
    """``key`` unchanged, if it can be a path below a folder.

    Raises:
        InputError: empty, absolute, ``.`` or ``..`` or empty segments, backslash, NUL or other control
            characters, text that is not UTF-8, names over 255 bytes, or staging's own folder.
    """
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise _refuse(key, "it is not valid UTF-8") from error
    if not key:
        raise _refuse(key, "it is empty")
    if size > MAX_KEY_BYTES:
        raise _refuse(key[:80] + "...", f"it is longer than {MAX_KEY_BYTES} bytes")
    if "\\" in key:
        raise _refuse(key, "it has a backslash, which some systems read as a folder separator")
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in key):
        raise _refuse(key, "it has a control character")
    segments = key.split("/")
    for segment in segments:
        _check_segment(key, segment)
    if folded(segments[0]) == STATE_FOLDER:
        raise _refuse(key, f"{STATE_FOLDER} belongs to staging")
    return key


def folded(key: str) -> str:
    """What a file system that ignores case and Unicode form takes the key for."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", key).casefold())


def check_keys(keys: Iterable[str]) -> None:
    """Check every key, and that no two of them would meet on disk.

    Raises:
        InputError: see :func:`check_key`; or two keys that differ only in case or Unicode form; or a key that is
            a file and the folder of another.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for key in keys:
        name = folded(check_key(key))
        if name in files:
            raise _refuse(key, f"it differs from {files[name]!r} in nothing, or only in case or Unicode form")
        files[name] = key
        parent = name.rpartition("/")[0]
        while parent and parent not in folders:
            folders[parent] = key
            parent = parent.rpartition("/")[0]
    for name, key in files.items():
        if name in folders:
            raise _refuse(key, f"it is a file and, in {folders[name]!r}, a folder")
