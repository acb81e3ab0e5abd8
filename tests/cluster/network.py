"""The network of an instance: a namespace for the control plane with a bridge in it, one for each node and for S3.

Everything but the host's end of one cable lives in namespaces, and whatever runs in one of them belongs to the
instance: that is how leftovers are found.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from tests.cluster.instance import API_SERVICE, NODE_NAMES, Instance
from tests.cluster.process import run
from tests.cluster.progress import ClusterError, wait_for

BRIDGE = "bridge"


def create(instance: Instance) -> None:
    """Namespaces, cables, addresses and routes."""
    control = instance.name
    run("ip", "netns", "add", control)
    _inside(control, f"link add {BRIDGE} type bridge", "link set lo up")
    for address in (f"{instance.control_address}/24", f"{API_SERVICE}/32"):
        _inside(control, f"address add {address} dev {BRIDGE}")
    _inside(control, f"link set {BRIDGE} up")
    run("nsenter", f"--net=/run/netns/{control}", "sysctl", "-qw", "net.ipv4.ip_forward=1")
    # The machine's end has the instance's name; the other is a port of the bridge.
    run("ip", "link", "add", control, "type", "veth", "peer", "name", "machine", "netns", control)
    _inside(control, f"link set machine master {BRIDGE} up")
    run("ip", "address", "add", f"{instance.machine_address}/24", "dev", control)
    run("ip", "link", "set", control, "up")
    _attach(instance, "s3", instance.s3_address)
    for index, node in enumerate(NODE_NAMES, 1):
        _attach(instance, node, instance.node_address(index))
    for index in range(1, len(NODE_NAMES) + 1):
        route = f"route add {instance.pod_network(index)} via {instance.node_address(index)}"
        run("ip", *route.split())
        members = [control, *(instance.namespace(n) for i, n in enumerate(("s3", *NODE_NAMES)) if i != index)]
        for member in members:
            _inside(member, route)


def _attach(instance: Instance, member: str, address: str) -> None:
    """A namespace whose eth0 is a port of the bridge; the port has the member's name."""
    namespace = instance.namespace(member)
    run("ip", "netns", "add", namespace)
    run("ip", "-n", instance.name, "link", "add", member, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    _inside(instance.name, f"link set {member} master {BRIDGE} up")
    _inside(namespace, "link set lo up", f"address add {address}/24 dev eth0", "link set eth0 up")
    _inside(namespace, f"route add default via {instance.control_address}")
    run("nsenter", f"--net=/run/netns/{namespace}", "sysctl", "-qw", "net.ipv4.ip_forward=1")


def _inside(namespace: str, *commands: str) -> None:
    for command in commands:
        run("ip", "-n", namespace, *command.split())


def cable(instance: Instance, member: str, state: str) -> None:
    """``up`` or ``down``: the member's port of the bridge."""
    _inside(instance.name, f"link set {member} {state}")


def limit(instance: Instance, member: str, rate: str | None) -> None:
    """Let at most ``rate`` (tc's word: ``256kbit``) through the member's cable, each way; None: no limit."""
    throttle(instance.name, member, rate)
    throttle(instance.namespace(member), "eth0", rate)


def throttle(namespace: str, device: str, rate: str | None) -> None:
    """One direction of a cable: what leaves a namespace by ``device``."""
    enter = ("nsenter", f"--net=/run/netns/{namespace}", "tc", "qdisc")
    if rate is not None:
        run(*enter, "replace", "dev", device, "root", *f"tbf rate {rate} burst 32kb latency 2s".split())
    elif "tbf" in run(*enter, "show", "dev", device):
        run(*enter, "del", "dev", device, "root")


def namespaces(instance: Instance) -> list[str]:
    """Those of this instance that exist."""
    own = (instance.name, *(instance.namespace(member) for member in ("s3", *NODE_NAMES)))
    return [name for name in own if Path("/run/netns", name).exists()]


def members(instance: Instance) -> list[int]:
    """Processes in any of the instance's namespaces. Pods have networks of their own; they end with their node."""
    inodes = set()
    for name in namespaces(instance):
        inodes.add(os.stat(f"/run/netns/{name}").st_ino)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(entry / "ns" / "net").st_ino in inodes:
                    found.append(int(entry.name))
    return found


def remove(instance: Instance) -> int:
    """End every process of the instance and take its network away. Returns how many processes there were."""
    first = members(instance)

    def gone() -> bool:
        # Ask again each time: a process may have forked between the look and the blow.
        left = members(instance)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    wait_for("the instance's processes to end", gone, 30)
    for name in namespaces(instance):
        run("ip", "netns", "delete", name)
    with contextlib.suppress(ClusterError):  # it went with its peer's namespace, a moment later
        run("ip", "link", "delete", instance.name)
    wait_for("the instance's link to go", lambda: not Path("/sys/class/net", instance.name).exists(), 10)
    return len(first)
