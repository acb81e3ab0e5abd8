"""The folder that the runs of this machine lie in."""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path
from tempfile import TemporaryFile

from argosy.steps.contract.errors import InputError


def check_state_dir(path: Path) -> None:
    """Make the folder for runs.

    Raises:
        InputError: it cannot be made or written.
    """
    remedy = "name a folder of your own with --state-dir"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise
        raise InputError(f"--state-dir {path}: cannot be made ({error.strerror}); {remedy}") from error
    if (marker := path / ".gitignore") and not marker.exists():
        with suppress(OSError):
            marker.write_text("*\n")  # nobody wants to commit the disks of virtual nodes
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(f"--state-dir {path}: cannot be written (no permission); {remedy}")
    try:
        with TemporaryFile(dir=path):  # /proc and the like say that they can be written
            pass
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise
        raise InputError(f"--state-dir {path}: cannot be written ({error.strerror}); {remedy}") from error
