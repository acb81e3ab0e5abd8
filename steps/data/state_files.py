"""Small files of staging's own, below a folder handle: never through a link, never half there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(name: str, parent: int, *, create: bool = False) -> int:
    """A handle of the folder ``name`` below ``parent``.

    Raises:
        OSError: it is none, or a link.
    """
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
    return os.open(name, FOLDER, dir_fd=parent)


def read_file(folder: int, name: str) -> bytes:
    """The whole file.

    Raises:
        OSError: it cannot be read.
    """
    with open(os.open(name, FILE, dir_fd=folder), "rb") as source:
        return source.read()


def write_file(folder: int, name: str, data: bytes | Iterable[bytes], *, durable: bool = False) -> None:
    """Replace the file: at every instant there is the old one or the new one.

    Raises:
        OSError: the disk refused.
    """
    fresh = f"{name}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(fresh, flags, 0o666, dir_fd=folder), "wb") as target:
        target.writelines([data] if isinstance(data, bytes) else data)
        if durable:
            target.flush()
            os.fsync(target.fileno())
    os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    if durable:
        os.fsync(folder)


def remove_file(folder: int, name: str) -> None:
    """Remove a file or a link, if it is there.

    Raises:
        OSError: the disk refused.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
