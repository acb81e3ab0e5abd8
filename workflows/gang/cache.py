"""The volume of the dataset cache, as Kubernetes has it, and where it is mounted."""

from __future__ import annotations

from typing import Any, Final

from argosy.workflows.spec.dataset_cache import DatasetCache
from argosy.workflows.spec.run import TrainingRun

CACHE_MOUNT: Final = "/argosy/cache"
CACHE_VOLUME: Final = "cache"
PROFILE_LABEL: Final = "argosy.dev/profile"


def cache_path(run: TrainingRun) -> str:
    """Folder of the cache in a pod; empty when there is none: mode ``node`` on the pod's own disk, or ``stream``."""
    if run.dataset is None:
        return ""
    if run.dataset.cache is not None:
        return CACHE_MOUNT
    return f"{run.storage.mount_path}/staged" if run.dataset.staging == "shared" else ""


def cache_arguments(run: TrainingRun) -> dict[str, Any]:
    """How a step uses the cache, in the words of its arguments; the defaults are left out."""
    cache = run.dataset.cache if run.dataset is not None else None
    if cache is None:
        return {}
    given = {
        "cache_gib": float(cache.size_gib) if cache.size_gib else None,
        "cache_verify": "" if cache.verify == "stat" else cache.verify,
        "cache_access": "read-only" if cache.read_only else "",
    }
    return {name: value for name, value in given.items() if value}


def cache_volume(run: TrainingRun) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(volumes, mounts) of ``[dataset.cache]``; empty without one."""
    if run.dataset is None or run.dataset.cache is None:
        return [], []
    cache = run.dataset.cache
    read_only = {"readOnly": True} if cache.read_only else {}
    mount = {"name": CACHE_VOLUME, "mountPath": CACHE_MOUNT, **read_only}
    return [{"name": CACHE_VOLUME, **_source(cache)}], [mount]


def _source(cache: DatasetCache) -> dict[str, Any]:
    if cache.host_path:
        # Not DirectoryOrCreate: the kubelet would make it for root, and our user could not write.
        return {"hostPath": {"path": cache.host_path, "type": "Directory"}}
    if cache.claim:
        read_only = {"readOnly": True} if cache.read_only else {}
        return {"persistentVolumeClaim": {"claimName": cache.claim, **read_only}}
    storage_class = {"storageClassName": cache.storage_class} if cache.storage_class else {}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        **storage_class,
        "resources": {"requests": {"storage": cache.ephemeral}},
    }
    return {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}


def profile_labels(run: TrainingRun) -> dict[str, str]:
    """Marks pods that Pod Security "restricted" refuses, so that a policy can tell them."""
    if run.fabric.privileges:
        return {PROFILE_LABEL: "privileged"}
    marked = run.dataset is not None and run.dataset.cache is not None and run.dataset.cache.host_path
    return {PROFILE_LABEL: "host-path"} if marked else {}
