"""A fabric in the gang's pod, as Kubernetes has it."""

from __future__ import annotations

from typing import Any

from argosy.workflows.fabric.fabric import Fabric
from argosy.workflows.gang.pod import CONTAINER_SECURITY
from argosy.workflows.spec.resources import Resources


def fabric_env(fabric: Fabric) -> list[dict[str, str]]:
    """``env`` of the ranks' container; what the user sets replaces it."""
    return [{"name": setting.name, "value": setting.value} for setting in fabric.env]


def fabric_resources(fabric: Fabric, resources: Resources) -> dict[str, Any]:
    """``resources`` of the ranks' container: extended resources are requested as they are limited."""
    claims = [{"name": each["name"]} for each in fabric.pod.get("resourceClaims", [])]
    return {
        "requests": {**resources.requests(), **fabric.resources},
        "limits": {**resources.limits(), **fabric.resources},
        **({"claims": claims} if claims else {}),
    }


def fabric_security(fabric: Fabric) -> dict[str, Any]:
    """``securityContext`` of the ranks' container; Pod Security "restricted" unless the fabric needs more."""
    security: dict[str, Any] = {**CONTAINER_SECURITY, "capabilities": {"drop": ["ALL"]}}
    if fabric.capabilities:
        security["capabilities"]["add"] = list(fabric.capabilities)
    if fabric.root:
        security |= {"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False}
    if fabric.privileged:
        # The API server refuses privileged beside a ban on privilege escalation.
        security = {name: value for name, value in security.items() if name != "allowPrivilegeEscalation"}
        security["privileged"] = True
    return security


def fabric_pod(fabric: Fabric) -> dict[str, Any]:
    """Fields of the pod's spec beside its containers and volumes."""
    sidecars = {"initContainers": list(fabric.sidecars)} if fabric.sidecars else {}
    return {**fabric.pod, **sidecars}
