"""Where the cluster's programs and their manifests come from: looked for, unpacked, or built."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.building import build
from tests.cluster.images import CHECKOUT
from tests.cluster.instance import alone
from tests.cluster.pin import Pin, pins
from tests.cluster.process import run
from tests.cluster.progress import say

PACKED = CHECKOUT.parent / "shared" / "cluster"
"""Archives of what the pins would build; PINS lists them."""
KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
"""Names of ``kube``: one program that acts by the name it is called."""


def find(pin: Pin) -> Path | None:
    """The folder that holds all of a pin's programs and manifests; None when they must be built."""
    given = os.environ.get("ARGOSY_CLUSTER_BIN")
    for folder in (pin.cached, *([Path(given).resolve()] if given else [])):
        programs = all(os.access(folder / name, os.X_OK) for name in pin.packages)
        if programs and all((pin.manifest_folder(folder) / name).is_dir() for name in pin.manifests):
            return folder
    return None


def absent(wanted: Mapping[str, Pin] | None = None) -> list[Pin]:
    """Those of ``wanted`` (all that a cluster needs) that would have to be built."""
    with alone("binaries"):
        missing = [pin for pin in (wanted or pins()).values() if find(pin) is None]
        if offered := [pin for pin in missing if _offered(pin)]:
            _unpack(offered)
    return [pin for pin in missing if pin not in offered]


def obtain(wanted: Mapping[str, Pin] | None = None) -> dict[str, Path]:
    """The folder of every pin; what is nowhere is built, once. Raises ClusterError when that fails."""
    for pin in absent(wanted):
        with alone("binaries"):
            if find(pin) is None:
                build(pin)
    return {name: found for name, pin in (wanted or pins()).items() if (found := find(pin))}


def _offered(pin: Pin) -> bool:
    """Whether the archives have its programs, at its version."""
    if not (PACKED / "PINS").exists():
        return False
    rows = [line.split(maxsplit=3) for line in (PACKED / "PINS").read_text().splitlines() if line[:1] != "#"]
    return set(pin.packages) <= {row[1] for row in rows if row[3].split()[:2] == [pin.module, pin.version]}


def _unpack(offered: list[Pin]) -> None:
    """Their script checks every SHA-256."""
    say(f"unpacking {', '.join(pin.name for pin in offered)} from {PACKED}")
    above = pins()["kube"].cached.parent
    above.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix="unpacking.", dir=above))
    run("bash", PACKED / "unpack.sh", part, *(name for pin in offered for name in pin.packages), timeout=3600)
    with tarfile.open(PACKED / "manifests.tar.xz") as archive:
        # Python 3.11.2, which Debian 12 has, knows no filters.
        archive.extractall(part / "manifests", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    for pin in offered:
        shutil.rmtree(pin.cached, ignore_errors=True)
        pin.cached.mkdir()
        for name in pin.packages:
            (part / name).rename(pin.cached / name)
        for name in pin.manifests:
            shutil.copytree(part / "manifests" / pin.name / name, pin.manifest_folder(pin.cached) / name)
    shutil.rmtree(part)


def link(folders: dict[str, Path], target: Path) -> None:
    """All programs by name in one folder, for an instance and for its users' PATH."""
    for name, pin in pins().items():
        for program in pin.packages:
            (target / program).symlink_to(folders[name] / program)
    for program in KUBERNETES:
        (target / program).symlink_to(folders["kube"] / "kube")
