"""Store files of a script's folder as they were when they were judged whole, or not at all."""

from __future__ import annotations

import time
from pathlib import Path

from argosy.steps.checkpoint.manifest import PartRef, check_path
from argosy.steps.checkpoint.writer import PartWriter
from argosy.steps.contract.errors import InputError
from argosy.steps.launch.whole_files import Signature, facts

SETTLED_SECONDS = 0.05
"""A file that changed this recently may change again without its time changing: clocks of file systems are coarse."""


class FilesChanged(Exception):
    """The script wrote to a file while it was copied (or just before): nothing was committed; try again later."""


def store_part(part: PartWriter, folder: Path, files: Signature, below: str = "") -> PartRef:
    """Copy the files; ``below`` goes before their paths in the store. ``files`` is what they were when they were
    judged: a rank may have begun to write one of them again since, and have been killed.

    Raises:
        FilesChanged: a file's inode, size or modification time is another before or after the copy, or it was
            modified within the last :data:`SETTLED_SECONDS`; nothing counts. InputError: a name that no path can
            have. StoreError: the store failed.
    """
    for name, (size, modified_ns, _) in sorted(files.items()):
        _check(name)
        if 0 <= time.time_ns() - modified_ns < SETTLED_SECONDS * 1e9:
            raise FilesChanged(f"{name}: has just been modified; not committed")
        try:
            stored = part.add_file(below + name, folder / name, modified_ns)
        except OSError as error:
            raise FilesChanged(f"{name}: {error.strerror}; not committed") from error
        if stored.size != size:
            raise FilesChanged(f"{name}: {size} bytes, then {stored.size}; not committed")
    after = facts(folder, files)
    for name, before in files.items():
        if after.get(name) != before:
            raise FilesChanged(f"{name}: changed during the copy ({before} -> {after.get(name)}); not committed")
    return part.finish()


def _check(name: str) -> None:
    try:
        check_path(name)
    except ValueError as error:
        raise InputError(f"checkpoint file {error}; leave it out with include") from error
