"""Volumes of a pod as folders of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.workflows.engine.config_maps import ConfigMaps
from argosy.workflows.engine.document import NAME


def mounts_of(
    container: Mapping[str, Any], volumes: Sequence[Mapping[str, Any]], pod_folder: Path, claims: Path
) -> dict[str, Path]:
    """Mount path -> folder. A claim is a folder below ``claims``; an emptyDir lies in the pod's own folder."""
    by_name = {str(volume["name"]): volume for volume in volumes}
    found: dict[str, Path] = {}
    for mount in container.get("volumeMounts") or []:
        volume = by_name[str(mount["name"])]
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        base = claims / str(claim) if claim else pod_folder / "volumes" / str(mount["name"])
        sub = str(mount.get("subPath") or "").strip("/")
        found[str(mount["mountPath"])] = base / sub if sub else base
    return found


def place_configs(volumes: Sequence[Mapping[str, Any]], configs: ConfigMaps, pod_folder: Path) -> None:
    """Write the files of every volume that is a ConfigMap.

    Raises:
        LookupError: there is no such ConfigMap or key.
        OSError: it cannot be written.
    """
    for volume in volumes:
        if volume.get("configMap") is not None:
            if not NAME.fullmatch(str(volume["name"])):
                raise LookupError(f"volume {volume['name']!r}: the name is no DNS label")
            folder = pod_folder / "volumes" / str(volume["name"])
            folder.mkdir(parents=True, exist_ok=True)
            configs.place(volume["configMap"], folder)


def read_only(container: Mapping[str, Any], volumes: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Mount paths that a container cannot write to, as the kubelet mounts them."""
    names = {str(volume["name"]) for volume in volumes if volume.get("configMap") is not None}
    mounts = container.get("volumeMounts") or []
    return tuple(str(mount["mountPath"]) for mount in mounts if str(mount["name"]) in names)


def volumes_of(spec: Mapping[str, Any], template: Mapping[str, Any], workflow_name: str) -> list[dict[str, Any]]:
    """The workflow's volumes, those made from ``volumeClaimTemplates``, and the template's own."""
    made = []
    for each in spec.get("volumeClaimTemplates") or []:
        name = str(each["metadata"]["name"])
        made.append({"name": name, "persistentVolumeClaim": {"claimName": f"{workflow_name}-{name}"}})
    return [*(spec.get("volumes") or []), *made, *(template.get("volumes") or [])]
