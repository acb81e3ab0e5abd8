"""An environment with the pod around it: the view that every rule looks at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from argosy.steps.nccl.catalogue import demanded_names, settings
from argosy.steps.nccl.facts import Facts, Link, Span, Value
from argosy.steps.nccl.images import versions_of

_CLOUD_OF_KEY = (
    ("networking.gke.io", "gcp"),
    ("devices.gke.io", "gcp"),
    ("cloud.google.com", "gcp"),
    ("mrdma.google.com", "gcp"),
    ("vpc.amazonaws.com", "aws"),
    ("eks.amazonaws.com", "aws"),
    ("sagemaker.amazonaws.com", "aws"),
    ("kubernetes.azure.com", "azure"),
    ("oci.oraclecloud.com", "oci"),
    ("oke.oraclecloud.com", "oci"),
    ("nvidia.com/rdma-vf", "oci"),
    ("coreweave.cloud", "coreweave"),
)
_CLOUD_OF_INSTANCE = (
    (re.compile(r"instance-type=(ml\.)?(p|g)\d\w*\.\w+"), "aws"),
    (re.compile(r"instance-type=Standard_"), "azure"),
    (re.compile(r"instance-type=(BM|VM)\."), "oci"),
    (re.compile(r"instance-type=a\d-"), "gcp"),
)
_CLOUD_OF_MOUNT = (
    ("/opt/microsoft", "azure"),
    ("/usr/local/gib", "gcp"),
    ("/run/tcpx", "gcp"),
    ("/dev/aperture_devices", "gcp"),
    ("/etc/crusoe", "crusoe"),
)
_CLOUD_OF_IMAGE = (
    (re.compile(r"^\d+\.dkr\.ecr\.[\w-]+\.amazonaws\.com"), "aws"),
    (re.compile(r"-docker\.pkg\.dev/|^(\w+\.)?gcr\.io/"), "gcp"),
    (re.compile(r"\.azurecr\.io/"), "azure"),
    (re.compile(r"\.ocir\.io/"), "oci"),
    (re.compile(r"^ghcr\.io/coreweave/|\.coreweave\."), "coreweave"),
)
_GENERATIONS = (
    ("blackwell", r"G?B[123]00|BLACKWELL"),
    ("hopper", r"G?H(20|100|200|800)|HOPPER"),
    ("ada", r"L(4|20|40)S?|RTX-?4090|ADA"),
    ("ampere", r"A(10G?|16|30|40|100|800)|RTX-?30[89]0|AMPERE"),
    ("turing", r"T4|TURING"),
    ("volta", r"V100|VOLTA"),
)
_MNNVL = frozenset({"NCCL_MNNVL_ENABLE", "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_NET_GDR_C2C"})
_ROCE = frozenset({"NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_SPLIT_DATA_ON_QPS", "NCCL_IB_ADAPTIVE_ROUTING"})
_TRANSPORT_CLOUDS = {"oci": "roce", "azure": "ib", "coreweave": "ib"}


def cloud_of(facts: Facts) -> str | None:
    """The cloud that the pod's own fields name; ``None`` when they name none."""
    if facts.cloud or facts.fabric:
        by_fabric = {"aws": "aws", "gcp": "gcp", "azure": "azure", "oci": "oci"}.get((facts.fabric or "").split("-")[0])
        return facts.cloud or by_fabric
    keys = " ".join(sorted(facts.annotations | facts.labels | (facts.resources or frozenset())))
    mounts = " ".join(sorted(facts.mounts))
    found = [cloud for mark, cloud in _CLOUD_OF_KEY if mark in keys]
    found += [cloud for pattern, cloud in _CLOUD_OF_INSTANCE if pattern.search(keys)]
    found += [cloud for mark, cloud in _CLOUD_OF_MOUNT if mark in mounts]
    found += [cloud for pattern, cloud in _CLOUD_OF_IMAGE if pattern.search(facts.image or "")]
    return found[0] if found else None


def generation_of(gpu: str | None) -> str | None:
    """The architecture of a model such as ``H100`` or ``NVIDIA-A100-SXM4-80GB``."""
    said = (gpu or "").upper()
    for name, models in _GENERATIONS:
        if re.search(rf"(?<![A-Z0-9])({models})(?![A-Z0-9])", said):
            return name
    return None


def rdma_of(facts: Facts) -> frozenset[str]:
    """The requested resources that are RDMA devices."""
    marks = re.compile(r"^rdma/|rdma|/(ib|hca|roce|mlnx)|infiniband|/efa$|mlx\d")
    return frozenset(name for name in facts.resources or () if marks.search(name))


def link_of(facts: Facts, cloud: str | None) -> Link:
    """What connects the nodes, as far as resources, annotations and the cloud say."""
    if facts.link != "unknown":
        return facts.link
    rdma = rdma_of(facts)
    if any(name.endswith("/efa") for name in rdma):
        return "efa"
    if cloud == "gcp" and any("gke.io" in key for key in facts.annotations):
        return "google"
    if any("roce" in name for name in rdma):
        return "roce"
    if rdma and cloud in _TRANSPORT_CLOUDS:
        return "roce" if cloud == "oci" else "ib"
    if any(re.search(r"(^|[/_-])(ib|infiniband)([/_-]|$)", name) for name in rdma):
        return "ib"
    claims = any(name.startswith("claim/") for name in facts.resources or ())
    if rdma or claims or facts.host_network or facts.privileged or facts.resources is None or facts.annotations:
        return "unknown"
    return "unknown" if any(path.startswith("/dev") and path != "/dev/shm" for path in facts.mounts) else "none"


@dataclass(frozen=True)
class Scene:
    """``env`` and ``facts``, and what follows from them."""

    env: Mapping[str, Value]
    facts: Facts
    cloud: str | None
    link: Link
    generation: str | None
    rdma: frozenset[str]

    @classmethod
    def of(cls, env: Mapping[str, Value], facts: Facts) -> Scene:
        """The view of one container."""
        cloud = cloud_of(facts)
        torch, nccl = versions_of(facts.image)
        known = replace(
            facts,
            link=link_of(facts, cloud),
            torch=torch if facts.torch == Span() else facts.torch,
            nccl=nccl if facts.nccl == Span() else facts.nccl,
            diagnosis=facts.diagnosis or bool(re.search(r"nccl[-_]?tests?\b", facts.image or "")),
        )
        return cls(env, known, cloud, known.link, generation_of(facts.gpu), rdma_of(facts))

    def has(self, name: str) -> bool:
        """``name`` is set, whatever its value."""
        return name in self.env

    def text(self, name: str) -> str:
        """The value; empty when unset, unknown or empty."""
        return self.env.get(name) or ""

    def number(self, name: str) -> int | None:
        """The value as C's ``strtoll(…, 0)`` reads it; ``None`` where it is no number."""
        try:
            return int(self.text(name).strip(), 0)
        except ValueError:
            return None

    def is_default(self, name: str) -> bool:
        """The value is what NCCL would take anyway."""
        setting = settings().get(name)
        return setting is not None and setting.default is not None and self.text(name).strip() == setting.default

    def in_cloud(self, *clouds: str) -> bool:
        """The pod is known to run in one of them."""
        return self.cloud in clouds

    def many_nodes(self) -> bool:
        """Certainly more than one pod."""
        return self.facts.nodes is not None and self.facts.nodes > 1

    def nvlink_sharp(self) -> bool:
        """The GPUs are known to be Hopper or newer data-centre ones."""
        return self.generation in ("hopper", "blackwell")

    def demanded(self) -> frozenset[str]:
        """Names of the Debugging drawer that this pod's own cloud, link or GPU asks for."""
        names = demanded_names(self.cloud or "")
        names |= _MNNVL if self.generation == "blackwell" else frozenset()
        return names | _ROCE if self.link == "roce" else names
