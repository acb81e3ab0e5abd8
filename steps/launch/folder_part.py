"""Store files of a script's folder as they were when they were judged whole, or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import filterfalse
from pathlib import Path

from argosy.steps.checkpoint.manifest import PartRef, check_path
from argosy.steps.checkpoint.writer import PartWriter
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.errors import InputError
from argosy.steps.launch.whole_files import Signature, facts, matching
from argosy.steps.store.base import StoreError

SETTLED_SECONDS = 0.05
"""A file that changed this recently may change again without its time changing: clocks of file systems are coarse."""

_NAMES = "no name in a checkpoint has a backslash or what cannot be printed"


class FilesChanged(Exception):
    """The script wrote to a file while it was copied (or just before): nothing was committed; try again later."""


def store_part(part: PartWriter, folder: Path, files: Signature, below: str = "", *, settled: bool = False) -> PartRef:
    """Copy the files; ``below`` goes before their paths in the store. ``files`` is what they were when they were
    judged: a rank may have begun to write one of them again since, and have been killed. ``settled``: that was at
    least :data:`SETTLED_SECONDS` ago, so whatever a file's time says, it is as it was judged while it has that time.

    Raises:
        FilesChanged: a file's inode, size or modification time is another before or after the copy, or, not
            ``settled``, it was modified within the last :data:`SETTLED_SECONDS`; nothing counts. InputError: a name
            that no path can have. StoreError: the store failed.
    """
    for name, (size, modified_ns, _) in sorted(files.items()):
        if not _storable(name):
            raise InputError(f"checkpoint file {name!r}: {_NAMES}; rename it, or leave it out with include")
        if not settled and 0 <= time.time_ns() - modified_ns < SETTLED_SECONDS * 1e9:
            raise FilesChanged(f"{name}: has just been modified; not committed")
        try:
            stored = part.add_file(below + name, folder / name, modified_ns)
        except StoreError as error:
            if name in facts(folder, [name]):
                raise
            raise FilesChanged(f"{name}: has gone; not committed") from error
        if stored.size != size:
            raise FilesChanged(f"{name}: {size} bytes, then {stored.size}; not committed")
    after = facts(folder, files)
    for name, before in files.items():
        if after.get(name) != before:
            raise FilesChanged(f"{name}: changed during the copy ({before} -> {after.get(name)}); not committed")
    return part.finish()


def left_at_the_end(folder: Path, args: LaunchArgs, tell: Callable[[str, str], None]) -> Signature:
    """Other files in the folder, as the model that is saved after the last checkpoint: they are the run's result.

    ``tell`` hears the name of one that cannot be kept, and why. Beside the code nobody can tell them from that.
    """
    if os.path.normpath(args.checkpoint_path) == ".":
        return {}
    others = set(matching(folder, ())) - set(matching(folder, args.checkpoint_include))
    for name in filterfalse(_storable, sorted(others)):
        tell(name, f"{name!r} in {args.checkpoint_path} is not kept: {_NAMES}")
    return facts(folder, filter(_storable, others))


def _storable(name: str) -> bool:
    try:
        check_path(name)
    except ValueError:
        return False
    return True
