"""Entries of a tar archive that somebody else made; tarfile's own filters came with 3.11.4 and Debian 12 has 3.11.2."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path


def place(source: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> None:
    """Write one entry, inside ``root`` (its real path) or not at all.

    Raises:
        tarfile.TarError: it would leave the folder, is there twice, or is neither a file, a folder nor a link.
        OSError: it cannot be written.
    """
    path = root / member.name.lstrip("/")
    if ".." in Path(member.name).parts or not _is_inside(path.parent, root):
        raise tarfile.TarError(f"{member.name!r} would leave the folder")
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.exists():
        raise tarfile.TarError(f"{member.name!r} is there twice")
    if member.issym():
        # Normal: so that ".." is only met before names, and what a link in it points to does not matter.
        goal = os.path.join(os.path.realpath(path.parent), member.linkname)
        if os.path.normpath(member.linkname) != member.linkname or not _is_inside(Path(os.path.normpath(goal)), root):
            raise tarfile.TarError(f"{member.name!r} is a link out of the folder")
        path.symlink_to(member.linkname)
    elif member.isreg() and (content := source.extractfile(member)) is not None:
        with content, path.open("xb") as target:
            shutil.copyfileobj(content, target)
        path.chmod(0o755 if member.mode & 0o111 else 0o644)
    else:
        raise tarfile.TarError(f"{member.name!r} is neither a file nor a link")


def _is_inside(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(root)
