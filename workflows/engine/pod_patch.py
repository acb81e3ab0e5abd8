"""``podSpecPatch``: what of a patch of the pod's manifest has a meaning on one machine, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

_GRACE = "terminationGracePeriodSeconds"
_IGNORED = frozenset({
    "affinity", "automountServiceAccountToken", "enableServiceLinks", "imagePullSecrets", "nodeName", "nodeSelector",
    "priority", "priorityClassName", "runtimeClassName", "schedulerName", "schedulingGates", "securityContext",
    "serviceAccountName", "tolerations", "topologySpreadConstraints",
})  # fmt: skip
"""Placement and rights: there is one machine, and processes run as the engine's user."""
_IGNORED_OF_CONTAINERS = frozenset({"name", "resources", "securityContext", "image", "imagePullPolicy"})


def grace_seconds(spec: Mapping[str, Any], template: Mapping[str, Any]) -> float | None:
    """Seconds between SIGTERM and SIGKILL that the patches ask for (the template's wins), or None."""
    for holder in (template, spec):
        patch = _read(holder.get("podSpecPatch"))
        if isinstance(patch, dict) and isinstance(patch.get(_GRACE), int):
            return float(patch[_GRACE])
    return None


def patch_problems(holder: Mapping[str, Any], path: str) -> Iterator[str]:
    """What a patch asks for that would change what happens and is not done here, by path; nothing while it has tags."""
    text = holder.get("podSpecPatch")
    if not text or "{{" in str(text):
        return
    patch = _read(text)
    if not isinstance(patch, dict):
        yield f"{path}.podSpecPatch: neither JSON nor YAML of a pod's spec"
        return
    for key, value in patch.items():
        if key in ("containers", "initContainers") and isinstance(value, list):
            for each in value:
                fields = set(each) if isinstance(each, dict) else {str(each)}
                for field in sorted(fields - _IGNORED_OF_CONTAINERS):
                    yield f"{path}.podSpecPatch.{key}: {field!r} is not built into the local engine"
        elif key == _GRACE:
            if not isinstance(value, int) or isinstance(value, bool):
                yield f"{path}.podSpecPatch.{key}: {value!r} is not a whole number"
        elif key not in _IGNORED:
            yield f"{path}.podSpecPatch: {key!r} is not built into the local engine"


def _read(text: Any) -> Any:
    try:
        return yaml.safe_load(str(text)) if text else None
    except (yaml.YAMLError, RecursionError):
        return None
