"""What lies in a cache: a staged folder per dataset and share, and what is known of it without opening it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.data.cache.booking import Booking
from argosy.steps.data.cache.lease import Seen
from argosy.steps.data.keys import STATE_FOLDER
from argosy.steps.data.manifest import DatasetManifest

_NAME = re.compile(r"[0-9a-f]{64}(-[0-9a-f]{16})?")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def entry_name(manifest: DatasetManifest, share: str) -> str:
    """``DIGEST`` for the whole dataset, ``DIGEST-SHARE`` for a part of it; ``share`` is the part's own digest."""
    return manifest.digest if share == manifest.digest else f"{manifest.digest}-{share[:16]}"


def is_entry(root: Path, name: str) -> bool:
    """Whether staging made it: anything else in the folder is somebody's and is never touched."""
    if not _NAME.fullmatch(name):
        return False
    with contextlib.suppress(OSError):
        return all(stat.S_ISDIR((root / path).lstat().st_mode) for path in (name, f"{name}/{STATE_FOLDER}"))
    return False


@dataclass(frozen=True)
class Label:
    """What an entry is: the dataset's uri, and the bytes and files it has when it is whole."""

    uri: str
    size: int
    objects: int

    def line(self) -> bytes:
        """One JSON line."""
        return json.dumps([self.uri, self.size, self.objects]).encode() + b"\n"


def read_label(path: Path) -> Label | None:
    """The label in a file; None when it is gone or broken."""
    try:
        uri, size, objects = json.loads(path.read_bytes())
        return Label(str(uri), int(size), int(objects))
    except (OSError, ValueError, TypeError):
        return None


@dataclass(frozen=True)
class Entry:
    """An entry as it is now; ``used`` is when it was last used, in the volume's time, ``leases`` who holds it."""

    name: str
    label: Label
    used: float
    leases: tuple[Seen, ...]
    locked: bool
    """Held by somebody, perhaps one that can leave no lease: a pod that mounts the volume read-only."""
    bookings: tuple[Booking, ...] = ()

    @property
    def in_use(self) -> bool:
        """Whether it must stay."""
        return self.locked or bool(self.leases) or bool(self.bookings)

    def text(self, now: float) -> str:
        """What it is, how large, and who holds it or will, or since when nobody does."""
        if self.leases:
            held = "in use by " + ", ".join(sorted({str(seen.holder) for seen in self.leases}))
        elif self.locked:
            held = "in use by a pod that mounts it read-only"
        elif self.bookings:
            last = max(self.bookings, key=lambda one: one.left)
            held = f"kept for {last.who}, for {age_text(last.left)} at most"
        else:
            held = f"idle for {age_text(max(0.0, now - self.used))}"
        uri = f" of {self.label.uri}" if self.label.uri else ""
        return f"{self.name[:12]}{uri}: {size_text(self.label.size)}, {held}"


def disk_use(path: Path) -> tuple[int, int]:
    """Bytes and files that a folder takes on disk; 0 when there is none."""
    size = count = 0
    # What is walked may be published into or removed meanwhile.
    with contextlib.suppress(FileNotFoundError):
        for _, _, files, handle in os.fwalk(path):
            for name in files:
                with contextlib.suppress(OSError):
                    size += os.stat(name, dir_fd=handle, follow_symlinks=False).st_blocks * 512
                    count += 1
    return size, count


def size_text(size: float) -> str:
    """Bytes for people: ``1.5 GiB``."""
    unit = 0
    while abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def age_text(seconds: float) -> str:
    """Seconds for people: ``3 h``."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def volume_time(handle: int) -> float:
    """The volume's own time: what it writes as mtime when a file is touched now."""
    os.utime(handle)
    return os.fstat(handle).st_mtime


def touch(path: Path) -> None:
    """Say that it was used just now; a volume that refuses keeps the older time."""
    with contextlib.suppress(OSError):
        os.utime(path)
