"""Names that a pod, a Service or a label cannot have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload

_LONGEST: Final = 63


@rule("REND080", Level.ERROR, on=Workload)
def too_long(workload: Workload) -> Iterator[Problem]:
    """The names that a controller makes of the object's name."""
    name = workload.document.metadata["name"]
    if not name.text or name.open:
        return
    for role in workload.roles:
        made = _longest(workload, role, name.text)
        if len(made) > _LONGEST:
            yield Problem(
                name,
                f"the pods' name {made} has {len(made)} characters, and a host name has {_LONGEST} at most",
                f"take {len(made) - _LONGEST} characters away",
            )
            return


def _longest(workload: Workload, role: Role, name: str) -> str:
    """The longest host name or label that is made of a role's name."""
    kind = workload.document.kind
    last = max((role.replicas or 1) - 1, 0)
    if kind in ("JobSet", "TrainJob"):
        times = (role.node["replicas"].number or 1) - 1 if kind == "JobSet" else 0
        each = max((role.completions or 1) - 1, 0) if kind == "JobSet" else last
        return f"{name}-{role.name}-{times}-{each}-abcde"
    if workload.document.group == "kubeflow.org":
        return f"{name}-{role.name.lower()}-{last}"
    if kind == "Job" and workload.document.group == "batch":
        return f"{name}-{max((role.completions or 1) - 1, 0)}" if role.job["completionMode"].text == "Indexed" else name
    if kind == "CronJob":
        return f"{name}-12345678901"
    if kind == "StatefulSet":
        return f"{name}-0123456789"
    return f"{name}-{role.name}-{last}" if workload.family == "volcano" else ""
