"""Filling an entry: one process at a time, whoever asks; when it dies the next one goes on where it was."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.cache.content import Content
from argosy.steps.data.cache.entry import size_text
from argosy.steps.data.cache.lease import Lease, Seen
from argosy.steps.data.cache.room import Wanted, make_room
from argosy.steps.data.cache.root import CacheRoot
from argosy.steps.data.cache.seed import seed
from argosy.steps.data.cache.waiting import Waiting
from argosy.steps.data.staging import StageProgress, StageResult

Progress = Callable[[StageProgress], None]
_NOTE_SECONDS = 1.0


def fill(
    root: CacheRoot, content: Content, cap_bytes: int, who: str, on_progress: Progress, waiting: Waiting
) -> StageResult:
    """Make the entry whole, by another process's work if one is at it.

    Raises:
        StepError: what ``stage_objects`` raises; ``disk_full`` with the names of who holds the room.
    """
    began = time.monotonic()
    path = root.path / content.entry
    with _turn(root, content.entry, who, waiting) as (lease, waited):
        if waited and content.is_whole(path):
            return content.reused(began)
        seed(root, content, waiting)
        wanted = Wanted(content.entry, content.label, cap_bytes)
        make_room(root, wanted, lease, waiting)
        with contextlib.suppress(_Full):
            return _fetch(content, path, lease, on_progress)
        # Another filler may just have tried how much it can get.
        make_room(root, wanted, lease, waiting)
        while True:
            try:
                return _fetch(content, path, lease, on_progress)
            except _Full as full:
                # Others write to the volume too, and a quota shows only when it is reached. Each round evicts.
                make_room(root, wanted, lease, waiting, refused=str(full))


class _Full(Exception):
    """The volume took no more, whatever it said before."""


def _fetch(content: Content, path: Path, lease: Lease, on_progress: Progress) -> StageResult:
    try:
        return content.fetch(path, _noting(lease, on_progress))
    except StepError as error:
        if error.cause != Cause.DISK_FULL:
            raise
        raise _Full(str(error)) from error


@contextlib.contextmanager
def _turn(root: CacheRoot, entry: str, who: str, waiting: Waiting) -> Iterator[tuple[Lease, bool]]:
    """Our lease as the only filler, and whether we had to wait for it."""
    waited = False
    while True:
        other = _filler(root, entry)
        if other is None:
            lease = root.take(entry, "fill", who)
            # Looked for again after ours can be seen: of two that began together none overlooks the other.
            other = _filler(root, entry, lease)
            if other is None:
                break
            lease.release()
        waited = True
        held = other.holder
        so_far = f", which has {size_text(held.done)} of {size_text(held.planned)}" if held.planned else ""
        waiting.pause(
            f"fill {other.token}", f"waiting for {held} that is fetching {entry[:12]} into {root.path}{so_far}"
        )
    with lease:
        yield lease, waited


def _filler(root: CacheRoot, entry: str, mine: Lease | None = None) -> Seen | None:
    return next((seen for seen in root.living(entry, besides=mine) if seen.kind == "fill"), None)


def _noting(lease: Lease, on_progress: Progress) -> Progress:
    """Progress that others see too: what is done is no longer room that will be taken."""
    next_note = 0.0

    def tell(now: StageProgress) -> None:
        nonlocal next_note
        if time.monotonic() >= next_note:
            next_note = time.monotonic() + _NOTE_SECONDS
            lease.note(planned=now.bytes_total, objects=now.objects_total - now.objects, done=now.bytes)
        on_progress(now)

    return tell
