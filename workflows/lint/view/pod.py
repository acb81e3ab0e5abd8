"""A pod, or the template of many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from argosy.workflows.lint.document import Document
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.quantity import quantity

if TYPE_CHECKING:
    from argosy.workflows.lint.view.workload import Role


@dataclass(frozen=True)
class Pod:
    """A pod as it is written.

    Args:
        spec: the pod's spec; for kinds that describe a pod otherwise (an Argo template, a TrainJob), one made of it.
        metadata: the pod's labels and annotations; missing where none can be written.
        document: the document that it stands in.
        role: the part of a workload that it is the template of; None for a plain pod and for an Argo template.
    """

    spec: Node
    metadata: Node
    document: Document
    role: Role | None = None

    @cached_property
    def containers(self) -> list[Container]:
        """The containers that run side by side, without init containers."""
        return [Container(node, self) for node in self.spec["containers"] if node.is_mapping]

    @cached_property
    def init_containers(self) -> list[Container]:
        """The init containers."""
        return [Container(node, self, init=True) for node in self.spec["initContainers"] if node.is_mapping]

    @property
    def all_containers(self) -> list[Container]:
        """Init containers, then the others."""
        return [*self.init_containers, *self.containers]

    @cached_property
    def main(self) -> Container | None:
        """The container that trains: the one with GPUs, else the one the kind's operator looks for, else the first."""
        with_gpus = [each for each in self.containers if each.gpus != 0]
        named = [each for each in self.containers if each.name in ("pytorch", "tensorflow", "xgboost", "node", "main")]
        return next(iter([*with_gpus, *named, *self.containers]), None)

    @property
    def gpus(self) -> int | None:
        """GPUs of the whole pod; None when a number is filled in later."""
        numbers = [each.gpus for each in self.containers]
        return None if None in numbers else sum(number or 0 for number in numbers)

    @property
    def rdma_resources(self) -> dict[str, Node]:
        """Network adapters with RDMA that its containers ask for, by resource name."""
        return {name: node for each in self.containers for name, node in each.rdma_resources.items()}

    @property
    def labels(self) -> Node:
        """The pod's labels."""
        return self.metadata["labels"]

    @property
    def annotations(self) -> Node:
        """The pod's annotations."""
        return self.metadata["annotations"]

    @property
    def security(self) -> Node:
        """The pod's ``securityContext``."""
        return self.spec["securityContext"]

    @property
    def host_network(self) -> bool:
        """Whether it uses the node's network."""
        return self.spec["hostNetwork"].flag is True

    @property
    def restart_policy(self) -> str:
        """``restartPolicy`` of the pod; ``""`` when none is written."""
        return self.spec["restartPolicy"].text

    @property
    def volumes(self) -> dict[str, Node]:
        """Volumes by name."""
        return {each["name"].text: each for each in self.spec["volumes"]}

    @property
    def replicas(self) -> int | None:
        """How many of it there are at once; None when that is filled in later."""
        return self.role.replicas if self.role is not None else 1

    def shared_memory(self, container: Container) -> tuple[Node, float | None] | None:
        """(volume, size limit in bytes or None) of what is mounted at /dev/shm; None when nothing is."""
        mount = container.mounts.get("/dev/shm") or container.mounts.get("/dev")
        volume = self.volumes.get(mount["name"].text) if mount is not None else None
        if volume is None:
            return None
        return volume, quantity(volume.at("emptyDir.sizeLimit").text)
