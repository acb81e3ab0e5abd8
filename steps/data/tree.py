"""The data of a staged folder: files below its root, reached through folder handles and never through a link.

The handle of a folder is kept, because keys come sorted. Whoever writes through one has to learn when another folder
took its place meanwhile: what was written is looked up again by name before the handle is given up.
"""

from __future__ import annotations

import contextlib
import os
import stat
from errno import EISDIR, ELOOP, ENOENT, ENOTDIR, ENOTEMPTY
from pathlib import Path

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.state_files import FILE, open_folder

_IN_THE_WAY = (EISDIR, ELOOP, ENOENT, ENOTDIR, ENOTEMPTY)
_KEPT = 64


class Tree:
    """Files by key below ``root``; a context manager whose end checks what was written."""

    def __init__(self, root: int, path: Path) -> None:
        """``path`` is only named in errors."""
        self._root, self._path = root, path
        self._handles: dict[str, int] = {}
        self._written: set[str] = set()

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.check()
        finally:
            for handle in self._handles.values():
                os.close(handle)
            self._handles.clear()

    def publish(self, parts: int, part: str, key: str) -> None:
        """Give a finished part its name, replacing the file that had it.

        Raises:
            StepError: ``data_corrupt`` when a folder of the key is a file or a symbolic link, or the file a folder.
            OSError: the disk refused.
        """
        folder, _, name = key.rpartition("/")
        try:
            handle = self._handles.get(folder)
            if handle is None:
                handle = self._opened(folder, create=True)
            self._written.add(folder)
            os.rename(part, name, src_dir_fd=parts, dst_dir_fd=handle)
        except OSError as error:
            raise self._refused(key, error) from error

    def stat(self, key: str) -> os.stat_result | None:
        """Facts of the regular file at ``key``; None if there is none, or anything else."""
        folder, _, name = key.rpartition("/")
        try:
            handle = self._handles.get(folder)
            if handle is None:
                handle = self._opened(folder)
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def open(self, key: str) -> int:
        """A handle for reading the file at ``key``, which the caller closes.

        Raises:
            OSError: it cannot be read.
        """
        folder, _, name = key.rpartition("/")
        return os.open(name, FILE, dir_fd=self._opened(folder))

    def forget(self) -> None:
        """Give up the handles: folders may be removed from here on."""
        self.check()
        for folder in list(self._handles):
            os.close(self._handles.pop(folder))

    def check(self) -> None:
        """Confirm that each folder that was written through its handle is still the one of its name.

        Raises:
            StepError: ``data_corrupt``.
        """
        for folder in tuple(self._written):
            self._check(folder)

    def _opened(self, folder: str, *, create: bool = False) -> int:
        if not folder:
            return self._root
        handle = self._handles.get(folder)
        if handle is None:
            above, _, name = folder.rpartition("/")
            handle = open_folder(name, self._opened(above, create=create), create=create)
            self._handles[folder] = handle
            if len(self._handles) > _KEPT:
                self._drop(next(iter(self._handles)))
        return handle

    def _drop(self, folder: str) -> None:
        self._check(folder)
        os.close(self._handles.pop(folder))

    def _check(self, folder: str) -> None:
        if folder not in self._written or not folder:
            return
        self._written.discard(folder)
        with contextlib.ExitStack() as stack:
            handle = self._root
            try:
                for name in folder.split("/"):
                    handle = open_folder(name, handle)
                    stack.callback(os.close, handle)
            except OSError as error:
                raise self._refused(f"{folder}/", error) from error
            if not os.path.samestat(os.fstat(handle), os.fstat(self._handles[folder])):
                raise self._refused(f"{folder}/", OSError(ENOENT, "the folder was replaced"))

    def _refused(self, key: str, error: OSError) -> Exception:
        if error.errno not in _IN_THE_WAY:
            return error
        text = f"cannot publish {key!r} below {self._path}: {error.strerror}; does something else write there?"
        return StepError(Cause.DATA_CORRUPT, text, quote=str(error))
