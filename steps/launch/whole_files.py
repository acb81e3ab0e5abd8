"""Is what lies in a folder finished? Asked of files that a foreign program writes as it likes."""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from argosy.steps.pods import processes

Signature = dict[str, tuple[int, int, int]]
"""Relative path -> size in bytes, mtime in ns, inode."""

_ZIP = b"PK\x03\x04"
_SAFETENSORS_HEADER = 8


def matching(folder: Path, include: Sequence[str]) -> list[str]:
    """Relative paths of regular files below ``folder`` that a glob of ``include`` matches (none: all), sorted."""
    found: set[str] = set()
    for glob in include or ("**/*",):
        with contextlib.suppress(FileNotFoundError):
            for path in folder.glob(glob):
                if path.is_file() and not path.is_symlink():
                    found.add(path.relative_to(folder).as_posix())
    return sorted(found)


def signature(folder: Path, include: Sequence[str]) -> Signature:
    """The state of the matching files."""
    state: Signature = {}
    for name in matching(folder, include):
        with contextlib.suppress(FileNotFoundError):
            found = (folder / name).stat()
            state[name] = (found.st_size, found.st_mtime_ns, found.st_ino)
    return state


def newest_change(state: Signature) -> float:
    """Time of the last change in seconds since 1970; 0 for nothing."""
    return max((mtime for _, mtime, _ in state.values()), default=0) / 1e9


def written_now(folder: Path, names: Iterable[str]) -> bool:
    """Whether a process below this one holds one of the files open for writing."""
    wanted = {os.path.realpath(folder / name) for name in names}
    return any(_writes(pid, wanted) for pid in processes.descendants(os.getpid()))


def _writes(pid: int, wanted: set[str]) -> bool:
    with contextlib.suppress(OSError):
        for handle in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError, StopIteration, ValueError):
                if os.readlink(f"/proc/{pid}/fd/{handle}") in wanted:
                    lines = Path(f"/proc/{pid}/fdinfo/{handle}").read_text().splitlines()
                    flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))
                    if flags & os.O_ACCMODE != os.O_RDONLY:
                        return True
    return False


def looks_whole(path: Path) -> bool:
    """False for a zip (``torch.save``) or safetensors file that was cut off; True where nothing can be said."""
    try:
        if path.stat().st_size == 0:
            return False
        if path.suffix == ".safetensors":
            return _safetensors_whole(path)
        with path.open("rb") as source:
            return source.read(len(_ZIP)) != _ZIP or zipfile.is_zipfile(path)
    except OSError:
        return False


def _safetensors_whole(path: Path) -> bool:
    with path.open("rb") as source:
        length = int.from_bytes(source.read(_SAFETENSORS_HEADER), "little")
        size = path.stat().st_size
        if length > size:
            return False
        try:
            header = json.loads(source.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return False
    return size == _SAFETENSORS_HEADER + length + max(ends, default=0)
