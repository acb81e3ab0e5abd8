"""The file that ``-o`` names."""

from __future__ import annotations

from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path

from argosy.steps.contract.errors import InputError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; one that was there is replaced, but never a device (/dev/null) or a pipe.

    Raises:
        InputError: it cannot be written there.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
            return
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        full = error.errno in (ENOSPC, EDQUOT)
        remedy = "free some" if full else "name a file in a folder that exists and is yours to write"
        raise InputError(f"--output {path}: {error.strerror}; {remedy}") from error
