"""Bring objects to disk: in parallel, verified, resumable, published with the marker last.

What may change later without a change here: how one object is fetched (``ObjectStore.fetch``), how many at a
time, and how deep a file on disk is verified before it is used again.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from errno import EDQUOT, ENOSPC
from itertools import islice
from pathlib import Path
from typing import Literal

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.data.folder import StagedFolder, read_staged
from argosy.steps.data.keys import check_keys
from argosy.steps.data.manifest import DataObject, DatasetManifest, Objects
from argosy.steps.data.plan import share_digest
from argosy.steps.data.records import FileRecord, Marker
from argosy.steps.store import ObjectStore, StoreError, open_store

WORKERS = 16
PROGRESS_SECONDS = 0.5
ROOM_FACTOR = 1.2
"""Free space that must be there before the first byte, as a multiple of what is missing."""
_TRIES = 4
_Depth = Literal["stat", "full"]


@dataclass(frozen=True)
class StageProgress:
    """How far staging is; bytes in flight count, and so does what was already there. Seconds since the start."""

    objects: int
    objects_total: int
    bytes: int
    bytes_total: int
    seconds: float


@dataclass(frozen=True)
class StageResult:
    """What lies in the folder now, and what of it had to be fetched."""

    bytes: int
    fetched_bytes: int
    seconds: float
    objects: int
    fetched_objects: int


def shared_folder(path: Path, digest: str) -> Path:
    """Folder of one dataset on a shared volume: runs that use different datasets never meet."""
    return path / digest


def stage_objects(
    manifest: DatasetManifest,
    objects: Objects,
    into: Path,
    *,
    on_progress: Callable[[StageProgress], None] | None = None,
    verify: _Depth = "stat",
    workers: int = WORKERS,
) -> StageResult:
    """Put ``objects`` of ``manifest`` at ``into/<key>`` and write the marker when all of them are there.

    Each object is read in the version the manifest pins, its size checked and its SHA-256 recorded. Files of an
    earlier staging are used again when they are of the same version and pass ``verify``: ``stat`` compares size
    and mtime, ``full`` reads them and compares the SHA-256. When another share was staged here before, what does
    not belong to this one is removed. A killed staging is resumed object by object. ``into`` belongs to staging.

    Raises:
        InputError: a key breaks a rule, or ``into`` holds somebody else's files.
        StepError: ``disk_full`` before the first byte (78) or later (75), ``s3_missing`` when the dataset changed,
            ``data_corrupt`` when bytes are not what was recorded, or what the store reported.
    """
    check_keys(one.key for one in objects)
    try:
        with StagedFolder(into) as folder:
            return _Staging(manifest, objects, folder, on_progress, verify, workers).run()
    except OSError as error:
        cause = Cause.DISK_FULL if error.errno in (ENOSPC, EDQUOT) else Cause.VOLUME_MOUNT
        raise StepError(cause, f"cannot stage into {into}: {error.strerror}", quote=str(error)) from error


class _Staging:
    """One call of :func:`stage_objects`, with the lock of the folder held."""

    def __init__(
        self,
        manifest: DatasetManifest,
        objects: Objects,
        folder: StagedFolder,
        on_progress: Callable[[StageProgress], None] | None,
        verify: _Depth,
        workers: int,
    ) -> None:
        self._began = time.monotonic()
        self._store: ObjectStore = open_store(manifest.uri)
        self._objects = objects
        self._total = sum(one.size for one in objects)
        self._marker = Marker(manifest.digest, share_digest(objects), len(objects), self._total)
        self._folder = folder
        self._on_progress = on_progress
        self._verify = verify
        self._workers = workers
        self._known = folder.records()
        self._present: dict[str, FileRecord] = {}
        self._in_flight: set[str] = set()
        self._bytes = 0
        self._told = 0.0
        self._stop = threading.Event()

    def run(self) -> StageResult:
        was_whole = self._folder.marker() == self._marker
        missing = list(self._find_missing())
        fetched = sum(one.size for one in missing)
        if missing or not was_whole:
            self._folder.reopen(self._known.values())
            if not was_whole:
                self._folder.remove_others({one.key for one in self._objects})
            _check_room(self._folder, missing)
            self._fetch_all(missing)
            self._folder.complete(self._marker, self._present.values())
        self._report()
        seconds = time.monotonic() - self._began
        return StageResult(self._total, fetched, seconds, len(self._objects), len(missing))

    def _find_missing(self) -> Iterator[DataObject]:
        for one in self._objects:
            record = self._known.get(one.key)
            if record is not None and record.is_of(one) and self._is_intact(record):
                self._present[one.key] = record
                self._bytes += one.size
            else:
                yield one

    def _is_intact(self, record: FileRecord) -> bool:
        found = self._folder.stat(record.key)
        if found is None or (found.st_size, found.st_mtime_ns) != (record.size, record.mtime_ns):
            return False
        return self._verify == "stat" or self._folder.sha256(record.key) == record.sha256

    def _fetch_all(self, missing: list[DataObject]) -> None:
        queue = iter(enumerate(missing))
        running: set[Future[int]] = set()
        with ThreadPoolExecutor(self._workers, thread_name_prefix="stage") as pool:
            try:
                while True:
                    for number, one in islice(queue, 2 * self._workers - len(running)):
                        running.add(pool.submit(self._fetch, str(number), one))
                    if not running:
                        return
                    done, running = wait(running, timeout=PROGRESS_SECONDS, return_when=FIRST_COMPLETED)
                    self._bytes += sum(future.result() for future in done)
                    self._report_now_and_then()
            finally:
                self._stop.set()
                for future in running:
                    future.cancel()

    def _report_now_and_then(self) -> None:
        if time.monotonic() - self._told >= PROGRESS_SECONDS:
            self._told = time.monotonic()
            self._report()

    def _report(self) -> None:
        if self._on_progress is not None:
            flying = sum(self._folder.part_size(part) for part in tuple(self._in_flight))
            done = min(self._bytes + flying, self._total)
            seconds = time.monotonic() - self._began
            self._on_progress(StageProgress(len(self._present), len(self._objects), done, self._total, seconds))

    def _fetch(self, part: str, one: DataObject) -> int:
        self._in_flight.add(part)
        try:
            sha256 = self._fetch_verified(part, one)
            found = self._folder.publish(part, one.key)
        finally:
            self._in_flight.discard(part)
        record = FileRecord(one.key, one.size, one.etag, one.version, sha256, found.st_mtime_ns)
        self._folder.note(record)
        self._present[one.key] = record
        return one.size

    def _fetch_verified(self, part: str, one: DataObject) -> str:
        """Fetch until the bytes are right, twice at most; a second wrong answer is the store's."""
        record = self._known.get(one.key)
        named = one.checksum.removeprefix("sha256:") if one.checksum.startswith("sha256:") else ""
        expected = named or (record.sha256 if record is not None and record.is_of(one) else "")
        for _ in range(2):
            sha256 = self._fetch_patiently(part, one)
            size = self._folder.part_size(part)
            if size == one.size and expected in ("", sha256):
                return sha256
        found = f"{size} bytes with SHA-256 {sha256[:16]}"
        wanted = f"{one.size} bytes" + (f" with SHA-256 {expected[:16]}" if expected else "")
        raise StepError(Cause.DATA_CORRUPT, f"object {one.key!r} of {self._store.uri}: {found} came, not {wanted}")

    def _fetch_patiently(self, part: str, one: DataObject) -> str:
        for attempt in range(_TRIES):
            try:
                return self._store.fetch(one.key, self._folder.part(part), etag=one.etag)
            except StoreError as error:
                if error.cause != Cause.S3_THROTTLE or attempt == _TRIES - 1:
                    raise
            # Full jitter: the other workers and nodes met the same refusal at the same time.
            if self._stop.wait(random.uniform(0, 0.5 * 2**attempt)):
                break
        raise StepError(Cause.S3_THROTTLE, f"object {one.key!r}: given up because another object failed")


def _check_room(folder: StagedFolder, missing: Sequence[DataObject]) -> None:
    needed = int(sum(one.size for one in missing) * ROOM_FACTOR)
    free, files = folder.free()
    if needed > free:
        text = f"{folder.path} has {free} bytes free, staging needs {needed} ({ROOM_FACTOR} x what is missing)"
        raise StepError(Cause.DISK_FULL, f"{text}: give the volume more room", code=ExitCode.CONFIGURATION)
    if files is not None and len(missing) > files:
        text = f"{folder.path} has room for {files} more files, staging needs {len(missing)}"
        raise StepError(Cause.DISK_FULL, f"{text}: make a file system with more inodes", code=ExitCode.CONFIGURATION)


def check_staged(manifest: DatasetManifest, objects: Objects, path: Path) -> None:
    """Confirm that ``path`` holds these objects whole, by marker and file sizes; nothing is written or locked.

    Raises:
        StepError: ``volume_mount`` when the marker is absent or names something else, ``data_corrupt`` when a file
            is gone or has another size.
    """
    marker, records = read_staged(path)
    if marker is None or marker.dataset_digest != manifest.digest:
        found = "no finished staging" if marker is None else f"the dataset {marker.dataset_digest[:12]}"
        raise StepError(
            Cause.VOLUME_MOUNT, f"{path} holds {found}, not {manifest.digest[:12]}: is it the right volume?"
        )
    for one in objects:
        record = records.get(one.key)
        with contextlib.suppress(OSError):
            if record is not None and record.is_of(one) and (path / one.key).stat().st_size == one.size:
                continue
        raise StepError(Cause.DATA_CORRUPT, f"{one.key!r} below {path} is not what was staged: run stage again")
