"""A workload: pods in roles, which an object of some kind creates."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Pod, Role


@dataclass(eq=False)
class Workload:
    """An object that makes pods.

    Args:
        document: the object.
        roles: its kinds of pods, in the order of the manifest.
        family: ``pytorch``, ``tensorflow``, ``xgboost``, ``mpi``, ``trainer``, ``jobset``, ``job``, ``ray``,
            ``volcano``, ``pod``, ``argo`` or ``other`` (Deployment, StatefulSet, …).
        spec: the object's own spec, below a CronJob's or CronWorkflow's template.
    """

    document: Document
    family: str
    roles: list[Role]
    spec: Node

    @property
    def pods(self) -> list[Pod]:
        """One pod per role."""
        return [role.pod for role in self.roles]

    @property
    def total(self) -> int | None:
        """Pods of all roles at once; None when a number is filled in later."""
        numbers = [role.replicas for role in self.roles]
        return None if None in numbers else sum(number or 0 for number in numbers)

    @property
    def gpus(self) -> int | None:
        """GPUs of all pods; None when a number is filled in later."""
        each = [(role.replicas, role.pod.gpus) for role in self.roles]
        if any(replicas is None or gpus is None for replicas, gpus in each):
            return None
        return sum((replicas or 0) * (gpus or 0) for replicas, gpus in each)

    @property
    def gang(self) -> bool:
        """Whether several pods must run at the same time: a training of more than one pod."""
        total = self.total
        return self.family not in ("pod", "argo", "other") and (total is None or total > 1)
