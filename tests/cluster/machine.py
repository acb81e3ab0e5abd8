"""What the machine itself must bring: Linux, root, and a few packages of its distribution."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from tests.cluster.process import run
from tests.cluster.progress import ClusterError, say

BRIDGE_PLUGIN = Path("/usr/lib/cni/bridge")
PROGRAMS = {"containerd": "containerd", "runc": "runc", "ip": "iproute2", "nsenter": "util-linux", "git": "git"}
"""Program to Debian's package."""


def need_root() -> None:
    """Raises ClusterError for anybody else."""
    if os.geteuid() != 0:
        raise ClusterError("a cluster needs root, for namespaces, cgroups and containerd: sudo make cluster")


def _missing() -> list[str]:
    packages = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    return packages + ([] if BRIDGE_PLUGIN.exists() else ["containernetworking-plugins"])


def why_not() -> str:
    """Why no cluster can run here; empty when it can, perhaps after an installation of packages."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"{platform.system()} on {platform.machine()} (the cluster needs Linux on x86_64)"
    if os.geteuid() != 0:
        return "not root"
    if (missing := _missing()) and shutil.which("apt-get") is None:
        return f"no apt-get to install {', '.join(missing)}"
    return ""


def prepare() -> None:
    """Install what is missing. Raises ClusterError when it cannot."""
    if reason := why_not():
        raise ClusterError(reason)
    if missing := _missing():
        say(f"installing {', '.join(missing)}")
        run("apt-get", "update", "-qq", timeout=300)
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing, timeout=600)
