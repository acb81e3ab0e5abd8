"""A fabric as a gang gets it: a profile with its parameters filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from argosy.steps.contract.transport import ExpectedTransport
from argosy.workflows.fabric.profile import Prohibition, Setting, Source

_RESTRICTED_CAPABILITIES: Final = frozenset({"NET_BIND_SERVICE"})
_EXPECTED_ANEW: Final = {"NCCL_IB_HCA": "nics", "NCCL_NVLS_ENABLE": "nvls"}
"""Variable -> what a profile can no longer know when the user sets it."""


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """What is rendered; the empty one sets nothing."""

    name: str = ""
    env: tuple[Setting, ...] = ()
    refused: tuple[Prohibition, ...] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    volumes: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    sidecars: tuple[dict[str, Any], ...] = ()
    pod: Mapping[str, Any] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()
    root: bool = False
    privileged: bool = False
    shm_size: str = ""
    gpus: int = 0
    """GPUs of the node that the counts are for; 0: any number."""
    one_node: bool = False
    expect: ExpectedTransport | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    proven: str = ""

    @property
    def host_network(self) -> bool:
        """Whether the pods live in their nodes' network."""
        return self.pod.get("hostNetwork") is True

    @property
    def privileges(self) -> list[str]:
        """What Pod Security "restricted" refuses in these pods; empty: it admits them.

        Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
        """
        paths = [volume["hostPath"]["path"] for volume in self.volumes if "hostPath" in volume]
        found = [f"hostPath {path}" for path in paths]
        found += ["hostNetwork"] if self.host_network else []
        found += [f"capability {name}" for name in self.capabilities if name not in _RESTRICTED_CAPABILITIES]
        found += ["root"] if self.root else []
        found += ["privileged"] if self.privileged else []
        for sidecar in self.sidecars:
            if sidecar.get("securityContext", {}).get("runAsUser") == 0:
                found.append(f"container {sidecar['name']} as root")
        return found

    def expected(self, env: Mapping[str, str], nnodes: int) -> ExpectedTransport | None:
        """What ``nnodes`` nodes with the user's ``env`` must talk over; None: nothing was stated."""
        expect = self.expect
        if expect is None:
            return None
        if nnodes == 1 and not self.one_node:
            # Nothing leaves the node, and the bandwidth that is stated is the network's.
            expect = replace(expect, network="", gdr=False, nics=0, nic_gbps=0, busbw_floor_gbs=0.0)
        set_by_user = {_EXPECTED_ANEW[name] for name in env if name in _EXPECTED_ANEW}
        return replace(
            expect,
            nics=0 if "nics" in set_by_user else expect.nics,
            nvls=False if "nvls" in set_by_user else expect.nvls,
        )

    def texts(self) -> Iterator[tuple[str, str]]:
        """(place, text) of every text that reaches the manifest."""
        for setting in self.env:
            yield f"env.{setting.name}", setting.value
        yield "shm", self.shm_size
        yield "expect.network", self.expect.network if self.expect is not None else ""
        for place in ("resources", "labels", "annotations", "volumes", "mounts", "sidecars", "pod", "capabilities"):
            for text in _strings(getattr(self, place)):
                yield place, text


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for key, item in node.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(node, list | tuple):
        for item in node:
            yield from _strings(item)
