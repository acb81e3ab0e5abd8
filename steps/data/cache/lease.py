"""Who holds an entry of a cache, and for what: one file per holder.

    .argosy-cache/leases/ENTRY.KIND.TOKEN     the holder, padded JSON; its mtime is the latest sign of life

The holder keeps its file locked. Among processes of one kernel (one boot id) that lock is the truth: it goes when
the holder dies, at once. From another kernel a refused lock is proof of life too, but a granted one proves nothing:
NFS mounted ``nolock``, CIFS with ``nobrl``, most FUSE file systems and virtiofs keep such locks to themselves. There
the mtime decides. Ages are differences of mtimes that the volume's own clock made, so that the clocks of nodes
need not agree.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from argosy.steps.data.cache.lock import lock, try_lock

Kind = Literal["use", "fill", "evict"]
BEAT_SECONDS = 15.0
LEASE_SECONDS = 120.0
"""Silence of a holder on another kernel after which it counts as dead."""
_RECORD_BYTES = 1024
_WHO_LETTERS = 120
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Names the running kernel: the reach of a lock that is certain."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


@dataclass(frozen=True)
class Holder:
    """Who it is, in words; ``since`` in seconds since 1970.

    ``planned`` bytes in ``objects`` files will be written once a filler has been given the room; ``done`` bytes are.
    """

    who: str
    boot: str
    pid: int
    since: float
    planned: int = 0
    objects: int = 0
    done: int = 0

    def line(self) -> bytes:
        """Always the same number of bytes, so that it is replaced by one write."""
        return json.dumps(asdict(self)).encode()[: _RECORD_BYTES - 1].ljust(_RECORD_BYTES - 1) + b"\n"

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """Read a record; what cannot be read is somebody of whom nothing is known."""
        try:
            found: dict[str, Any] = json.loads(raw)
            return cls(
                who=str(found["who"]),
                boot=str(found["boot"]),
                pid=int(found["pid"]),
                since=float(found["since"]),
                planned=int(found.get("planned", 0)),
                objects=int(found.get("objects", 0)),
                done=int(found.get("done", 0)),
            )
        except (ValueError, KeyError, TypeError):
            return cls("somebody", "", 0, 0.0)

    def __str__(self) -> str:
        return f"{self.who} (pid {self.pid})" if self.pid else self.who


@dataclass(frozen=True)
class Seen:
    """A live lease, as others see it."""

    entry: str
    kind: Kind
    token: str
    holder: Holder


class Lease:
    """A lease of ours, given back by :meth:`release` or by our death."""

    def __init__(self, folder: Path, entry: str, kind: Kind, who: str) -> None:
        """Visible to others, and locked, once this returns.

        Raises:
            OSError: the volume takes no further file, or has no locks.
        """
        self.token = secrets.token_hex(8)
        self.holder = Holder(who[:_WHO_LETTERS], boot_id(), os.getpid(), time.time())
        self._path = folder / f"{entry}.{kind}.{self.token}"
        hidden = folder / f".{self.token}"
        self._handle = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            # Locked before it has a name that others look at: nobody ever sees it without its lock. Who looks for what
            # dead holders left may be at it for a moment.
            lock(self._handle)
            self._write()
            os.rename(hidden, self._path)
        except OSError:
            os.close(self._handle)
            with contextlib.suppress(OSError):
                os.unlink(hidden)
            raise
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="cache-lease", daemon=True)
        self._thread.start()

    def _write(self) -> None:
        # On a volume that is full to the last byte a lease without words still locks.
        with contextlib.suppress(OSError):
            os.pwrite(self._handle, self.holder.line(), 0)

    def note(self, *, planned: int, objects: int, done: int) -> None:
        """Tell others how much is being written: room they must not count on."""
        held = self.holder
        self.holder = Holder(held.who, held.boot, held.pid, held.since, planned, objects, done)
        self._write()

    def _beat(self) -> None:
        told = False
        while not self._done.wait(BEAT_SECONDS):
            try:
                os.utime(self._handle)
                lost = os.fstat(self._handle).st_nlink == 0
            except OSError as error:  # the next beat may succeed; a lease is many beats long
                os.write(2, f"argosy: no sign of life in {self._path.parent}: {error}\n".encode())
                continue
            if lost and not told:
                told = True
                os.write(2, f"argosy: {self._path.name}: taken for dead by another node while in use\n".encode())

    def release(self) -> None:
        """Give it back; may be called twice."""
        if self._done.is_set():
            return
        self._done.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def living(folder: Path, now: float, entry: str = "") -> list[Seen]:
    """Live leases (of one entry), by name; what dead holders left is removed. ``now`` is the volume's own time."""
    found = []
    for name in sorted(os.listdir(folder)):
        of, _, rest = name.partition(".")
        kind, _, token = rest.partition(".")
        if of and kind not in ("use", "fill", "evict"):
            continue
        if of and entry and of != entry:
            continue
        holder = _living(folder / name, now, hidden=not of)
        if holder is not None and of:
            found.append(Seen(of, kind, token, holder))  # type: ignore[arg-type]
    return found


def _living(path: Path, now: float, *, hidden: bool) -> Holder | None:
    """The holder behind a file; None when it is dead, and then the file is gone."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Shared: two that look at the same time must not take each other for the holder.
        refused = not try_lock(handle, shared=True)
        holder = Holder.of(os.pread(handle, _RECORD_BYTES, 0))
        fresh = now - os.fstat(handle).st_mtime < LEASE_SECONDS
        if refused or (fresh and (hidden or holder.boot != boot_id())):
            return holder
        with contextlib.suppress(OSError):
            os.unlink(path)
        return None
    finally:
        os.close(handle)
