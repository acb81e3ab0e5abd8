"""What is known of the pod around an environment. All of it is optional: unknown is ``None``, never guessed.

``Facts()`` is legal and means "only the variables are known"; each fact that is given makes the rules sharper or
silences those that do not apply. How to fill it from a manifest::

    facts = Facts(
        nccl=Span.exactly("2.30.7"),            # left out, it is taken from the image's tag where that says it
        gpu="H100", gpus_per_pod=8, nodes=2,
        resources=frozenset({"nvidia.com/gpu", "rdma/ib"}),
        annotations=frozenset(pod_annotations), image="nvcr.io/…", mounts=frozenset({"/dev/shm"}),
        host_network=False, capabilities=frozenset({"IPC_LOCK"}),
    )
    findings = check_environment({"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": None}, facts)

A value of ``None`` in the environment means: set, but not readable here (``valueFrom``, ``$(VAR)``, a shell's
expansion). Rules on names still see it, rules on values do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Value = str | None
Link = Literal["ib", "roce", "efa", "google", "none", "unknown"]
Process = Literal["ranks", "mpi-launcher", "init", "sidecar"]
Version = tuple[int, ...]


def version(text: str) -> Version:
    """``2.30.7+cuda13`` -> (2, 30, 7); what is no number ends it, so an unreadable text gives ()."""
    numbers: list[int] = []
    for part in text.strip().lstrip("v").split("+")[0].split("-")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


@dataclass(frozen=True)
class Span:
    """Versions from ``low`` to ``high``, both inclusive; ``None`` is open."""

    low: Version | None = None
    high: Version | None = None

    @classmethod
    def exactly(cls, text: str) -> Span:
        """The span of one version, e.g. ``2.30.7``; an unreadable one is unknown."""
        number = version(text) or None
        return cls(number, number)

    def at_least(self, text: str) -> bool:
        """Certainly ``text`` or newer."""
        return self.low is not None and self.low >= version(text)

    def older_than(self, text: str) -> bool:
        """Certainly older than ``text``."""
        return self.high is not None and self.high < version(text)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The pod and the job, as far as they are known."""

    nccl: Span = Span()
    torch: Span = Span()
    gpu: str | None = None
    """Model or generation, as the manifest says it: ``H100``, ``NVIDIA-A100-SXM4-80GB``, ``hopper``."""
    gpus_per_pod: int | None = None
    nodes: int | None = None
    """Pods that train together."""
    host_network: bool | None = None
    non_root: bool | None = None
    privileged: bool | None = None
    capabilities: frozenset[str] | None = None
    """Added ones, without ``CAP_``; an empty set says that none is added."""
    resources: frozenset[str] | None = None
    """Names of the container's requested resources; given, a resource that is not in it is not requested.
    A claim of dynamic resource allocation is ``claim/NAME``."""
    annotations: frozenset[str] = frozenset()
    """Keys of the pod's annotations."""
    labels: frozenset[str] = frozenset()
    """Keys of the pod's labels and node selectors, and ``key=value`` of the latter."""
    mounts: frozenset[str] = frozenset()
    """Paths that the container mounts."""
    image: str | None = None
    interfaces: frozenset[str] | None = None
    """All network interfaces in the pod, when known (e.g. eth0 and those of Multus)."""
    link: Link = "unknown"
    """What connects the nodes, when said; else ``checks`` derives it from resources, annotations and mounts."""
    fabric: str | None = None
    """Name of argosy's fabric profile."""
    cloud: str | None = None
    """aws, gcp, azure, oci, coreweave, nebius, crusoe, lambda; else derived from the same."""
    process: Process = "ranks"
    backend: str | None = None
    """``nccl``, ``gloo``, ``mpi``, when known."""
    diagnosis: bool = False
    """The pod tests the fabric (nccl-tests, preflight) and trains nothing."""
