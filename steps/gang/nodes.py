"""Virtual nodes of one machine: folders ``node-0``, ``node-1``..., one pod of a gang on each, lost for good."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from argosy.steps.store.files import fsync_folder, make_folders


def node_name(number: int) -> str:
    """``node-3`` for 3."""
    return f"node-{number}"


def write_record(path: Path, record: dict[str, Any], *, private: bool = False) -> None:
    """Write JSON so that after a crash the old or the new content is there, durably.

    ``private``: at no moment can another user of this machine read it.
    """
    make_folders(path.parent)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)  # what a kill left may have another mode
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
    with open(handle, "w", encoding="utf-8") as target:
        json.dump(record, target)
        target.flush()
        os.fsync(target.fileno())
    part.replace(path)
    fsync_folder(path.parent)


def read_record(path: Path) -> dict[str, Any] | None:
    """The JSON object in the file; None when there is none or it is broken."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return None


class VirtualNodes:
    """``count`` nodes below ``folder``."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self.names = tuple(node_name(number) for number in range(count))

    def pods(self, node: str) -> Path:
        """Folder of the node's pods."""
        return self._folder / node / "pods"

    def free(self, excluded: tuple[str, ...]) -> list[str]:
        """Nodes that may take a pod, in order."""
        return [node for node in self.names if node not in excluded and not self._lost(node).exists()]

    def lose(self, node: str) -> None:
        """Take a node away: it never takes a pod again."""
        write_record(self._lost(node), {"node": node})

    def _lost(self, node: str) -> Path:
        return self._folder / node / "lost.json"
