"""Remove from a staged folder what does not belong there, in the memory of one folder's names at most."""

from __future__ import annotations

import contextlib
import heapq
import os
import tempfile
from collections.abc import Iterable, Iterator
from errno import ENOTEMPTY
from itertools import islice
from typing import IO

from argosy.steps.data.keys import STATE_FOLDER
from argosy.steps.data.state_files import open_folder

NOT_OURS = ("lost+found", STATE_FOLDER)
"""Names at the root that are no data."""
_RUN = 1 << 18
"""Names that are sorted in memory; a folder with more of them is sorted on disk."""


class _Keys:
    """Sorted keys; ``has`` must be asked in their order."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = iter(keys)
        self._next: str | None = ""
        self.strays = 0

    def has(self, key: str) -> bool:
        while self._next is not None and self._next < key:
            self._next = next(self._keys, None)
        return self._next == key


def remove_strays(root: int, wanted: Iterable[str]) -> int:
    """Remove every file that is not ``wanted`` (keys in order), every link to a folder, and each folder empty then.

    How many files that were.

    Raises:
        OSError: the disk refused.
    """
    keys = _Keys(wanted)
    _clean(root, "", keys)
    return keys.strays


def first_foreign(root: int, known: Iterable[str]) -> str:
    """The first file that is none of ``known`` (keys in order), "" if there is none.

    Raises:
        OSError: the disk refused.
    """
    keys = _Keys(known)
    return next((path for path in _files(root, "") if not keys.has(path)), "")


def _files(folder: int, prefix: str) -> Iterator[str]:
    for entry in _entries(folder):
        name = entry.removesuffix("/")
        if not prefix and name in NOT_OURS:
            continue
        if name == entry:
            yield prefix + name
            continue
        handle = open_folder(name, folder)
        try:
            yield from _files(handle, f"{prefix}{entry}")
        finally:
            os.close(handle)


def _clean(folder: int, prefix: str, wanted: _Keys) -> bool:
    """Whether anything stays."""
    stays = False
    for entry in _entries(folder):
        name = entry.removesuffix("/")
        if not prefix and name in NOT_OURS:
            stays = True
        elif name != entry:
            stays |= _clean_below(name, folder, f"{prefix}{entry}", wanted)
        elif wanted.has(prefix + name):
            stays = True
        else:
            os.unlink(name, dir_fd=folder)
            wanted.strays += 1
    return stays


def _clean_below(name: str, parent: int, prefix: str, wanted: _Keys) -> bool:
    handle = open_folder(name, parent)
    try:
        stays = _clean(handle, prefix, wanted)
    finally:
        os.close(handle)
    if not stays:
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno != ENOTEMPTY:
                raise
    return stays


def _entries(folder: int) -> Iterator[str]:
    """Names, those of folders with ``/`` at their end: sorted like this, a walk meets files in the order of keys."""
    with contextlib.ExitStack() as stack:
        runs: list[Iterable[str]] = []
        with os.scandir(folder) as found:
            names = (entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name for entry in found)
            while run := sorted(islice(names, _RUN)):
                runs.append(run if len(run) < _RUN else _spooled(run, stack))
        yield from heapq.merge(*runs) if len(runs) > 1 else (runs or [()])[0]


def _spooled(run: list[str], stack: contextlib.ExitStack) -> Iterator[str]:
    target = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    target.writelines(os.fsencode(name) + b"\0" for name in run)
    target.seek(0)
    return _names(target)


def _names(source: IO[bytes]) -> Iterator[str]:
    rest = b""
    while chunk := source.read(1 << 20):
        *names, rest = (rest + chunk).split(b"\0")
        yield from map(os.fsdecode, names)
