"""An entry that a run has staged and not begun to use: kept for that run, for a stated time.

    .argosy-cache/booked/ENTRY.RUN     who booked it and for how long, JSON; its mtime is since when

The step that fills a shared cache has ended before the gang's pods exist, and its lease with it. A booking is a file:
it outlives its writer and the writer's node. It counts for as long as it says, by the volume's own clock and never
longer than a day, and it goes when a pod of the run holds the entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.contract.arguments import LONGEST_BOOK_SECONDS

_WHO_LETTERS = 120
_MOST_BYTES = 4096


@dataclass(frozen=True)
class Booking:
    """Somebody's wish, as others see it; it ends in ``left`` seconds."""

    entry: str
    who: str
    left: float


def book(folder: Path, entry: str, run: str, who: str, seconds: float) -> None:
    """Keep ``entry`` for ``run`` from now on; the run's earlier booking of it is replaced.

    Raises:
        OSError: the volume takes no further file.
    """
    hidden = folder / f".{secrets.token_hex(8)}"
    try:
        hidden.write_bytes(json.dumps({"who": who[:_WHO_LETTERS], "seconds": seconds}).encode())
        os.rename(hidden, folder / _name(entry, run))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(hidden)
        raise


def redeem(folder: Path, entry: str, run: str) -> None:
    """End the run's booking, if it has one: something better holds the entry now."""
    with contextlib.suppress(OSError):
        os.unlink(folder / _name(entry, run))


def booked(folder: Path, now: float, entry: str = "") -> list[Booking]:
    """What counts (of one entry); what has run out is removed. ``now`` is the volume's own time."""
    found = []
    for name in sorted(os.listdir(folder)):
        of, _, run = name.partition(".")
        if entry and of and of != entry:
            continue
        one = _read(folder / name, of, now)
        if one is None:
            with contextlib.suppress(OSError):
                os.unlink(folder / name)
        elif of and run:
            found.append(one)
    return found


def _name(entry: str, run: str) -> str:
    return f"{entry}.{hashlib.sha256(run.encode()).hexdigest()[:16]}"


def _read(path: Path, entry: str, now: float) -> Booking | None:
    """None when it does not count, or not any more."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        age = now - os.fstat(handle).st_mtime
        raw = os.read(handle, _MOST_BYTES)
    except OSError:
        return None
    finally:
        os.close(handle)
    who, seconds = "somebody", LONGEST_BOOK_SECONDS if not entry else 0.0
    with contextlib.suppress(ValueError, KeyError, TypeError):
        told = json.loads(raw)
        who, seconds = str(told["who"])[:_WHO_LETTERS], float(told["seconds"])
    # Somebody's clock, or hand, may have set a time that is to come: that would count for ever.
    left = min(seconds, LONGEST_BOOK_SECONDS) - abs(age)
    return Booking(entry, who, left) if left > 0 else None
