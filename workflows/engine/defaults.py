"""``templateDefaults``: what every template has unless it says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_defaults(spec: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, Any]:
    """``template`` with the workflow's ``templateDefaults`` below it; maps are merged key by key."""
    defaults = spec.get("templateDefaults")
    return _merge(defaults, template) if defaults else dict(template)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged
