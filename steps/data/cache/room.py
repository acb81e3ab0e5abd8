"""Room for a dataset: what is idle goes, the least recently used first, and only when that is enough."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.data.cache.entry import Entry, Label, disk_use, size_text
from argosy.steps.data.cache.eviction import evict, sweep
from argosy.steps.data.cache.lease import Holder, Lease
from argosy.steps.data.cache.root import CacheRoot
from argosy.steps.data.cache.waiting import Waiting
from argosy.steps.data.room import ROOM_FACTOR

_NAMED = 8
"""Entries that an error names."""


@dataclass(frozen=True)
class Wanted:
    """An entry that is about to be filled; ``cap_bytes`` limits all entries together, 0: the volume alone does."""

    entry: str
    label: Label
    cap_bytes: int


@dataclass(frozen=True)
class _Shortage:
    """What is missing: bytes, and files; nothing when neither is above 0."""

    bytes: float
    files: float

    def __bool__(self) -> bool:
        return self.bytes > 0 or self.files > 0


def make_room(root: CacheRoot, wanted: Wanted, lease: Lease, waiting: Waiting, *, refused: str = "") -> None:
    """Evict until ``wanted`` fits, and reserve its room under ``lease``.

    ``refused``: what the volume answered although it had said that there is room (a quota, say): something must go.

    Raises:
        StepError: ``disk_full``: it names who holds the room; 78 when no run's end would help, else 75.
    """
    stuck: set[str] = set()
    with root.locked(waiting):
        sweep(root)
        while True:
            others = [entry for entry in root.entries() if entry.name != wanted.entry]
            short = _shortage(root, wanted, others, lease)
            if refused and not short:
                short = _Shortage(1, 0)
            if not short:
                break
            idle = [entry for entry in others if not entry.in_use and entry.name not in stuck]
            victims = _oldest(idle, short)
            if not victims:
                raise _no_room(root, wanted, others, idle, short, refused)
            for entry in victims:
                if evict(root, entry.name, str(lease.holder)):
                    refused = ""
                    waiting.say(f"evicted {entry.text(root.now())} from {root.path}")
                else:
                    stuck.add(entry.name)
            sweep(root)
        # Still locked: who makes room next counts it, although it may have no folder yet.
        root.label(wanted.entry, wanted.label)
        lease.note(planned=wanted.label.size, objects=wanted.label.objects, done=0)


def _shortage(root: CacheRoot, wanted: Wanted, others: Sequence[Entry], lease: Lease) -> _Shortage:
    found = os.statvfs(root.path)
    free = found.f_bavail * found.f_frsize
    size, files = disk_use(root.path / wanted.entry)
    missing = max(0, wanted.label.size - size)
    if not missing:
        return _Shortage(0, 0)
    fillers = [seen.holder for seen in root.living(besides=lease) if seen.kind == "fill"]
    short = ROOM_FACTOR * (missing + sum(_outstanding(holder) for holder in fillers)) - free
    if wanted.cap_bytes:
        short = max(short, sum(entry.label.size for entry in others) + wanted.label.size - wanted.cap_bytes)
    promised = max(0, wanted.label.objects - files) + sum(holder.objects for holder in fillers)
    return _Shortage(short, promised - found.f_favail if found.f_files else 0)


def _outstanding(holder: Holder) -> int:
    return max(0, holder.planned - holder.done)


def _oldest(idle: Sequence[Entry], short: _Shortage) -> list[Entry]:
    """As few of the oldest as are enough; none when all of them are not."""
    size, files, victims = short.bytes, short.files, []
    for entry in idle:
        if size <= 0 and files <= 0:
            break
        size, files = size - max(entry.label.size, 1), files - max(entry.label.objects, 1)
        victims.append(entry)
    return victims if size <= 0 and files <= 0 else []


def _no_room(
    root: CacheRoot, wanted: Wanted, others: Sequence[Entry], idle: Sequence[Entry], short: _Shortage, refused: str
) -> StepError:
    # Would it fit if no run were using anything?
    enough = bool(_oldest(others, short))
    remedy = "wait for a run to end" if enough else "give the volume more room, raise the limit, or remove other files"
    limit = f", its limit is {size_text(wanted.cap_bytes)}" if wanted.cap_bytes else ""
    lacking = f"{size_text(short.bytes)} are missing" if short.bytes > 0 else f"{short.files:.0f} files are too many"
    lacking = refused or lacking
    freed = size_text(sum(entry.label.size for entry in idle))
    text = (
        f"{root.path} cannot take the dataset {wanted.entry[:12]} of {wanted.label.uri}: it needs "
        f"{size_text(ROOM_FACTOR * wanted.label.size)} ({ROOM_FACTOR} x its size){limit}, {lacking}; "
        f"it holds {'; '.join(_holding(root, wanted, others))}; what is idle would free {freed}: {remedy}"
    )
    return StepError(Cause.DISK_FULL, text, code=None if enough else ExitCode.CONFIGURATION)


def _holding(root: CacheRoot, wanted: Wanted, others: Sequence[Entry]) -> list[str]:
    """What takes the room, the largest entries first, then what is not the cache's, then what is free."""
    found, now = os.statvfs(root.path), root.now()
    ours = sum(entry.label.size for entry in others) + disk_use(root.path / wanted.entry)[0]
    foreign = max(0, (found.f_blocks - found.f_bfree) * found.f_frsize - ours)
    named = [entry.text(now) for entry in sorted(others, key=lambda entry: -entry.label.size)]
    more = [f"{len(named) - _NAMED} more"] if len(named) > _NAMED else []
    free = size_text(found.f_bavail * found.f_frsize)
    return [*named[:_NAMED], *more, f"other files: {size_text(foreign)}", f"free: {free}"]
