"""The two images from their real Dockerfiles, and a training on a cluster whose pods run in them.

No registry is asked: the bases are made here, of Debian's packages (`debootstrap`) and, for the trainer, of torch from
the ordinary index. Needs root, `debootstrap` and `buildah`; takes about a quarter of an hour and 20 GB of disk.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.training import new_training
from tests.prove.record import ROOT, Record, kept

COUNT = 3
TAG = "built"
BASE = "localhost/argosy-base"
PACKAGES = "python3,python3-pip,python3-venv,ca-certificates"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
COLUMNS = ["image", "MB", "seconds", "held", "error"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Build both, then train; 0 when all held."""
    record = Record("images", seed)
    todo = [case for number, case in enumerate((_step, _trainer, _train)) if number in record.left(count)]
    record.go_on(todo, _judged, max(minutes, 60))
    return record.told("Images from their Dockerfiles", COLUMNS)


def _judged(case: Any) -> dict[str, Any]:
    began = time.monotonic()
    try:
        found = case()
    except (AssertionError, subprocess.CalledProcessError) as error:
        print(getattr(error, "stderr", None) or error, flush=True)
        return {"image": case.__name__, "held": False, "error": " ".join(str(error).split())[:200]}
    return {**found, "seconds": round(time.monotonic() - began), "held": True, "error": ""}


def _step() -> dict[str, Any]:
    _debian()
    return _built("step", BASE)


def _trainer() -> dict[str, Any]:
    _debian()
    name = f"{BASE}-torch"
    if not _there(name):
        made = _buildah("from", BASE).strip()
        _buildah("run", "--network=host", made, "--", "pip", "install", "--no-cache-dir", "torch", "numpy")
        _buildah("commit", "--rm", made, name)
    return _built("trainer", name)


def _train() -> dict[str, Any]:
    """Two nodes and every step, in the images just built, on a cluster of this machine."""
    cluster = Cluster()
    with cluster.lent():
        for room in ("step", "trainer"):
            cluster.load(_archive(room))
        names = {f"{room}": f"docker.io/argosy/{room}:{TAG}" for room in ("step", "trainer")}
        top = f'image = "{names["trainer"]}"\nstep_image = "{names["step"]}"'
        with tempfile.TemporaryDirectory() as folder, cluster.namespace("images") as namespace:
            training = new_training(cluster, namespace, Path(folder) / "run", steps=20, tables={"top": top})
            training.submit()
            training.until_committed(3)
            used = {each["image"] for pod in training.pods() for each in pod["spec"]["containers"]}
            assert used == {names["trainer"]}, used
            training.kubectl("delete", "pod", training.pods()[0]["metadata"]["name"], "--wait=false")
            assert training.ended() == "Succeeded", training.tale()
    return {"image": "a training of two nodes in both, one pod deleted", "MB": ""}


def _built(room: str, base: str) -> dict[str, Any]:
    name = f"docker.io/argosy/{room}:{TAG}"
    file = ROOT / "images" / f"{room}.Dockerfile"
    _buildah("build", "--network=host", "--build-arg", f"BASE={base}", "-f", str(file), "-t", name, str(ROOT))
    archive = _archive(room)
    archive.unlink(missing_ok=True)
    _buildah("push", name, f"docker-archive:{archive}:{name}")
    return {"image": name, "MB": round(archive.stat().st_size / 1e6)}


def _archive(room: str) -> Path:
    kept().mkdir(parents=True, exist_ok=True)
    return kept() / f"image-{room}.tar"


def _debian() -> None:
    """A base with Python and pip, as the slim images have it; this machine's certificates and pip settings go in."""
    if _there(BASE):
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "stable", root], check=True)
        for name in ("python", "pip"):
            if not (root / "usr/bin" / name).exists():
                (root / "usr/bin" / name).symlink_to("python3" if name == "python" else "pip3")
        settings = Path("/etc/pip.conf").read_text() if Path("/etc/pip.conf").exists() else "[global]\n"
        (root / "etc/pip.conf").write_text(settings + "break-system-packages = true\n")
        shutil.copyfile(CERTIFICATES, root / CERTIFICATES.relative_to("/"))
        made = _buildah("from", "scratch").strip()
        _buildah("copy", made, str(root), "/")
        _buildah("config", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", made)
        _buildah("commit", "--rm", made, BASE)


def _there(name: str) -> bool:
    return bool(_buildah("images", "--quiet", "--filter", f"reference={name}").strip())


def _buildah(*words: str) -> str:
    """Without a user namespace or an OCI runtime of its own: it may run inside a container itself."""
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    done = subprocess.run(["buildah", *words], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout
