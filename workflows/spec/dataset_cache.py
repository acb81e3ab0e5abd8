"""Where staged datasets stay when a pod ends, so that the next one need not fetch them."""

from __future__ import annotations

import posixpath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.storage import is_below
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import KubeName, Number, Quantity, check_line

_SYSTEM = ("/dev", "/proc", "/sys", "/etc", "/run", "/boot", "/usr", "/var/run", "/var/lib/kubelet")


def _check_host_path(path: str) -> str:
    if path and (not path.startswith("/") or posixpath.normpath(path) != path or path == "/"):
        raise Refusal("must be an absolute folder below '/'", 'write for example "/mnt/nvme/argosy"')
    if is_below(path, *_SYSTEM):
        raise Refusal("belongs to the node's system", 'name a folder made for this, for example "/mnt/nvme/argosy"')
    return check_line(path)


class DatasetCache(Table):
    """``[dataset.cache]``: one volume, by exactly one of claim, host_path and ephemeral."""

    claim: KubeName = Field(
        default="",
        description="PersistentVolumeClaim that holds the cache. Its volume may be shared by nodes (each dataset is "
        "fetched once for all), or be a folder of each node's own disk (docs/dataset-cache.md shows one); on one "
        "machine a folder below .argosy/volumes.",
    )
    host_path: Annotated[str, AfterValidator(_check_host_path)] = Field(
        default="",
        description="Existing folder of each node, writable by user 1000, mounted as a hostPath volume. Pod Security "
        "baseline and restricted refuse such pods; they are labelled argosy.dev/profile = host-path. On one machine a "
        "folder below .argosy/disks for each node.",
    )
    ephemeral: Quantity | None = Field(
        default=None,
        description="Size of a volume made for each pod and removed with it, bytes: for data larger than the node's "
        "own disk. It is kept over restarts inside a pod only.",
    )
    storage_class: KubeName = Field(
        default="", description="StorageClass of the ephemeral volume. Empty: the cluster's default."
    )
    size_gib: Annotated[Number, Field(ge=0)] = Field(
        default=0.0,
        description="What all datasets in the cache may take together, GiB; 0: what the volume has. Datasets that "
        "nobody uses are removed when room is needed, the least recently used first.",
    )
    verify: Literal["none", "stat", "full"] = Field(
        default="stat",
        description="What is checked before a dataset that lies in the cache is used again. none: it was marked as "
        "whole. stat: every file is there in its size. full: every file is read and compared.",
    )
    read_only: bool = Field(
        default=False,
        description="Mount the volume read-only: a dataset that lies there whole is used, any other ends the run.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in ("claim", "host_path", "ephemeral") if getattr(self, name)]
        if len(given) != 1:
            said = (
                "none of claim, host_path and ephemeral is given" if not given else f"{' and '.join(given)} are given"
            )
            raise Refusal(f"{said}; a cache lies on one volume", 'write for example claim = "dataset-cache"')
        if self.storage_class and not self.ephemeral:
            raise Refusal(
                "has an effect with ephemeral only", "remove it", field="storage_class", value=self.storage_class
            )
        if self.read_only and self.ephemeral:
            raise Refusal("nothing ever lies on a new volume", "remove it", field="read_only", value=True)
        return self
