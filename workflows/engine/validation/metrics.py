"""Custom metrics of a template: a name that Prometheus takes, a help text, a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.validation.arguments import items_of
from argosy.workflows.engine.validation.refusal import Refused

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def check_metrics(template: Mapping[str, Any], path: str) -> None:
    """Judge ``metrics.prometheus`` of a template.

    Raises:
        Refused: the first broken rule.
    """
    for index, metric in enumerate(items_of(template.get("metrics"), "prometheus")):
        where = f"{path}.metrics.prometheus[{index}]"
        names = [metric.get("name"), *(each.get("key") for each in items_of(metric, "labels"))]
        for name in names:
            if not _NAME.fullmatch(str(name or "")):
                raise Refused(f"{where}: {name!r}: metric names may only contain letters, digits and '_'")
        if not metric.get("help"):
            raise Refused(f"{where}.help: missing; a metric must contain a help string")
        for kind in ("gauge", "counter", "histogram"):
            if metric.get(kind) is not None and not metric[kind].get("value"):
                raise Refused(f"{where}.{kind}.value: missing")
        gauge = metric.get("gauge") or {}
        if gauge.get("realtime") and "resourcesDuration." in str(gauge.get("value")):
            raise Refused(f"{where}.gauge: 'resourcesDuration.*' metrics cannot be used in real-time")
