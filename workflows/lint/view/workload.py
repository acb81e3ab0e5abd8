"""A workload: pods in roles, which an object of some kind creates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from argosy.workflows.lint.document import Document
from argosy.workflows.lint.node import Node, Origin
from argosy.workflows.lint.view.pod import Pod

NOWHERE: Final = Node(None, Origin(""))
"""A missing node of no document."""


@dataclass(eq=False)
class Role:
    """Pods of one template in a workload: ``Master``, ``Worker``, a replicated job, a task.

    Args:
        name: as the kind names it; ``""`` where it has one role only.
        node: the mapping that describes the role.
        replicas: pods of the role at once; None when that is filled in later.
        replicas_node: where the number stands, missing when it is the kind's default.
        template: the pod template (``metadata`` and ``spec``).
        restart_policy: the restart policy in force: the operator's or the pod's; its node may be missing.
        completions: see ``batch/v1`` Job; the roles of other kinds have as many as replicas.
        job: the ``batch/v1`` JobSpec the role makes, missing where the kind makes pods itself.
        launcher: it starts the ranks of other roles and trains nothing itself (MPI's launcher, a Ray submitter).
    """

    name: str
    node: Node
    replicas: int | None
    replicas_node: Node
    template: Node
    restart_policy: Node
    document: Document
    completions: int | None = None
    job: Node = NOWHERE
    launcher: bool = False

    @cached_property
    def pod(self) -> Pod:
        """The role's pod."""
        return Pod(self.template["spec"], self.template["metadata"], self.document, self)


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
