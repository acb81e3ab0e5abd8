"""A container of a pod."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.process import SHELLS, script_index
from argosy.workflows.lint.view.quantity import quantity

if TYPE_CHECKING:
    from argosy.workflows.lint.view.pod import Pod

GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-", "habana.ai/gaudi", "gpu.intel.com/")
_RDMA: Final = (
    "rdma/",
    "vpc.amazonaws.com/efa",
    "nvidia.com/rdma",
    "mellanox.com/",
    "nvidia.com/mlnx",
    "openshift.io/mlx",
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

    def request(self, resource: str) -> float | None:
        """The request, else the limit, in its base unit; None when none is known."""
        node = self.requests[resource] or self.limits[resource]
        return quantity(node.text)

    @cached_property
    def gpus(self) -> int | None:
        """GPUs it gets: 0 when it asks for none, None when the number is filled in later."""
        total = 0
        for name, value in {**self.requests.entries, **self.limits.entries}.items():
            if name.startswith(GPU_RESOURCES):
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

    @property
    def mounts(self) -> dict[str, Node]:
        """Its volume mounts by path."""
        return {each["mountPath"].text.rstrip("/"): each for each in self.node["volumeMounts"]}

    @property
    def ports(self) -> list[Node]:
        """``ports``."""
        return self.node["ports"].items
