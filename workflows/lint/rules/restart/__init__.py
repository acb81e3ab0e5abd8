"""RESTART: who starts a failed gang again, how often, and what is left of it when it ends."""

from __future__ import annotations

from argosy.workflows.lint.rules.restart import (
    cleanup,
    deadlines,
    elastic,
    endings,
    jobs,
    jobsets,
    layers,
    nodes,
    pod_failure,
    pods,
    volcano,
)

__all__ = [
    "cleanup",
    "deadlines",
    "elastic",
    "endings",
    "jobs",
    "jobsets",
    "layers",
    "nodes",
    "pod_failure",
    "pods",
    "volcano",
]
