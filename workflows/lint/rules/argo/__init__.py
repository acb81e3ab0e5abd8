"""ARGO: what Argo Workflows and Argo Events refuse, or do otherwise than the manifest seems to say."""

from __future__ import annotations

from argosy.workflows.lint.rules.argo import (
    artifacts,
    conditions,
    graph,
    limits,
    parameters,
    references,
    removed,
    resources,
    retries,
    scripts,
    sensors,
    sources,
    structure,
    variables,
    workflows,
)

__all__ = [
    "artifacts",
    "conditions",
    "graph",
    "limits",
    "parameters",
    "references",
    "removed",
    "resources",
    "retries",
    "scripts",
    "sensors",
    "sources",
    "structure",
    "variables",
    "workflows",
]
