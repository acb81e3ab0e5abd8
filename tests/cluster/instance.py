"""One cluster among several on this machine: its names, addresses and folders, all derived from its number.

Addresses are from 198.18.0.0/15, which RFC 2544 sets apart for tests, so that no network of the machine is hidden.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NODE_NAMES = ("node-a", "node-b", "node-c")
SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
"""ClusterIP of the service ``kubernetes``: an address of the control plane itself, so that nothing translates it."""
LARGEST = 31
"""The pods' networks of instance 31 end the range."""


def cache_folder() -> Path:
    """What instances share (binaries, image archives), and below it a folder for each of them."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve() / "argosy" / "cluster"


@dataclass(frozen=True)
class Instance:
    """``ARGOSY_CLUSTER=2`` is instance 2. Raises ValueError for a number out of 1 to 31."""

    number: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= LARGEST:
            raise ValueError(f"ARGOSY_CLUSTER={self.number}: instances are numbered 1 to {LARGEST}")

    @classmethod
    def from_environment(cls) -> Instance:
        """The instance that ``ARGOSY_CLUSTER`` names; 1 without it."""
        text = os.environ.get("ARGOSY_CLUSTER", "").strip() or "1"
        if not text.isdigit():
            raise ValueError(f"ARGOSY_CLUSTER={text!r}: a number, 1 to {LARGEST}")
        return cls(int(text))

    @property
    def name(self) -> str:
        """Prefix of network namespaces and cgroups; the host's end of the link and the control plane's namespace."""
        return f"argosy{self.number}"

    def namespace(self, member: str) -> str:
        """Network namespace of a node or of ``s3``."""
        return f"{self.name}-{member}"

    def address(self, host: int) -> str:
        """An address of the network that the machine, the control plane, the nodes and the S3 gateway share."""
        return f"198.18.{self.number}.{host}"

    @property
    def machine_address(self) -> str:
        """This machine, as pods see it."""
        return self.address(1)

    @property
    def control_address(self) -> str:
        """API server, DNS, webhooks."""
        return self.address(2)

    @property
    def s3_address(self) -> str:
        """The S3 gateway: the same from pods and from this machine."""
        return self.address(3)

    def node_address(self, index: int) -> str:
        """Address of node ``index``, counted from 1."""
        return self.address(10 + index)

    def pod_network(self, index: int) -> str:
        """Network of the pods of node ``index``."""
        return f"198.19.{self.number * 8 + index}.0/24"

    @property
    def folder(self) -> Path:
        """State of this instance: wiped at its start, its logs kept until the next one."""
        return cache_folder() / f"instance-{self.number}"

    def part(self, *names: str) -> Path:
        """A folder below the instance's own, made when missing."""
        folder = self.folder.joinpath(*names)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / "pki" / "admin.kubeconfig"


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold ``name`` against other programs: two starters of an instance would sweep each other's processes."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
