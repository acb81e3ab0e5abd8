"""A fabric in the gang's pod, as Kubernetes has it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from argosy.workflows.fabric.fabric import Fabric
from argosy.workflows.gang.pod import CONTAINER_SECURITY
from argosy.workflows.spec.pod import Pod
from argosy.workflows.spec.resources import Resources


def fabric_env(fabric: Fabric) -> list[dict[str, str]]:
    """``env`` of the ranks' container; what the user sets replaces it."""
    return [{"name": setting.name, "value": setting.value} for setting in fabric.env]


def fabric_resources(fabric: Fabric, resources: Resources) -> dict[str, Any]:
    """``resources`` of the ranks' container: extended ones are requested as they are limited; the user's win."""
    claims = [{"name": each["name"]} for each in fabric.pod.get("resourceClaims", [])]
    return {
        "requests": {**fabric.resources, **resources.requests()},
        "limits": {**fabric.resources, **resources.limits()},
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


def fabric_pod(fabric: Fabric, pod: Pod, affinity: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the pod's spec beside its containers and volumes: the fabric's and the user's; ``affinity`` of both
    and this.
    """
    given = pod.fields()
    fields = {**fabric.pod, **given}
    if affinities := [each for each in (fabric.pod.get("affinity"), given.get("affinity"), affinity) if each]:
        fields["affinity"] = reduce(_both, affinities)
    return {**fields, **({"initContainers": list(fabric.sidecars)} if fabric.sidecars else {})}


def _both(ours: Any, theirs: Any) -> Any:
    """Two affinities as one: each term of a list has to hold (a profile has no alternatives of nodes)."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        shared = {key: _both(ours[key], theirs[key]) for key in ours.keys() & theirs.keys()}
        return {**ours, **theirs, **shared}
    return [*ours, *theirs] if isinstance(ours, list) and isinstance(theirs, list) else theirs
