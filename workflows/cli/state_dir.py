"""The folder that the runs of this machine lie in."""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.run_folder import STATE_DIR

if TYPE_CHECKING:
    from argosy.workflows.cli.source import Source

_OURS = frozenset((".gitignore", "artifact-repository", "chaos", "locks", "runs", "volumes", "watch"))
"""What may lie there before a first run: code that `compile --push` put there, data of a volume."""


def check_state_dir(path: Path, source: Source) -> None:
    """Make the folder for runs.

    Raises:
        InputError: it cannot be made or written, or what lies in it would be code of ``source``.
    """
    remedy = "name a folder of your own with --state-dir"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise
        raise InputError(f"--state-dir {path}: cannot be made ({error.strerror}); {remedy}") from error
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(f"--state-dir {path}: cannot be written (no permission); {remedy}")
    mark = path / ".gitignore"
    if path.name == STATE_DIR or {each.name for each in path.iterdir()} <= _OURS:
        with suppress(OSError):
            if not mark.exists() or not mark.stat().st_size:  # one that met a full disk is empty
                mark.write_text("*\n")  # nobody wants to commit the disks of virtual nodes
    elif source.run is not None and source.archive is not None:
        code, place = (source.path.parent / source.run.code).resolve(), path.resolve()
        if place.is_relative_to(code) and any((code / name).is_relative_to(place) for name in source.archive.files):
            rule = "other things lie there, and beside them what runs write would be packed as code"
            raise InputError(f"--state-dir {path}: {rule}; {remedy}")
    try:
        with TemporaryFile(dir=path):  # /proc and the like say that they can be written
            pass
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise
        raise InputError(f"--state-dir {path}: cannot be written ({error.strerror}); {remedy}") from error
