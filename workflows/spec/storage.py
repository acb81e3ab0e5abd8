"""Where a run's checkpoints, manifests, records and pointers lie."""

from __future__ import annotations

import posixpath
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field

from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import KubeName, StoreUri, check_line

POD_FOLDER = "/argosy"
"""Everything below is on the pod's own disk: gone with the pod, and different in every pod."""


def _check_mount(path: str) -> str:
    if not path.startswith("/") or posixpath.normpath(path) != path or path == "/":
        raise Refusal("must be an absolute folder below '/'", 'write for example "/mnt/argosy"')
    if is_below(path, POD_FOLDER, "/dev", "/proc", "/sys", "/etc", "/var/run"):
        raise Refusal(
            "is a folder that every pod has for itself", 'mount the volume elsewhere, for example "/mnt/argosy"'
        )
    return check_line(path)


def is_below(path: str, *folders: str) -> bool:
    """Whether ``path`` is one of the folders or lies in one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def file_path(uri: str) -> str | None:
    """The path of a ``file://`` uri; None for any other."""
    return posixpath.normpath(unquote(urlsplit(uri).path)) if uri.startswith("file:") else None


class Storage(Table):
    """``[storage]``: the run's store, and the volume it lies on when it is a ``file://`` one."""

    uri: StoreUri = Field(
        default="file:///mnt/argosy/store",
        description="Root of the store: s3://bucket/prefix, gs://, az:// or file:///path. file:// must lie on a "
        "volume that every pod mounts (see claim).",
        min_length=1,
    )
    claim: KubeName = Field(
        default="argosy",
        description="PersistentVolumeClaim (ReadWriteMany) mounted in every pod when a file:// uri lies below "
        "mount_path, or dataset.staging is shared and there is no [dataset.cache]; on one machine a folder below "
        ".argosy/volumes.",
        min_length=1,
    )
    mount_path: Annotated[str, AfterValidator(_check_mount)] = Field(
        default="/mnt/argosy", description="Folder in every pod at which the claim is mounted."
    )

    def holds(self, uri: str) -> bool:
        """Whether ``uri`` is a ``file://`` one on the claim."""
        path = file_path(uri)
        return path is not None and is_below(path, self.mount_path)
