"""The user's code by content: fetched, verified against its digest, unpacked, published with the marker last."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.layout import CODE_ARCHIVE, code_key
from argosy.steps.store.base import ObjectMissing, ObjectStore
from argosy.steps.store.files import fsync_folder, make_folders
from argosy.steps.untar import place

_MARKER = ".argosy-code"
_PART = ".argosy-code-part-"
MAX_BYTES = 512 << 20
"""Of the files together; ``pack`` stops long before. A small archive can hold a disk full of zeros."""
MAX_FILES = 200_000


def unpack(store: ObjectStore, name: str, digest: str, into: Path) -> None:
    """Put the files of the archive ``digest`` (SHA-256 of its bytes, 64 hex digits) into the folder ``into``.

    Verified before anything is unpacked. Done already: nothing happens. Killed on the way: the next call does all
    of it again; the marker is written last. What would leave the folder, or is neither file nor
    link, is refused.

    Raises:
        StepError: ``s3_missing`` when there is no archive; ``config_or_rbac`` when it is of another digest, or not
            a safe one; ``disk_full``; otherwise what the store reported.
    """
    marker = into / _MARKER
    if marker.is_file() and marker.read_text() == digest:
        return
    make_folders(into)
    for stale in into.glob(f"{_PART}*"):
        shutil.rmtree(stale)
    part = into / f"{_PART}{uuid.uuid4().hex}"
    part.mkdir()
    try:
        archive = part / "archive"
        _fetch(store, name, digest, archive)
        _extract(archive, part / "files", digest)
        _publish(part / "files", into)
        (part / _MARKER).write_text(digest)
        (part / _MARKER).replace(marker)
        fsync_folder(into)
    except OSError as error:
        raise StepError(Cause.DISK_FULL, f"cannot unpack the code into {into}: {error}", quote=str(error)) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _fetch(store: ObjectStore, name: str, digest: str, archive: Path) -> None:
    key = code_key(name, digest)
    try:
        found = store.fetch(key, archive)
    except ObjectMissing as error:
        text = f"{CODE_ARCHIVE} {store.uri}/{key} is not there: nobody stored it, or it was deleted since"
        raise StepError(Cause.S3_MISSING, text, quote=text) from error
    if found != digest:
        raise StepError(Cause.CONFIG_OR_RBAC, f"{CODE_ARCHIVE} {store.uri}/{key} has SHA-256 {found}: not unpacked")


def _extract(archive: Path, files: Path, digest: str) -> None:
    files.mkdir()
    try:
        with tarfile.open(archive, "r:gz") as source:
            for member in _sized(source):
                place(source, member, files.resolve())
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise StepError(Cause.CONFIG_OR_RBAC, f"{CODE_ARCHIVE} {digest} cannot be unpacked: {error}") from error


def _sized(source: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members, while they are as many and as large as code can be."""
    total = 0
    for count, member in enumerate(source, 1):
        total += member.size
        if total > MAX_BYTES or count > MAX_FILES:
            raise tarfile.TarError(f"more than {MAX_BYTES >> 20} MiB or {MAX_FILES} files")
        yield member


def _publish(files: Path, into: Path) -> None:
    for entry in sorted(files.iterdir()):
        target = into / entry.name
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        os.replace(entry, target)
