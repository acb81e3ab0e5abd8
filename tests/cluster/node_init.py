"""Process 1 of a node, in mount, UTS, IPC and PID namespaces of its own: ``node_init.py FOLDER``.

Standard library only. Kill it and the node has lost its power: kubelet, containerd and every container end with it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

BINDINGS = {
    "kubelet": "/var/lib/kubelet",
    "cni": "/var/lib/cni",
    "pod-logs": "/var/log/pods",
    "container-logs": "/var/log/containers",
}
"""Folders at fixed paths (device plugins, the bridge's leases): each node has its own."""
VOLATILE = ("/run/containerd", "/run/netns")
SOCKET = "/run/containerd/containerd.sock"


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def own_file_system(folder: Path) -> None:
    mount("--make-rshared", "/")
    for name, target in BINDINGS.items():
        (folder / name).mkdir(exist_ok=True)
        Path(target).mkdir(parents=True, exist_ok=True)
        mount("--bind", str(folder / name), target)
    for target in VOLATILE:
        Path(target).mkdir(parents=True, exist_ok=True)
        mount("-t", "tmpfs", "tmpfs", target)
    for target in ("/var/lib/kubelet", *VOLATILE):
        mount("--make-rshared", target)


def spawn(name: str, logs: Path, command: list[str]) -> None:
    with (logs / f"{name}.log").open("ab") as log:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def listening(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except OSError:
            return False
        return True


def main() -> None:
    folder = Path(sys.argv[1])
    settings = json.loads((folder / "node.json").read_text())
    socket.sethostname(settings["name"])
    own_file_system(folder)
    logs = Path(settings["logs"])
    spawn(f"{settings['name']}-containerd", logs, settings["containerd"])
    deadline = time.monotonic() + 60
    while not listening(SOCKET):
        if time.monotonic() > deadline:
            sys.exit("containerd does not listen after 60 s")
        time.sleep(0.05)
    for archive in settings["images"]:
        subprocess.run(["ctr", "-n", "k8s.io", "images", "import", archive], check=True)
    spawn(f"{settings['name']}-kubelet", logs, settings["kubelet"])
    print("started", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:  # every orphan of the node becomes a child of process 1
        os.wait()


if __name__ == "__main__":
    main()
