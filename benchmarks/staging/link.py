"""A link between two network namespaces of this machine, as fast as tc lets it be."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

MTU = 9_000
_HEADERS = 20 + 32
"""IPv4, and TCP with its timestamps."""
_ETHERNET = 14


class LinkError(Exception):
    """No such link can be made here; the text says why."""


@dataclass(frozen=True)
class Link:
    """``host``: the far end's address; ``within``: a command that runs its arguments there; ``payload``: bytes/s."""

    host: str
    within: tuple[str, ...]
    payload: float


@contextmanager
def capped_link(mbit: int) -> Iterator[Link]:
    """A pair of virtual devices, the far one in a namespace of its own, what it sends capped by a token bucket.

    Jumbo frames as in the clouds' networks, which also leave the cap to the payload. Removed at the end.

    Raises:
        LinkError: no root, no iproute2, or a kernel that refuses.
    """
    if os.geteuid() != 0:
        raise LinkError("a network namespace needs root")
    if not (shutil.which("ip") and shutil.which("tc")):
        raise LinkError("iproute2 is not here (ip, tc)")
    name, number = f"argosy-{os.getpid()}", os.getpid() % 250
    near, far, device = f"10.251.{number}.1", f"10.251.{number}.2", f"ab{os.getpid()}"
    there = ("ip", "netns", "exec", name)
    try:
        _ran("ip", "netns", "add", name)
        _ran(
            "ip", "link", "add", device, "mtu", str(MTU), "type", "veth", "peer", "up0", "mtu", str(MTU), "netns", name
        )
        _ran("ip", "address", "add", f"{near}/30", "dev", device)
        _ran("ip", "link", "set", device, "up")
        for words in (f"ip address add {far}/30 dev up0", "ip link set up0 up", "ip link set lo up"):
            _ran(*there, *words.split())
        bucket = f"tc qdisc add dev up0 root tbf rate {mbit}mbit burst 1mb latency 50ms"
        _ran(*there, *bucket.split())
        yield Link(far, there, mbit * 1e6 / 8 * (MTU - _HEADERS) / (MTU + _ETHERNET))
    finally:
        # The devices go with the namespace.
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _ran(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LinkError(f"{' '.join(command)}: {done.stderr.strip()}")
