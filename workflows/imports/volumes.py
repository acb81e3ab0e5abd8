"""Volumes and mounts, into ``[[gang.pod.volumes]]`` and ``gang.shm_size``."""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.workflows.fabric.profile import OWN_VOLUMES
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod

_MOUNT: Final = ("name", "mountPath", "subPath", "readOnly")
_PLAIN_SHM: Final = re.compile(r"/(dev|run)/shm|/dev")


def take_volumes(pod: Pod, container: Container, draft: Draft, account: Account) -> None:
    """Write the volumes that the training container mounts."""
    paths: set[str] = set()
    mounted: set[str] = set()
    for mount in container.node["volumeMounts"]:
        name, path = mount["name"].text, mount["mountPath"].text.rstrip("/")
        volume = pod.volumes.get(name)
        if volume is None:
            if mount:
                account.lost(mount, f"there is no volume {name!r}")
        elif _PLAIN_SHM.fullmatch(path):
            mounted.add(name)
            _shared_memory(volume, mount, draft, account)
        elif mount["subPathExpr"] or mount["mountPropagation"].text not in ("", "None"):
            account.lost(mount, "of a mount only subPath and readOnly can be said")
        elif path in paths:
            account.lost(mount, f"{path} is mounted twice")
        elif _take(name, path, mount, volume, draft, account):
            paths.add(path)
            mounted.add(name)
    for name, volume in pod.volumes.items():
        if name not in mounted:
            account.lost(volume, "the training container does not mount it")
    account.lost(container.node["volumeDevices"], "a run mounts file systems only")


def _take(name: str, path: str, mount: Node, volume: Node, draft: Draft, account: Account) -> bool:
    sources = {key: value for key, value in volume.entries.items() if key != "name" and value.is_mapping}
    if len(sources) != 1:
        account.by_hand(volume, "it must say one kind of volume")
        return False
    kind, held = next(iter(sources.items()))
    field: dict[str, Any] = {"name": name if name not in OWN_VOLUMES else f"user-{name}", "mount_path": path}
    if mount["subPath"].is_scalar:
        field["sub_path"] = mount["subPath"].text
    if mount["readOnly"].flag:
        field["read_only"] = True
    draft.append("gang.pod.volumes", {**field, "source": {kind: without_nulls(held.data)}}, mount)
    for key in _MOUNT:
        if mount[key].is_scalar and (key != "readOnly" or mount[key].flag is not None):
            account.kept(mount[key], "gang.pod.volumes")
    account.kept(volume["name"], "gang.pod.volumes")
    account.kept(held, "gang.pod.volumes")
    _needs(volume, account)
    return True


def take_back_volumes(pod: Pod, container: Container, draft: Draft, account: Account) -> None:
    """Nothing of a volume is kept whose every mount the run refused."""
    held = {each["name"] for each in draft.get("gang.pod.volumes", [])}
    for mount in container.node["volumeMounts"]:
        name, path = mount["name"].text, mount["mountPath"].text.rstrip("/")
        volume = pod.volumes.get(name)
        if volume is None or _PLAIN_SHM.fullmatch(path) or held & {name, f"user-{name}"}:
            continue
        account.take_back(volume)
        account.by_hand(volume, "the run has no mount of it: see there")


def without_nulls(value: Any) -> Any:
    """The value as Kubernetes reads it: a key that is null is not there; TOML has no null."""
    if isinstance(value, dict):
        return {key: without_nulls(below) for key, below in value.items() if below is not None}
    if isinstance(value, list):
        return [without_nulls(below) for below in value if below is not None]
    return value


def _needs(volume: Node, account: Account) -> None:
    claim = volume.at("persistentVolumeClaim.claimName")
    if claim:
        account.advise(claim, f"PersistentVolumeClaim {claim.text!r} must be in the namespace; every node mounts it")
    if volume["hostPath"]:
        account.advise(volume["hostPath"], "hostPath needs a namespace with Pod Security privileged")


def _shared_memory(volume: Node, mount: Node, draft: Draft, account: Account) -> None:
    empty = volume["emptyDir"]
    size = empty["sizeLimit"]
    if size.is_scalar:
        draft.put("gang.shm_size", size.text, size)
        account.kept(size, "gang.shm_size")
        account.kept(empty["medium"], "gang.shm_size")
    else:
        why = "every pod has its own /dev/shm in memory: see gang.shm_size (1Gi)"
        account.changed(empty if empty.exists else volume, why, "gang.shm_size")
    account.kept(volume["name"], "gang.shm_size")
    for key in ("name", "mountPath"):
        account.kept(mount[key], "gang.shm_size")
