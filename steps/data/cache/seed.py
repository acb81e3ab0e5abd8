"""A new entry begins with what another one of the same dataset has: an earlier version, or another share of it.

Files are hard-linked: they take no room twice, and staging replaces a file by a new one instead of writing into it.
Built in the trash and renamed into place, so that a kill leaves nothing that the next sweep does not remove. What the
records say of the files goes with them; staging looks at every file and fetches what is missing or has changed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from argosy.steps.data.cache.content import Content
from argosy.steps.data.cache.root import CacheRoot
from argosy.steps.data.cache.waiting import Waiting
from argosy.steps.data.folder import marker_of, records_of
from argosy.steps.data.keys import STATE_FOLDER
from argosy.steps.data.marker import NAME
from argosy.steps.data.rows import ROWS_FOLDER
from argosy.steps.data.state_files import FOLDER
from argosy.steps.data.tree import Tree


def seed(root: CacheRoot, content: Content, waiting: Waiting) -> None:
    """Start the entry from a whole one of the same uri, if there is one and the volume has hard links."""
    path = root.path / content.entry
    if os.path.lexists(path):
        return
    with root.locked(waiting):
        other = _relative(root, content)
        if other is None:
            return
        with root.held(other, waiting):
            scratch = root.trash / f"{content.entry}.{secrets.token_hex(8)}"
            with contextlib.suppress(OSError):  # no hard links here, or no room: then from nothing
                _link(root.path / other, scratch, content)
                os.rename(scratch, path)


def _relative(root: CacheRoot, content: Content) -> str | None:
    """The entry that shares most: of this version if there is one, else the last that was used."""
    whole = [
        entry
        for entry in root.entries()
        if entry.label.uri == content.label.uri and marker_of(root.path / entry.name) is not None
    ]
    same = [entry for entry in whole if entry.name.startswith(content.manifest.digest)]
    found = max(same or whole, key=lambda entry: (entry.label.size if same else 0, entry.used), default=None)
    return None if found is None else found.name


def _link(source: Path, target: Path, content: Content) -> None:
    made: set[str] = set()
    handle = os.open(source, FOLDER)
    try:
        with Tree(handle, source) as tree:
            for key in _common(source, content):
                if tree.stat(key) is None:
                    continue
                folder = key.rpartition("/")[0]
                if folder not in made:
                    (target / folder).mkdir(parents=True, exist_ok=True)
                    made.add(folder)
                os.link(source / key, target / key, follow_symlinks=False)
    finally:
        os.close(handle)
    if made:
        (target / STATE_FOLDER).mkdir()
        shutil.copytree(source / STATE_FOLDER / ROWS_FOLDER, target / STATE_FOLDER / ROWS_FOLDER)
        shutil.copyfile(source / STATE_FOLDER / NAME, target / STATE_FOLDER / NAME)


def _common(source: Path, content: Content) -> Iterator[str]:
    """Keys of the wanted objects that lie there in the wanted version; both sides come by key."""
    records = records_of(source)
    record = next(records, None)
    for one in content.wanted:
        while record is not None and record.key < one.key:
            record = next(records, None)
        if record is not None and record.is_of(one):
            yield one.key
