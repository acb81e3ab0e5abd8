"""Is what lies in a folder finished? Asked of files that a foreign program writes as it likes."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from argosy.steps.pods import processes

State = tuple[int, int, int]
"""Size in bytes, mtime in ns, inode."""
Signature = dict[str, State]
"""Relative path -> its state."""

_SECOND = 10**9
_LOOKS = 100
_ZIP = b"PK\x03\x04"
_ZIP_HEAD = b"PK"
_ALWAYS_ZIP = frozenset({".distcp", ".npz"})
_SAFETENSORS_HEADER = 8
_HEADER_BYTES = 100_000_000
"""The safetensors library reads no longer header either."""
_PICKLE, _PICKLE_END = b"\x80", b"."
_JSON_BYTES = 64 << 20
"""A longer JSON file is judged by its last character alone."""
_PROVEN_JSON_BYTES = 1 << 20
"""A longer one is not parsed at each look."""


def matching(folder: Path, include: Sequence[str]) -> list[str]:
    """Relative paths of regular files below ``folder`` that a glob of ``include`` matches (none: all), sorted.

    A link to a file in there counts where ``include`` names it, as ``last.pt``: by a glob the file alone is meant.
    """
    inside = folder.resolve()
    found: set[str] = set()
    for glob in include or ("**/*",):
        plain = set(glob).isdisjoint("*?[")
        for path in globbed(folder, glob):
            # What another node just fetches into a folder that both share is not the script's.
            if not path.is_file() or path.name.startswith(".argosy-"):
                continue
            if not path.is_symlink() or (plain and path.resolve().is_relative_to(inside)):
                found.add(path.relative_to(folder).as_posix())
    return sorted(found)


def globbed(folder: Path, glob: str) -> list[Path]:
    """What the glob matches. Python's own ends where a folder goes meanwhile, as an old checkpoint that is removed, and
    leaves out what comes after it: then it is looked for anew.
    """
    for _ in range(_LOOKS):
        with contextlib.suppress(FileNotFoundError):
            return list(folder.glob(glob))
    return list(folder.glob(glob))


def signature(folder: Path, include: Sequence[str]) -> Signature:
    """The state of the matching files."""
    return facts(folder, matching(folder, include))


def facts(folder: Path, names: Iterable[str]) -> Signature:
    """The state of these files; one that is gone is left out."""
    state: Signature = {}
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            found = (folder / name).stat()
            state[name] = (found.st_size, found.st_mtime_ns, found.st_ino)
    return state


def newest_change(state: Signature) -> float:
    """When one of the files last changed, in seconds since 1970; 0 without files."""
    return max((mtime for _, mtime, _ in state.values()), default=0) / 1e9


class Ages:
    """How long files of a folder have rested, in seconds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ahead: dict[str, tuple[State, float]] = {}
        """Files whose time is still to come, and since when, by a clock that nobody sets, they are as they are."""

    def of(self, name: str, state: State) -> float:
        """By the file's time, or that of its name: a file that was written elsewhere is old when it comes here, and
        may be one of several. A file server's clock may be ahead of this node's, a script may set times itself, and
        this node's clock may be set back: a time that is still to come tells nothing, and what was seen counts.
        """
        came = max(state[1], self._came(name))
        age = time.time() - came / 1e9
        before, since = self._ahead.get(name, (None, 0.0))
        if before == state:
            age = max(age, time.monotonic() - since)
        elif age < 0:
            self._ahead[name] = (state, time.monotonic())
        # Of a file system that keeps whole seconds (Lustre) the last may not be over: nothing would tell of a write.
        return max(0.0, age if came % _SECOND else age - 1)

    def _came(self, name: str) -> int:
        """When the file came to its name, or a folder that it lies in was moved there, with files that are old, too."""
        came = 0
        with contextlib.suppress(OSError):  # it has gone meanwhile, which the last look at the folder sees
            came = os.stat(f"{self._folder}/{name}").st_ctime_ns
            while name := name.rpartition("/")[0]:
                above = os.stat(f"{self._folder}/{name}")
                if above.st_ctime_ns > above.st_mtime_ns:  # else it is of what came or went in there
                    came = max(came, above.st_ctime_ns)
        return came

    def youngest(self, files: Mapping[str, State]) -> float:
        """Of the file that changed last; without files for ever."""
        return min((self.of(name, state) for name, state in files.items()), default=math.inf)


def open_for_writing(folder: Path, names: Iterable[str]) -> set[str]:
    """Those of the files that a process below this one holds open for writing."""
    writing = {path for pid in processes.descendants(os.getpid()) for path in opened(pid)}
    return {name for name in names if os.path.realpath(folder / name) in writing}


def opened(pid: int, *, writing: bool = True) -> list[str]:
    """What the process holds open, for ``writing`` or for reading only."""
    found = []
    with contextlib.suppress(OSError):
        for handle in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError, StopIteration, ValueError):
                path = os.readlink(f"/proc/{pid}/fd/{handle}")
                lines = Path(f"/proc/{pid}/fdinfo/{handle}").read_text().splitlines()
                flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))
                if (flags & os.O_ACCMODE != os.O_RDONLY) == writing:
                    found.append(path)
    return found


def looks_whole(path: Path) -> bool:
    """False for a zip (``torch.save``), safetensors or JSON file that was cut off, and for an empty one.

    True where nothing can be said.
    """
    try:
        if path.stat().st_size == 0:
            return False
        if path.suffix == ".safetensors":
            return _safetensors_whole(path)
        if path.suffix == ".json":
            return _json_whole(path)
        with path.open("rb") as source:
            head = source.read(len(_ZIP))
        if head == _ZIP or (path.suffix in _ALWAYS_ZIP and _ZIP_HEAD.startswith(head[:2])):
            return zipfile.is_zipfile(path)
        return True
    except (OSError, zipfile.BadZipFile):
        return False


def proves_itself(path: Path) -> bool:
    """Whether a look at the file shows that not a byte is missing: a zip (``torch.save``), or one JSON object or list.

    Both end with something that is nowhere before the end.
    """
    try:
        if path.suffix == ".json":
            if not 0 < path.stat().st_size <= _PROVEN_JSON_BYTES:
                return False
            return isinstance(json.loads(path.read_bytes()), dict | list)
        with path.open("rb") as source:
            return source.read(len(_ZIP)) == _ZIP and zipfile.is_zipfile(source)
    except (OSError, ValueError, RecursionError, zipfile.BadZipFile):
        return False


def _safetensors_whole(path: Path) -> bool:
    with path.open("rb") as source:
        length = int.from_bytes(source.read(_SAFETENSORS_HEADER), "little")
        size = path.stat().st_size
        if length > min(size, _HEADER_BYTES):
            return False
        try:
            header = json.loads(source.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            return bool(size == _SAFETENSORS_HEADER + length + max(ends, default=0))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return False


def _json_whole(path: Path) -> bool:
    if path.stat().st_size > _JSON_BYTES:
        with path.open("rb") as source:
            source.seek(-64, os.SEEK_END)
            return source.read().rstrip()[-1:] in (b"}", b"]")
    text = path.read_bytes()
    if text.startswith(_PICKLE):  # Ray Tune calls one so: basic-variant-state-….json
        return text.endswith(_PICKLE_END)
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return _json_lines(text)
    return True


def _json_lines(text: bytes) -> bool:
    """One value per line is no JSON file, but some scripts call it so."""
    lines = text.splitlines()
    try:
        return len(lines) > 1 and all(isinstance(json.loads(line), dict) for line in lines if line.strip())
    except (ValueError, RecursionError):
        return False
