"""Which kind of template one is, in Argo's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KINDS = ("container", "containerSet", "steps", "dag", "script", "resource", "data", "suspend", "http", "plugin")
LEAVES = frozenset({"container", "containerSet", "script", "resource", "data", "http", "plugin"})
PODS = frozenset({"container", "containerSet", "script", "resource", "data"})
_ANSWERING = frozenset({"container", "script", "data", "http", "plugin"})


def kinds_of(template: Mapping[str, Any]) -> list[str]:
    """Every kind that a template says it is; a right one says one."""
    return [kind for kind in KINDS if template.get(kind) is not None]


def kind_of(template: Mapping[str, Any]) -> str:
    """The kind that counts, "" where there is none (an empty list of steps is none)."""
    return next((kind for kind in kinds_of(template) if kind != "steps" or template["steps"]), "")


def has_result(template: Mapping[str, Any]) -> bool:
    """Whether ``outputs.result`` and ``exitCode`` of it can be referred to."""
    containers = (template.get("containerSet") or {}).get("containers") or []
    if any((each or {}).get("name") == "main" for each in containers):
        return True
    return any(template.get(kind) is not None for kind in _ANSWERING)
