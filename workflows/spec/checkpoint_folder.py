"""Where a script of mode opaque writes its checkpoints: below the code, or on a volume that its nodes share."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import AfterValidator

from argosy.workflows.spec.pod import Volume
from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.storage import is_below
from argosy.workflows.spec.texts import check_line, check_relative

_RUN = "{run_id}"
_OF_THE_POD = frozenset(("emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected"))
"""Volumes that nobody writes to but the pod, and that end with it."""


def _check_path(text: str) -> str:
    parts = text.split("/")
    at = next((number for number, part in enumerate(parts) if "*" in part), None)
    if at is not None:
        folder, glob = "/".join(parts[:at]) or ".", "/".join(parts[at:])
        raise Refusal("is a folder, and no glob", f'write path = "{folder}" and include = ["{glob}"]')
    if not text.startswith("/"):
        return check_relative(text)
    check_line(text)
    if posixpath.normpath(text) != text or _RUN not in text.split("/") or "{" in text.replace(_RUN, ""):
        # What lies there and is in no checkpoint is removed before each start of the ranks, the first one too.
        raise Refusal(
            f"must be a folder of this run alone, with {_RUN} in its path, or relative to the code folder",
            f'write for example "/mnt/shared/{_RUN}"',
        )
    return text


def is_of_pod(source: Iterable[str]) -> bool:
    """Whether the ``source`` of a volume is the pod's own: what lies there is no other run's."""
    return not _OF_THE_POD.isdisjoint(source)


CheckpointFolder = Annotated[str, AfterValidator(_check_path)]


def check_volume(
    path: str, working_dir: str, volumes: Sequence[Volume], claim: str, store: str, *, every: bool
) -> None:
    """That an absolute ``path`` lies on a volume, and that a relative one holds nothing but this pod's files.

    ``claim``: where the store's claim is mounted, ``store``: the folder of the store on it; "" for neither. ``every``:
    each node is to have a folder of its own.

    Raises:
        Refusal: naming ``checkpoint.path``.
    """
    if path.startswith("/"):
        writable = [volume.mount_path for volume in volumes if not volume.read_only]
        if not is_below(path, *writable, *filter(None, [claim])) or (store and is_below(path, store)):
            rule = "lies on no volume that the gang's pods may write to"
            raise Refusal(rule, "add it to [[gang.pod.volumes]]", field="checkpoint.path", value=path)
        of_node = [each.mount_path for each in volumes if is_of_pod(each.source) or "hostPath" in each.source]
        if every and not is_below(path, *of_node):
            # A node restores its own files and removes the others': here those that its peers have just restored.
            rule = 'lies on a volume that the nodes share, but with writers = "every" each has a folder of its own'
            raise Refusal(rule, 'write writers = "first"', field="checkpoint.path", value=path)
    elif path and working_dir:
        folder = posixpath.normpath(posixpath.join(working_dir, path))
        holding = [volume for volume in volumes if is_below(folder, volume.mount_path)]
        inside = [volume for volume in volumes if is_below(volume.mount_path, folder)]
        for volume in (*sorted(holding, key=lambda each: len(each.mount_path))[-1:], *inside):
            if volume.read_only or is_of_pod(volume.source):
                continue
            raise Refusal(
                f"lies on the volume {volume.name!r}, where what is in no checkpoint of this run would be removed",
                f'give the run a folder of its own, as in "{volume.mount_path}/{_RUN}"',
                field="checkpoint.path",
                value=path,
            )
