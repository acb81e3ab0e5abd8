"""Use a dataset through a cache: ``with use(...) as used:`` gives a folder that is whole and stays."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Self, cast

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.cache.content import Content
from argosy.steps.data.cache.fill import Progress, fill
from argosy.steps.data.cache.root import CacheRoot
from argosy.steps.data.cache.waiting import Waiting
from argosy.steps.data.manifest import DatasetManifest, Objects
from argosy.steps.data.staging import StageProgress, StageResult
from argosy.steps.data.survey import DEPTHS, Depth

GIB = 1 << 30


@dataclass(frozen=True)
class Cache:
    """Where a cache lies and how it is used: ``size_gib`` limits all its entries together, 0: the volume alone does."""

    path: Path
    size_gib: float = 0.0
    verify: Depth = "stat"
    read_only: bool = False

    @classmethod
    def of(cls, path: Path, size_gib: float | None, verify: str, access: str) -> Self:
        """From the arguments of a step, where None and empty text stand for the default.

        Raises:
            InputError: a negative limit, an unknown depth or access.
        """
        limit = size_gib or 0.0
        if limit < 0:
            raise InputError(f"cache-gib = {limit:g}: write a number of GiB, 0 for no limit")
        if (verify or "stat") not in DEPTHS:
            raise InputError(f"cache-verify = {verify!r}: use {', '.join(DEPTHS)}")
        if access not in ("", "read-only"):
            raise InputError(f"cache-access = {access!r}: use read-only, or leave it out")
        return cls(path, limit, cast(Depth, verify or "stat"), access == "read-only")


@dataclass(frozen=True)
class Used:
    """A staged folder that is whole, and what it took to make it so."""

    path: Path
    result: StageResult


@contextlib.contextmanager
def use(
    cache: Cache,
    manifest: DatasetManifest,
    objects: Objects,
    *,
    who: str,
    on_progress: Callable[[StageProgress], None] | None = None,
    go_on: Callable[[], None] = lambda: None,
    run: str = "",
    book_seconds: float = 0.0,
) -> Iterator[Used]:
    """A folder with ``objects`` at their keys, fetched if it is not there; nobody evicts it inside the ``with``.

    ``who`` is what others are told whom they wait for. ``go_on`` is called while waiting and may raise to give up.
    A cache that cannot be written is used when it holds the dataset. ``book_seconds`` above 0: it is kept for ``run``
    for so long afterwards (:mod:`argosy.steps.data.cache.booking`); else what ``run`` had booked is redeemed.

    Raises:
        StepError: ``volume_mount`` when a cache that cannot be written does not hold it, or the volume fails;
            ``disk_full`` with the names of who holds the room; and what ``stage_objects`` raises.
        InputError: a key breaks a rule, or somebody else's files lie where the entry belongs.
    """
    content, waiting = Content(manifest, objects, cache.verify), Waiting(go_on)
    with contextlib.ExitStack() as stack:
        try:
            root = stack.enter_context(CacheRoot(cache.path, read_only=cache.read_only))
            used = stack.enter_context(_using(root, content, cache, who, on_progress or _silent, waiting))
            if run and not root.read_only_because:
                _book(root, content.entry, run, who, book_seconds, waiting)
        except OSError as error:
            cause = Cause.DISK_FULL if error.errno in (ENOSPC, EDQUOT) else Cause.VOLUME_MOUNT
            text = f"cannot use the cache {cache.path}: {error.strerror}"
            raise StepError(cause, text, quote=str(error)) from error
        yield used


def _book(root: CacheRoot, entry: str, run: str, who: str, seconds: float, waiting: Waiting) -> None:
    if seconds <= 0:
        # Only now: until our lease is seen and no evictor is at it, the booking is what keeps the entry.
        root.redeem(entry, run)
        return
    try:
        root.book(entry, run, who, seconds)
    except OSError as error:  # a volume that is full to the last byte holds the dataset all the same
        waiting.say(f"cannot keep {entry[:12]} in {root.path} for {run}: {error.strerror}")


def _silent(_: StageProgress) -> None:
    return


@contextlib.contextmanager
def _using(
    root: CacheRoot, content: Content, cache: Cache, who: str, on_progress: Progress, waiting: Waiting
) -> Iterator[Used]:
    began, entry, path = time.monotonic(), content.entry, root.path / content.entry
    if root.read_only_because:
        with root.held(entry, waiting):
            _check_read_only(root, content)
            yield Used(path, content.reused(began))
        return
    with root.take(entry, "use", who) as lease, root.held(entry, waiting):
        while any(seen.kind == "evict" for seen in root.living(entry, besides=lease)):
            waiting.pause(f"evict {entry}", f"waiting for the eviction of {entry[:12]} from {root.path}", after=1.0)
        root.touch(entry)
        if content.is_whole(path):
            result = content.reused(began)
            on_progress(StageProgress(result.objects, result.objects, result.bytes, result.bytes, result.seconds))
        else:
            result = fill(root, content, int(cache.size_gib * GIB), who, on_progress, waiting)
        try:
            # The time that went by while another process was at it was spent for the data too.
            yield Used(path, replace(result, seconds=time.monotonic() - began))
        finally:
            root.touch(entry)


def _check_read_only(root: CacheRoot, content: Content) -> None:
    try:
        content.check(root.path / content.entry)
    except StepError as error:
        text = (
            f"the cache {root.path} cannot be written ({root.read_only_because}) and does not hold the dataset "
            f"{content.entry[:12]} of {content.manifest.uri} whole ({error}): fill it from a pod that mounts it "
            "writable, or mount it writable here"
        )
        raise StepError(error.cause, text, quote=error.quote) from error
