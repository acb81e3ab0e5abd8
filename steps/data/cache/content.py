"""What an entry must hold, and whether it does."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.cache.entry import Label, entry_name
from argosy.steps.data.folder import marker_of
from argosy.steps.data.keys import STATE_FOLDER
from argosy.steps.data.manifest import DatasetManifest, Objects
from argosy.steps.data.marker import Marker
from argosy.steps.data.rows import rows_of
from argosy.steps.data.staging import StageProgress, StageResult, stage_objects
from argosy.steps.data.state_files import FOLDER
from argosy.steps.data.survey import Depth, all_intact
from argosy.steps.data.tree import Tree
from argosy.steps.data.wanted import Wanted, wanted_of


@dataclass(frozen=True)
class Content:
    """``objects`` of a dataset, and how deep they are verified before they are used again.

    ``none``: the marker says that the folder is whole. ``stat``: every file has the size and mtime that staging left.
    ``full``: every file is read and has the checksum that was recorded.
    """

    manifest: DatasetManifest
    objects: Objects
    verify: Depth

    @cached_property
    def wanted(self) -> Wanted:
        """The objects by key, counted, with their digest."""
        return wanted_of(self.objects)

    @property
    def entry(self) -> str:
        """The entry's name."""
        return entry_name(self.manifest, self.wanted.digest)

    @property
    def label(self) -> Label:
        """What is said of the entry."""
        return Label(self.manifest.uri, self.wanted.total_bytes, self.wanted.count)

    def check(self, path: Path) -> None:
        """Confirm that ``path`` holds it whole, without a write or a lock.

        Raises:
            StepError: ``volume_mount`` when it is not whole, ``data_corrupt`` when a file is gone or damaged.
        """
        wanted = self.wanted
        if marker_of(path) != Marker(self.manifest.digest, wanted.digest, wanted.count, wanted.total_bytes):
            raise StepError(Cause.VOLUME_MOUNT, "there is no finished staging of it")
        if self.verify != "none" and not self._is_intact(path):
            raise StepError(Cause.DATA_CORRUPT, "a file is gone or not what was staged")

    def _is_intact(self, path: Path) -> bool:
        with contextlib.ExitStack() as stack:
            try:
                root = os.open(path, FOLDER)
                stack.callback(os.close, root)
                state = os.open(STATE_FOLDER, FOLDER, dir_fd=root)
                stack.callback(os.close, state)
            except OSError:
                return False
            tree = stack.enter_context(Tree(root, path))
            rows = stack.enter_context(contextlib.closing(rows_of(state, self.wanted.digest)))
            return all_intact(tree, rows, self.wanted.count, self.verify)

    def is_whole(self, path: Path) -> bool:
        """:meth:`check` as a question."""
        try:
            self.check(path)
        except StepError:
            return False
        return True

    def fetch(self, path: Path, on_progress: Callable[[StageProgress], None]) -> StageResult:
        """Fetch what is missing or damaged in ``path``; see :func:`argosy.steps.data.staging.stage_objects`."""
        return stage_objects(self.manifest, self.objects, path, on_progress=on_progress, verify=self.verify)

    def reused(self, began: float) -> StageResult:
        """The result when nothing had to be fetched; ``began`` by the monotonic clock."""
        label = self.label
        return StageResult(label.size, 0, time.monotonic() - began, label.objects, 0)
