"""Commit files that a script wrote without knowing of us: complete, or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.checkpoint.manifest import PartRef, check_path
from argosy.steps.checkpoint.writer import PartWriter
from argosy.steps.contract.errors import InputError

SETTLED_SECONDS = 0.05
"""A file that changed this recently may change again without its time changing: clocks of file systems are coarse."""


class FilesChanged(Exception):
    """The script wrote to a file while it was copied (or just before): nothing was committed; try again later."""


@dataclass(frozen=True)
class _Facts:
    inode: int
    size: int
    modified_ns: int


def _facts(path: Path, name: str) -> _Facts:
    try:
        found = path.stat()
    except OSError as error:
        raise FilesChanged(f"{name}: {error.strerror}; not committed") from error
    return _Facts(found.st_ino, found.st_size, found.st_mtime_ns)


def copy_files(part: PartWriter, folder: Path, files: Sequence[str | os.PathLike[str]]) -> PartRef:
    """Store the files (paths relative to ``folder``) and the part that lists them.

    Raises:
        FilesChanged: inode, size or modification time of a file differ before and after the copy, or it was
            modified within the last :data:`SETTLED_SECONDS`. InputError: no files, or a path outside the folder.
        StoreError: the store failed.
    """
    names = [Path(file).as_posix() for file in files]
    if not names:
        raise InputError(f"checkpoint.include matches no file in {folder}: nothing to commit")
    for name in names:
        try:
            check_path(name)
        except ValueError as error:
            raise InputError(f"checkpoint file {error}; name files inside {folder}") from error
    before = {name: _facts(folder / name, name) for name in names}
    now = time.time_ns()
    for name, facts in before.items():
        if 0 <= now - facts.modified_ns < SETTLED_SECONDS * 1e9:
            raise FilesChanged(f"{name}: modified {(now - facts.modified_ns) / 1e9:.3f} s ago; not committed")
    for name in names:
        try:
            stored = part.add_file(name, folder / name, before[name].modified_ns)
        except OSError as error:
            raise FilesChanged(f"{name}: {error.strerror}; not committed") from error
        if stored.size != before[name].size:
            raise FilesChanged(f"{name}: {before[name].size} bytes, then {stored.size}; not committed")
    for name, facts in before.items():
        after = _facts(folder / name, name)
        if after != facts:
            raise FilesChanged(f"{name}: changed during the copy ({facts} -> {after}); not committed")
    return part.finish()
