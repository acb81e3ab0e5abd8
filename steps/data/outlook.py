"""What a staging would do to a folder, without a lock and without writing anything."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.data.folder import open_state, refuse_foreign
from argosy.steps.data.manifest import Objects
from argosy.steps.data.marker import read_marker
from argosy.steps.data.records import FileRecord, record_of
from argosy.steps.data.rows import boot, known_rows
from argosy.steps.data.survey import Candidates, is_intact
from argosy.steps.data.tree import Tree
from argosy.steps.data.wanted import wanted_of


@dataclass(frozen=True)
class Outlook:
    """Objects and bytes in all, and of them those that would be fetched; ``free_bytes`` of the disk it would be on."""

    objects: int
    bytes: int
    missing_objects: int
    missing_bytes: int
    free_bytes: int


def look_ahead(objects: Objects, into: Path) -> Outlook:
    """Compare ``objects`` with what lies at ``into`` by size and time; what is half there counts as missing.

    Raises:
        InputError: ``into`` holds files that staging did not put there.
    """
    wanted = wanted_of(objects)
    missing = missing_bytes = 0
    with contextlib.ExitStack() as stack:
        there = _Folder(into, stack)
        for one in wanted:
            records = (record_of(row.line) for row in there.known.of(one.key))
            if not any(found is not None and found.is_of(one) and there.holds(found) for found in records):
                missing += 1
                missing_bytes += one.size
    return Outlook(wanted.count, wanted.total_bytes, missing, missing_bytes, _free(into))


class _Folder:
    """``known``: the rows of earlier stagings, none if there is no such folder."""

    def __init__(self, into: Path, stack: contextlib.ExitStack) -> None:
        state = stack.enter_context(open_state(into))
        self._tree: Tree | None = None
        if state is None:
            self.known = Candidates(())
            if into.is_dir():
                refuse_foreign(into)
            return
        root = os.open(into, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, root)
        self._tree = stack.enter_context(Tree(root, into))
        marker = read_marker(state)
        rows = known_rows(state, boot(), marker.share if marker is not None else "")
        self.known = Candidates(stack.enter_context(contextlib.closing(rows)))

    def holds(self, record: FileRecord) -> bool:
        return self._tree is not None and is_intact(self._tree, record, by_content=False)


def _free(into: Path) -> int:
    place = next(folder for folder in (into, *into.absolute().parents) if folder.exists())
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize
