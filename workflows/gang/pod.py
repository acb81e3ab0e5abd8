"""What every pod of a run has in common, as Kubernetes has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.workflows.spec.run import TrainingRun

USER: Final = 1000
CLAIM_VOLUME: Final = "storage"
# Pod Security "restricted": a namespace that enforces it admits these pods.
POD_SECURITY: Final[Mapping[str, Any]] = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    # Walking a big volume to change its group takes minutes at each start; once is enough.
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Final[Mapping[str, Any]] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
# Python holds back output that goes to a pipe; progress and evidence must come when they happen.
UNBUFFERED: Final = {"name": "PYTHONUNBUFFERED", "value": "1"}


def environment(run: TrainingRun, *first: Mapping[str, Any]) -> list[dict[str, Any]]:
    """``env``: ours, then ``first``, then the user's, which win."""
    table = {each["name"]: dict(each) for each in (UNBUFFERED, *first)}
    table |= {name: {"name": name, "value": value} for name, value in run.env.items()}
    return list(table.values())


def environment_sources(run: TrainingRun) -> list[dict[str, Any]]:
    """``envFrom``: the run's Secrets."""
    return [{"secretRef": {"name": name}} for name in run.secrets]


def pod_folders(**folders: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(volumes, mounts) of folders on the pod's own disk: volume name -> path."""
    volumes = [{"name": name, "emptyDir": {}} for name in folders]
    return volumes, [{"name": name, "mountPath": path} for name, path in folders.items()]


def claim_volume(run: TrainingRun) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(volumes, mounts) of the run's claim; empty when no pod needs it."""
    if not run.mounts_claim:
        return [], []
    volume = {"name": CLAIM_VOLUME, "persistentVolumeClaim": {"claimName": run.storage.claim}}
    return [volume], [{"name": CLAIM_VOLUME, "mountPath": run.storage.mount_path}]
