"""The marker of a staged folder, written last: which share of which dataset lies here, whole."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from argosy.steps.data.state_files import read_file, write_file

FORMAT = "argosy-staged-2"
NAME = "complete.json"


@dataclass(frozen=True)
class Marker:
    """``share`` is the digest of what lies here; ``objects`` and ``total_bytes`` count it."""

    dataset_digest: str
    share: str
    objects: int
    total_bytes: int

    def write(self, state: int) -> None:
        """Put it into the state folder, durably.

        Raises:
            OSError: the disk refused.
        """
        write_file(state, NAME, json.dumps({"format": FORMAT, **asdict(self)}).encode() + b"\n", durable=True)


def read_marker(state: int) -> Marker | None:
    """The marker in a state folder; None if there is none, or none of ours, or of another format."""
    try:
        head = json.loads(read_file(state, NAME))
        if head["format"] != FORMAT:
            return None
        return Marker(str(head["dataset_digest"]), str(head["share"]), int(head["objects"]), int(head["total_bytes"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_marker(state: int) -> None:
    """Take it away, durably: files may change from here on, and a power loss must not bring it back.

    Raises:
        OSError: the disk refused.
    """
    try:
        os.unlink(NAME, dir_fd=state)
    except FileNotFoundError:
        return
    os.fsync(state)
