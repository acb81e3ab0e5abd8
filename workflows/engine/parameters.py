"""``workflow.parameters``: what the workflow declares, as Argo writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.workflows.engine.gotext import any_string, json_text

_FIELDS = ("name", "default", "value", "valueFrom", "globalName", "enum", "description")


def listed(declared: Iterable[Mapping[str, Any]], values: Mapping[str, str], given: Mapping[str, str]) -> str:
    """The JSON list, with ``values``; a parameter of a ConfigMap has one only if it was ``given``."""
    found = []
    for parameter in declared:
        own = {key: parameter[key] for key in _FIELDS if parameter.get(key) not in (None, "", [])}
        if "value" in own or "valueFrom" not in own or parameter["name"] in given:
            own["value"] = values[parameter["name"]]
        found.append({key: _written(own[key]) for key in _FIELDS if key in own})
    return _json(found)


def _json(value: Any) -> str:
    """Fields stay in their order, which is Argo's."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{_json(each)}" for key, each in value.items()) + "}"
    return f"[{','.join(map(_json, value))}]" if isinstance(value, list) else json_text(value)


def _written(value: Any) -> Any:
    if isinstance(value, list):
        return [any_string(each) for each in value]
    if not isinstance(value, dict):
        return any_string(value)
    reference = value.get("configMapKeyRef") or {}
    found = {"configMapKeyRef": {key: reference[key] for key in ("name", "key", "optional") if reference.get(key)}}
    return found | ({"default": any_string(value["default"])} if value.get("default") is not None else {})
