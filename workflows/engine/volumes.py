"""Volumes of a pod as folders of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


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


def volumes_of(spec: Mapping[str, Any], template: Mapping[str, Any], workflow_name: str) -> list[dict[str, Any]]:
    """The workflow's volumes, those made from ``volumeClaimTemplates``, and the template's own."""
    made = []
    for each in spec.get("volumeClaimTemplates") or []:
        name = str(each["metadata"]["name"])
        made.append({"name": name, "persistentVolumeClaim": {"claimName": f"{workflow_name}-{name}"}})
    return [*(spec.get("volumes") or []), *made, *(template.get("volumes") or [])]
