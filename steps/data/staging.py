"""Bring objects to disk: in parallel, verified, resumable inside objects, published with the marker last."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from errno import EDQUOT, ENOSPC
from pathlib import Path

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.folder import StagedFolder, foreign, marker_of
from argosy.steps.data.keys import check_keys
from argosy.steps.data.manifest import DatasetManifest, Objects
from argosy.steps.data.marker import Marker, read_marker, remove_marker
from argosy.steps.data.parts import Parts
from argosy.steps.data.records import record_of
from argosy.steps.data.rows import Rows, boot, keep_only, known_rows, rows_of
from argosy.steps.data.strays import first_foreign, remove_strays
from argosy.steps.data.survey import DEPTHS, Depth, Survey, Surveyor, all_intact
from argosy.steps.data.tree import Tree
from argosy.steps.data.wanted import Wanted, wanted_of


@dataclass(frozen=True)
class StageProgress:
    """How far staging is; bytes in flight count, and so does what was already there. Seconds since the start.

    ``fetched_bytes``: what came by now, so that a rate can be told from what was found.
    """

    objects: int
    objects_total: int
    bytes: int
    bytes_total: int
    seconds: float
    fetched_bytes: int = 0


@dataclass(frozen=True)
class StageResult:
    """What lies in the folder now, and what of it had to be fetched."""

    bytes: int
    fetched_bytes: int
    seconds: float
    objects: int
    fetched_objects: int
    removed: int = 0
    """Files that had been staged there and are none of its objects any more."""


def stage_objects(
    manifest: DatasetManifest,
    objects: Objects,
    into: Path,
    *,
    on_progress: Callable[[StageProgress], None] | None = None,
    verify: Depth = "stat",
    workers: int | None = None,
    guarded: bool = False,
) -> StageResult:
    """Put ``objects`` of ``manifest`` (it itself: all) at ``into/<key>``; write the marker when all of them are there.

    Each object is read in the version the manifest pins; size and checksum are compared with what manifest and store
    say, and our own CRC-64/NVME is recorded. Files of an earlier staging are used again when they are of the same
    version and pass ``verify``: ``stat`` compares size and mtime, ``full`` reads them and compares the checksum,
    ``none`` looks at no file of a folder whose marker says that it is whole. When another share was staged here
    before, what does not belong to this one is removed. A killed staging is resumed, large objects inside.
    ``into`` belongs to staging. ``workers``: processes that fetch; None: as many as make sense here. ``guarded``:
    refuse rather than remove what somebody else put there since; a pod's disk holds nothing that anybody would miss.

    Raises:
        InputError: a key breaks a rule, ``into`` holds somebody else's files, or an unknown ``verify``.
        StepError: ``disk_full`` before the first byte (78) or later (75), ``s3_missing`` when the dataset changed,
            ``data_corrupt`` when bytes are not what was recorded, or what the store reported.
    """
    if verify not in DEPTHS:
        raise InputError(f"verify = {verify!r}: use {', '.join(DEPTHS)}")
    began = time.monotonic()
    wanted = wanted_of(objects)
    marker = Marker(manifest.digest, wanted.digest, wanted.count, wanted.total_bytes)
    if marker_of(into) != marker:
        check_keys(one.key for one in wanted)
    try:
        with StagedFolder(into) as folder:
            return _Staging(manifest.uri, wanted, marker, folder, on_progress, verify, workers, began, guarded).run()
    except OSError as error:
        cause = Cause.DISK_FULL if error.errno in (ENOSPC, EDQUOT) else Cause.VOLUME_MOUNT
        raise StepError(cause, f"cannot stage into {into}: {error.strerror}", quote=str(error)) from error


@dataclass
class _Staging:
    """One call of :func:`stage_objects`, with the lock of the folder held."""

    uri: str
    wanted: Wanted
    marker: Marker
    folder: StagedFolder
    on_progress: Callable[[StageProgress], None] | None
    verify: Depth
    workers: int | None
    began: float
    guarded: bool

    def run(self) -> StageResult:
        fetched_bytes = fetched = removed = 0
        before = read_marker(self.folder.state)
        if before != self.marker or not self._is_intact():
            fetched_bytes, fetched, removed = self._make_whole(before)
        self._report(self.wanted.count, self.wanted.total_bytes, fetched_bytes)
        seconds = time.monotonic() - self.began
        return StageResult(self.wanted.total_bytes, fetched_bytes, seconds, self.wanted.count, fetched, removed)

    def _is_intact(self) -> bool:
        folder = self.folder
        rows = rows_of(folder.state, self.wanted.digest)
        with Tree(folder.root, folder.path) as tree, contextlib.closing(rows):
            return all_intact(tree, rows, self.wanted.count, self.verify)

    def _make_whole(self, before: Marker | None) -> tuple[int, int, int]:
        from argosy.steps.data.room import check_room  # only here, and in the next two, what a whole folder needs not

        folder, now = self.folder, boot()
        if self.guarded and before != self.marker:
            self._refuse_foreign()
        remove_marker(folder.state)
        parts = Parts(folder.parts, self.uri)
        known = known_rows(folder.state, now, before.share if before is not None else "")
        with Tree(folder.root, folder.path) as tree, Rows(folder.state, self.wanted.digest, now) as rows:
            with contextlib.closing(known):
                surveyor = Surveyor(tree, parts, self.verify, self._report_survey)
                found = surveyor.survey(self.wanted, known, rows)
            tree.forget()
            parts.sweep()
            kept = before == self.marker
            removed = 0 if kept else remove_strays(folder.root, (one.key for one in self.wanted))
            check_room(folder, found.missing_room - parts.allocated(), found.missing)
            fetched = self._fetch(found, tree, parts, rows) if found.missing else 0
        self._complete()
        return fetched, found.missing, removed

    def _refuse_foreign(self) -> None:
        known = known_rows(self.folder.state, "", "")
        with contextlib.closing(known):
            records = (record_of(row.line) for row in known)
            found = first_foreign(self.folder.root, (record.key for record in records if record is not None))
        if found:
            raise foreign(self.folder.path, found)

    def _fetch(self, found: Survey, tree: Tree, parts: Parts, rows: Rows) -> int:
        from argosy.steps.transfer.pool import FetchPool

        try:
            with FetchPool(self.uri, parts.handle, workers=self.workers) as pool:
                from argosy.steps.data.fetching import Destination, Fetching  # while the workers start

                def tell() -> None:
                    came = fetching.bytes + pool.bytes_in_flight
                    objects = len(found.present) - found.missing + fetching.objects
                    self._report(objects, found.present_bytes + came, came - fetching.resumed)

                fetching = Fetching(self.uri, pool, Destination(tree, parts, rows), tell)
                fetching.run(self.wanted, found.present)
        except BaseException:
            parts.sweep_unmarked()
            raise
        return fetching.bytes - fetching.resumed

    def _report_survey(self, found: Survey) -> None:
        self._report(len(found.present) - found.missing, found.present_bytes)

    def _complete(self) -> None:
        from argosy.steps.data.kernel import sync_file_system

        keep_only(self.folder.state, self.wanted.digest)
        sync_file_system(self.folder.root)
        self.marker.write(self.folder.state)

    def _report(self, objects: int, done: int, fetched: int = 0) -> None:
        if self.on_progress is not None:
            count, total = self.wanted.count, self.wanted.total_bytes
            seconds = time.monotonic() - self.began
            self.on_progress(StageProgress(objects, count, min(done, total), total, seconds, fetched))
