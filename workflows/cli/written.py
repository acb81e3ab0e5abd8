"""The file that ``-o`` names."""

from __future__ import annotations

import uuid
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path

from argosy.steps.contract.errors import InputError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; one that was there is replaced, but never a device (/dev/null), a pipe or a
    link.

    Raises:
        InputError: it cannot be written there. OSError: the disk is full.
    """
    whole = path.resolve() if path.is_file() else path
    part = whole.with_name(f".{whole.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
            return
        part.write_bytes(data)
        part.replace(whole)
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            error.filename = str(path)  # a write does not know its file
            raise
        remedy = "name a file in a folder that exists and is yours to write"
        raise InputError(f"--output {path}: {error.strerror}; {remedy}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
