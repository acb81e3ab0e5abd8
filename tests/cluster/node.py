"""A node of the cluster: kubelet and containerd in namespaces of their own, with a power switch and a cable."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import cgroups, network
from tests.cluster.api import JSON_PATCH, Api
from tests.cluster.images import PAUSE
from tests.cluster.instance import NODE_NAMES, Instance
from tests.cluster.node_init import SOCKET
from tests.cluster.process import Process, run
from tests.cluster.progress import ClusterError, wait_for

READY_SECONDS = 60


@dataclass(frozen=True)
class Node:
    """``node-a``, ``node-b`` or ``node-c``."""

    name: str
    instance: Instance
    api: Api

    @property
    def index(self) -> int:
        """Counted from 1."""
        return NODE_NAMES.index(self.name) + 1

    @property
    def folder(self) -> Path:
        """Its disk: images, pods' volumes, logs of pods."""
        return self.instance.part("nodes", self.name)

    @cached_property
    def process(self) -> Process:
        """The namespaces' keeper; process 1 of the node is its child."""
        return Process(self.name, self.instance.folder)

    def up(self) -> None:
        """Switch it on. It is not Ready yet: ``wait_ready``."""
        cgroups.create(self.instance, self.name)
        self._configure()
        python = [sys.executable, "-I", str(Path(__file__).with_name("node_init.py")), str(self.folder)]
        own = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
        self.process.start([*own, *python], self.instance.namespace(self.name))

    @property
    def init(self) -> int | None:
        """Pid, as this machine sees it, of the node's process 1."""
        if (keeper := self.process.pid) is None:
            return None
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        return int(children[0]) if children else None

    def kill(self) -> None:
        """Cut the power: every process of the node ends at once; its disk stays."""
        if (init := self.init) is not None:
            os.kill(init, signal.SIGKILL)
        wait_for(f"{self.name} to be off", lambda: self.process.pid is None, 20)

    def partition(self) -> None:
        """Pull the cable: the node and its pods go on, nobody hears them."""
        network.cable(self.instance, self.name, "down")

    def heal(self) -> None:
        """Put the cable back."""
        network.cable(self.instance, self.name, "up")

    def run(self, *command: str | Path, timeout: float = 60) -> str:
        """Run a command on the node, as root (``ctr``, ``crictl``, ``kill``). Returns its output."""
        if (init := self.init) is None:
            raise ClusterError(f"{self.name} is off")
        enter = ("nsenter", "--target", str(init), "--mount", "--uts", "--ipc", "--pid", "--net", "--")
        return run(*enter, *command, timeout=timeout)

    def load(self, archive: Path) -> None:
        """Import an image archive."""
        self.run("ctr", "-n", "k8s.io", "images", "import", archive.resolve(), timeout=300)

    @property
    def ready(self) -> bool:
        """As the API server says it."""
        found = self.api.get("v1", "Node", self.name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def wait_ready(self, ready: bool = True, seconds: float = READY_SECONDS) -> None:
        """Wait until the API server calls it Ready, or no longer does."""
        logs = self.instance.folder / "log"
        state = "Ready" if ready else "not Ready"
        wait_for(f"{self.name} {state}", lambda: self.ready == ready, seconds, f"logs: {logs}/{self.name}*.log")

    def offer(self, resource: str, count: int) -> None:
        """Give the node an extended resource (``nvidia.com/gpu``) that pods can ask for; no device stands behind it."""
        path = resource.replace("/", "~1")
        fields = ("capacity", "allocatable")
        patch = [{"op": "add", "path": f"/status/{field}/{path}", "value": str(count)} for field in fields]
        self.api.request("PATCH", f"/api/v1/nodes/{self.name}/status", patch, JSON_PATCH)

    def _configure(self) -> None:
        folder, instance = self.folder, self.instance
        networks = {
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "cni0",
                    "isGateway": True,
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": instance.pod_network(self.index)}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                        "dataDir": "/var/lib/cni",
                    },
                }
            ],
        }
        (folder / "networks").mkdir(exist_ok=True)
        (folder / "networks" / "pods.conflist").write_text(json.dumps(networks))
        (folder / "containerd.toml").write_text(self._containerd())
        (folder / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet()))
        settings = {
            "name": self.name,
            "logs": str(instance.folder / "log"),
            "images": [str(path) for path in sorted(instance.part("images").glob("*.tar"))],
            "containerd": ["containerd", "-c", str(folder / "containerd.toml")],
            "kubelet": [
                str(instance.folder / "bin" / "kubelet"),
                f"--config={folder / 'kubelet.yaml'}",
                f"--kubeconfig={instance.folder / 'pki' / self.name}.kubeconfig",
                f"--hostname-override={self.name}",
                f"--node-ip={instance.node_address(self.index)}",
                f"--node-labels=topology.kubernetes.io/zone=zone-{self.index}",
                "--root-dir=/var/lib/kubelet",
                f"--cert-dir={folder / 'certificates'}",
            ],
        }
        (folder / "node.json").write_text(json.dumps(settings))

    def _containerd(self) -> str:
        # restrict_oom_score_adj: machines without CAP_SYS_RESOURCE refuse negative scores.
        return f"""version = 2
root = "{self.folder}/containerd"
state = "/run/containerd/state"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  enable_selinux = false
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{self.folder}/networks"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{self.instance.folder}/base-spec.json"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""

    def _kubelet(self) -> dict[str, Any]:
        pki = self.instance.folder / "pki"
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroups.root(self.instance, self.name),
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(pki / "ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(pki / f"{self.name}.crt"),
            "tlsPrivateKeyFile": str(pki / f"{self.name}.key"),
            "clusterDNS": [self.instance.control_address],
            "clusterDomain": "cluster.local",
            "resolvConf": "",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "volumePluginDir": str(self.folder / "volume-plugins"),
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
                "nodefs.inodesFree": "1%",
            },
            "maxPods": 100,
            "nodeLeaseDurationSeconds": 4,
            "nodeStatusUpdateFrequency": "2s",
            "serializeImagePulls": False,
            "makeIPTablesUtilChains": False,
        }
