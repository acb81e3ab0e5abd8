"""A pod, its containers, and the role that it is the template of: each knows the others, so they share a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node, Origin
from argosy.workflows.manifests.process import script_index
from argosy.workflows.manifests.quantity import quantity
from argosy.workflows.manifests.shell import SHELLS

NOWHERE: Final = Node(None, Origin(""))
"""A missing node of no document."""
GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-", "habana.ai/gaudi", "gpu.intel.com/")
# HAMi's memory and cores of a device: https://project-hami.io/docs/userguide/nvidia-device/
_SHARE_OF_A_GPU: Final = re.compile(r"gpu(mem|cores)")
_RDMA: Final = (
    *("rdma/", "vpc.amazonaws.com/efa", "nvidia.com/rdma", "mellanox.com/", "nvidia.com/mlnx"),
    *("nvidia.com/hostdev", "openshift.io/mlx"),
)


@dataclass(frozen=True)
class Container:
    """A container as it is written.

    Args:
        node: the container's mapping.
        pod: the pod it runs in.
        init: it ends before the others start.
    """

    node: Node
    pod: Pod
    init: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.node["name"].text

    @property
    def image(self) -> Node:
        """Its image."""
        return self.node["image"]

    @property
    def sidecar(self) -> bool:
        """An init container that keeps running (``restartPolicy: Always``)."""
        return self.init and self.node["restartPolicy"].text == "Always"

    @cached_property
    def argv(self) -> list[Node]:
        """``command`` and ``args`` one after the other."""
        return [*self.node["command"], *self.node["args"]]

    @cached_property
    def script(self) -> Node | None:
        """The text that a shell reads: the word after ``sh -c``, or an Argo script's source; None without a shell."""
        index = script_index([node.text for node in self.argv])
        if index is not None:
            return self.argv[index]
        first = self.node["command"].items[:1]
        shell = bool(first) and first[0].text.rsplit("/", 1)[-1] in SHELLS
        return self.node["source"] if shell and self.node["source"].is_string else None

    @property
    def limits(self) -> Node:
        """``resources.limits``."""
        return self.node.at("resources.limits")

    @property
    def requests(self) -> Node:
        """``resources.requests``; what is limited and not requested is requested as limited."""
        return self.node.at("resources.requests")

    def limit(self, resource: str) -> float | None:
        """The limit of ``cpu``, ``memory``, …, in its base unit; None when none is known."""
        return quantity(self.limits[resource].text)

    @cached_property
    def gpus(self) -> int | None:
        """GPUs it gets: 0 when it asks for none, None when the number is filled in later."""
        total = 0
        for name, value in {**self.requests.entries, **self.limits.entries}.items():
            if name.startswith(GPU_RESOURCES) and _SHARE_OF_A_GPU.search(name) is None:
                number = value.number
                if number is None:
                    return None
                total += number
        return total

    @cached_property
    def rdma_resources(self) -> dict[str, Node]:
        """Extended resources that stand for network adapters with RDMA, by name."""
        found = {**self.requests.entries, **self.limits.entries}
        return {name: node for name, node in found.items() if name.startswith(_RDMA)}

    @property
    def security(self) -> Node:
        """Its own ``securityContext``."""
        return self.node["securityContext"]

    @property
    def capabilities(self) -> frozenset[str]:
        """Capabilities that it adds, without ``CAP_``."""
        return frozenset(each.text.removeprefix("CAP_") for each in self.security.at("capabilities.add"))

    @property
    def privileged(self) -> bool:
        """Whether it is privileged."""
        return self.security["privileged"].flag is True

    @property
    def non_root(self) -> bool | None:
        """True: it cannot be root; False: it is root for sure; None: the image decides."""
        for context in (self.security, self.pod.security):
            user = context["runAsUser"].number
            if user is not None:
                return user != 0
        for context in (self.security, self.pod.security):
            flag = context["runAsNonRoot"].flag
            if flag is not None:
                return True if flag else None
        return None

    @cached_property
    def mounts(self) -> dict[str, Node]:
        """Its volume mounts by path."""
        return {each["mountPath"].text.rstrip("/"): each for each in self.node["volumeMounts"]}

    @property
    def ports(self) -> list[Node]:
        """``ports``."""
        return self.node["ports"].items


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

    @cached_property
    def all_containers(self) -> list[Container]:
        """Init containers, then the others."""
        return [*self.init_containers, *self.containers]

    @cached_property
    def main(self) -> Container | None:
        """The container that trains: the one with GPUs, else the one the kind's operator looks for, else the first."""
        with_gpus = [each for each in self.containers if each.gpus != 0]
        named = [each for each in self.containers if each.name in ("pytorch", "tensorflow", "xgboost", "node", "main")]
        return next(iter([*with_gpus, *named, *self.containers]), None)

    @cached_property
    def gpus(self) -> int | None:
        """GPUs of the whole pod; None when a number is filled in later."""
        numbers = [each.gpus for each in self.containers]
        return None if None in numbers else sum(number or 0 for number in numbers)

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

    @cached_property
    def volumes(self) -> dict[str, Node]:
        """Volumes by name."""
        return {each["name"].text: each for each in self.spec["volumes"]}

    def shared_memory(self, container: Container) -> tuple[Node, float | None] | None:
        """(volume, size limit in bytes or None) of what is mounted at /dev/shm; None when nothing is."""
        mount = container.mounts.get("/dev/shm") or container.mounts.get("/dev")
        volume = self.volumes.get(mount["name"].text) if mount is not None else None
        if volume is None:
            return None
        return volume, quantity(volume.at("emptyDir.sizeLimit").text)


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
