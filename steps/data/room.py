"""Whether what is missing fits, asked before the first byte."""

from __future__ import annotations

from errno import EDQUOT, ENOSPC

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.data.folder import StagedFolder
from argosy.steps.data.kernel import reserve

ROOM_FACTOR = 1.2
"""Free space that must be there before the first byte, as a multiple of what is missing."""
_WORTH_RESERVING = 64 << 20
_MOST_RESERVED = 32 << 30
"""Trying out more takes seconds (ext4: 14 ms for a GiB); beyond it a quota shows when it is met."""


def check_room(folder: StagedFolder, size: int, files: int) -> None:
    """Confirm that ``size`` more bytes in ``files`` more files fit, with a margin.

    Raises:
        StepError: ``disk_full`` that no retry mends (78): too few bytes or inodes, or a quota.
    """
    needed = int(size * ROOM_FACTOR)
    free, inodes = folder.free()
    if needed > free:
        text = f"{folder.path} has {free} bytes free, staging needs {needed} ({ROOM_FACTOR} x what is missing)"
        raise _full(f"{text}: give the volume more room")
    if inodes is not None and files > inodes:
        text = f"{folder.path} has room for {inodes} more files, staging needs {files}"
        raise _full(f"{text}: make a file system with more inodes")
    if needed < _WORTH_RESERVING:
        return
    try:
        reserve(folder.parts, min(needed, _MOST_RESERVED))
    except OSError as error:
        if error.errno not in (ENOSPC, EDQUOT):
            raise
        text = f"{folder.path} cannot take the {needed} bytes that staging needs: {error.strerror}"
        raise _full(f"{text}; raise the quota") from error


def _full(text: str) -> StepError:
    return StepError(Cause.DISK_FULL, text, code=ExitCode.CONFIGURATION)
