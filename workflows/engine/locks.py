"""Mutexes between the engines of one machine: an flock per name, so that a killed engine holds none."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from urllib.parse import quote


class Locks:
    """The mutexes that this engine holds, by holder (a node's id, "" for the workflow) and name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[tuple[str, str], int] = {}

    def acquire(self, holder: str, names: list[str]) -> str:
        """Take all of ``names`` or none. "" when they are held now, else the name that somebody else holds."""
        taken: list[str] = []
        for name in names:
            if (holder, name) in self._held:
                continue
            handle = self._try(name)
            if handle is None:
                for each in taken:
                    os.close(self._held.pop((holder, each)))
                return name
            self._held[holder, name] = handle
            taken.append(name)
        return ""

    @property
    def holders(self) -> set[str]:
        """Who holds something."""
        return {holder for holder, _ in self._held}

    def release(self, holder: str) -> None:
        """Give back everything the holder has."""
        for key in [key for key in self._held if key[0] == holder]:
            os.close(self._held.pop(key))

    def release_all(self) -> None:
        """Give back everything."""
        for handle in self._held.values():
            os.close(handle)
        self._held.clear()

    def _try(self, name: str) -> int | None:
        self._folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._folder / f"{quote(name, safe='')}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle
