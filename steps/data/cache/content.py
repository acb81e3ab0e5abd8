"""What an entry must hold, and whether it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.cache.entry import Label, entry_name
from argosy.steps.data.folder import read_staged
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.plan import share_digest
from argosy.steps.data.staging import StageProgress, StageResult, check_staged, stage_objects

Depth = Literal["none", "stat", "full"]
DEPTHS: tuple[Depth, ...] = ("none", "stat", "full")


@dataclass(frozen=True)
class Content:
    """``objects`` of a dataset, and how deep they are verified before they are used again.

    ``none``: the marker says that the folder is whole. ``stat``: every file is there in its size. ``full``: every
    file is read and has the content that was recorded.
    """

    manifest: DatasetManifest
    objects: Sequence[DataObject]
    verify: Depth

    @property
    def entry(self) -> str:
        """The entry's name."""
        return entry_name(self.manifest, self.objects)

    @property
    def label(self) -> Label:
        """What is said of the entry."""
        return Label(self.manifest.uri, sum(one.size for one in self.objects), len(self.objects))

    def check(self, path: Path) -> None:
        """Confirm that ``path`` holds it whole, without a write or a lock; depth ``full`` stops at ``stat`` here.

        Raises:
            StepError: ``volume_mount`` when it is not whole, ``data_corrupt`` when a file is gone or damaged.
        """
        if self.verify != "none":
            check_staged(self.manifest, self.objects, path)
            return
        marker, _ = read_staged(path)
        share = None if marker is None else (marker.dataset_digest, marker.share)
        if share != (self.manifest.digest, share_digest(self.objects)):
            raise StepError(Cause.VOLUME_MOUNT, f"{path} is not whole")

    def is_whole(self, path: Path) -> bool:
        """:meth:`check` as a question."""
        try:
            self.check(path)
        except StepError:
            return False
        return True

    def fetch(self, path: Path, on_progress: Callable[[StageProgress], None]) -> StageResult:
        """Fetch what is missing or damaged in ``path``; see :func:`argosy.steps.data.staging.stage_objects`."""
        depth: Literal["stat", "full"] = "full" if self.verify == "full" else "stat"
        return stage_objects(self.manifest, self.objects, path, on_progress=on_progress, verify=depth)

    def reused(self, began: float) -> StageResult:
        """The result when nothing had to be fetched; ``began`` by the monotonic clock."""
        label = self.label
        return StageResult(label.size, 0, time.monotonic() - began, label.objects, 0)
