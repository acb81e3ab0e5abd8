"""Mutexes and semaphores between the engines of one machine: flocks, so that a killed engine holds none."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from argosy.workflows.engine.config_maps import ConfigMaps


@dataclass(frozen=True)
class Lock:
    """One that ``limit`` may hold at a time; ``name`` is Argo's, without the namespace."""

    name: str
    limit: int = 1


def locks_of(synchronization: Mapping[str, Any] | None, configs: ConfigMaps) -> list[Lock]:
    """The locks of a workflow or a template, in Argo's order; none of a semaphore that has no limit."""
    wanted = synchronization or {}
    references = [each["configMapKeyRef"] for each in wanted.get("semaphores") or []]
    found = [
        Lock(f"ConfigMap/{each['name']}/{each['key']}", int(configs.texts(str(each["name"]))[str(each["key"])]))
        for each in references
    ]
    return found + [Lock(f"Mutex/{each['name']}") for each in wanted.get("mutexes") or []]


def lock_problems(synchronization: Mapping[str, Any] | None, configs: ConfigMaps, path: str) -> Iterator[str]:
    """What keeps the locks of a workflow or a template from being taken."""
    for kind in ("semaphores", "mutexes"):
        listed = (synchronization or {}).get(kind) or []
        for index, each in enumerate(listed):
            if each in listed[:index]:
                yield f"{path}.synchronization.{kind}[{index}]: stands twice; Argo takes no lock twice"
    for index, each in enumerate((synchronization or {}).get("semaphores") or []):
        where, reference = f"{path}.synchronization.semaphores[{index}].configMapKeyRef", each.get("configMapKeyRef")
        if not reference:
            yield f"{where}: missing; name the ConfigMap that has the limit"
            continue
        name, key = str(reference.get("name")), str(reference.get("key"))
        if "{{" in name + key:
            yield f"{where}: a tag in a semaphore's name is not built into the local engine"
        elif wrong := list(configs.missing({"name": name}, [key])):
            yield f"{where}: {wrong[0]}"
        elif not (limit := configs.texts(name).get(key, "")).isdecimal() or int(limit) < 1:
            yield f"{where}: {limit!r} is no limit; a semaphore's is a whole number from 1"


class Locks:
    """The locks that this engine holds, by holder (a node's id, "" for the workflow) and name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[tuple[str, str], int] = {}

    def acquire(self, holder: str, wanted: list[Lock]) -> Lock | None:
        """Take all of ``wanted`` or none. None when they are held now, else one that has no room."""
        taken: list[str] = []
        for lock in wanted:
            if (holder, lock.name) in self._held:
                continue
            handle = self._try(lock)
            if handle is None:
                for each in taken:
                    os.close(self._held.pop((holder, each)))
                return lock
            self._held[holder, lock.name] = handle
            taken.append(lock.name)
        return None

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

    def _try(self, lock: Lock) -> int | None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for number in range(lock.limit):
            name = f"{quote(lock.name, safe='')}.{number}.lock"
            handle = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            return handle
        return None
