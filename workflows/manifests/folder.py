"""The files of a folder that is linted or imported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.workflows.manifests.reading import SUFFIXES


def find_files(path: Path) -> Iterator[Path]:
    """The manifests below a folder in the order of their names; hidden ones are left out.

    Raises:
        InputError: there is no such file or folder, or one below it cannot be read.
    """
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder; name a manifest, a folder of manifests, or - for stdin")
    yield from files_below(path, SUFFIXES)


def files_below(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Files with such an ending, hidden ones left out, in the order of their names.

    Raises:
        InputError: a folder cannot be read: what lies in it would pass for looked at.
    """
    found: list[Path] = []
    for at, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(at, name) for name in names if name.endswith(suffixes) and not name.startswith(".")]
    return sorted(path for path in found if path.is_file())


def _refuse(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):
        return  # what is not there is named by who was given it, and what went meanwhile by nobody
    raise InputError(f"{error.filename}: {error.strerror}; make it readable, or name what lies beside it") from error
