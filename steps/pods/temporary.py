"""A short way to a pod's ``/tmp``: a unix socket's path has at most 107 bytes, and data loaders make sockets there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from pathlib import Path

_PLACES = ("/tmp", "/var/tmp", "/dev/shm")
"""Not $TMPDIR: who starts a pod may be one, whose own is deep."""
_STALE_SECONDS = 24 * 3600.0


def link(pod: Path, folder: Path) -> Path:
    """A short link to ``folder`` for the pod whose records lie in ``pod``; ``folder`` itself where none can be made."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in _PLACES:
        with contextlib.suppress(OSError):
            own = _own(Path(place))
            for stale in own.iterdir():  # of runs whose folder was removed; a container's own is not seen from another
                if not stale.exists() and time.time() - stale.lstat().st_mtime > _STALE_SECONDS:
                    stale.unlink(missing_ok=True)
            path = own / _name(pod)
            path.unlink(missing_ok=True)
            path.symlink_to(folder.resolve())
            return path
    return folder


def unlink(pod: Path) -> None:
    """The pod has ended."""
    for place in _PLACES:
        with contextlib.suppress(OSError):
            (Path(place) / _folder() / _name(pod)).unlink(missing_ok=True)


def _folder() -> str:
    return f"argosy-{os.getuid()}"


def _name(pod: Path) -> str:
    return hashlib.sha256(str(pod.resolve()).encode()).hexdigest()[:12]


def _own(place: Path) -> Path:
    """A folder there that nobody else can write to; OSError when somebody else has its name."""
    path = place / _folder()
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{path} is not ours alone")
    return path
