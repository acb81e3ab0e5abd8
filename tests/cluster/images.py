"""Image archives without a registry and without a builder.

A thin image holds links to the machine's ``/usr`` and to the project's interpreter, and a copy of a checkout's code;
a mount in every container (``base_spec``) puts the targets there. The names are those that compiled manifests use.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.process import run

CHECKOUT = Path(__file__).resolve().parents[2]
VERSION = "0.1.0"
PAUSE = "argosy.local/pause:1"
CODE = "/opt/argosy/code"
MACHINE = "/opt/argosy/machine"
"""Where the machine's own folders are mounted in a container."""
EXECUTOR = f"{MACHINE}/argoexec"
VENV = f"{MACHINE}/venv"
MACHINE_FOLDERS = ("/usr", "/etc/ssl", "/etc/alternatives")
ROOMS = ("argosy", "steps", "workflows", "examples")
USERS = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"


class Archive:
    """A one-layer image, written as ``docker save`` writes it."""

    def __init__(self) -> None:
        self._layer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._layer, mode="w")  # noqa: SIM115 (closed by write)

    def _add(self, path: str, kind: bytes, mode: int, link: str = "", data: bytes = b"") -> None:
        info = tarfile.TarInfo(path.strip("/"))
        info.type, info.mode, info.linkname, info.size = kind, mode, link, len(data)
        self._tar.addfile(info, io.BytesIO(data))

    def folder(self, path: str, mode: int = 0o755) -> None:
        """An empty folder."""
        self._add(path, tarfile.DIRTYPE, mode)

    def link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self._add(path, tarfile.SYMTYPE, 0o777, link=target)

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """A file of root's."""
        self._add(path, tarfile.REGTYPE, mode, data=data)

    def write(self, target: Path, names: Sequence[str], environment: dict[str, str], entry: Sequence[str] = ()) -> None:
        """The archive, whole or not at all; the same content gives the same bytes."""
        self._tar.close()
        layer = self._layer.getvalue()
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": [f"{k}={v}" for k, v in environment.items()], "Entrypoint": [*entry], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
        encoded = json.dumps(config).encode()
        name = f"{hashlib.sha256(encoded).hexdigest()}.json"
        manifest = json.dumps([{"Config": name, "RepoTags": [*names], "Layers": ["layer.tar"]}]).encode()
        part = target.with_suffix(".part")
        with tarfile.open(part, "w") as out:
            for path, data in ((name, encoded), ("layer.tar", layer), ("manifest.json", manifest)):
                info = tarfile.TarInfo(path)
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
        os.replace(part, target)


def pause(target: Path) -> None:
    """The program of a pod's sandbox: an executable of one instruction sequence, pause() for ever."""
    code = bytes.fromhex("b822000000 0f05 ebf7")  # mov eax, 34 (pause); syscall; jmp to the mov
    base, headers = 0x400000, 64 + 56
    start = base + headers
    elf = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 2, 62, 1, start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    size = headers + len(code)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    archive = Archive()
    archive.file("pause", elf + segment + code, 0o755)
    archive.write(target, [PAUSE], {}, ["/pause"])


def executor(target: Path, version: str) -> None:
    """Argo's executor: a static program, mounted as the machine's folders are (it has 113 MB), in an empty image."""
    archive = Archive()
    archive.folder("tmp", 0o1777)
    archive.file("etc/passwd", USERS.encode())
    archive.link("bin/argoexec", EXECUTOR)
    archive.write(target, [f"quay.io/argoproj/argoexec:{version}"], {"PATH": "/bin"}, ["argoexec"])


def thin(target: Path, names: Sequence[str]) -> None:
    """``names`` over this machine's Python, with this checkout's code in it."""
    archive = Archive()
    for path in ("tmp", "var/tmp"):
        archive.folder(path, 0o1777)
    archive.file("etc/passwd", USERS.encode())
    archive.file("etc/group", b"root:x:0:\n")
    archive.file("etc/nsswitch.conf", b"hosts: files dns\n")
    for path in MACHINE_FOLDERS:
        archive.link(path, MACHINE + path)
    for path in ("bin", "sbin", "lib", "lib64"):
        archive.link(path, f"usr/{path}")
    for source in _code():
        name = f"{CODE}/{source.relative_to(CHECKOUT)}"
        if source.is_symlink():
            archive.link(name, os.readlink(source))
        else:
            archive.file(name, source.read_bytes(), 0o755 if os.access(source, os.X_OK) else 0o644)
    # As images/*.Dockerfile: user 1000 without a password entry, and /argosy its own.
    archive.folder("argosy", 0o777)
    environment = {
        "PATH": f"{VENV}/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": CODE,
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/argosy",
    }
    archive.write(target, names, environment)


def _code() -> list[Path]:
    listed = run("git", "-C", CHECKOUT, "ls-files", "-co", "--exclude-standard", "-z", *ROOMS).split("\0")
    paths = (CHECKOUT / name for name in listed if name)
    return sorted(path for path in paths if path.is_file() or path.is_symlink())


def project_names() -> list[str]:
    """The two images that a compiled manifest names."""
    return [f"docker.io/argosy/{room}:{VERSION}" for room in ("step", "trainer")]


EXAMPLES = ["docker.io/library/python:3.11-slim"]
"""What users' own tasks in the examples name."""


def base_spec(target: Path, argoexec: Path) -> None:
    """What containerd gives every container: its defaults, and the machine's folders, read only.

    A mount needs no rights on the folders above its source: an interpreter below a home of mode 700 serves user 1000.
    """
    spec = json.loads(run("ctr", "oci", "spec"))
    mounts = {MACHINE + folder: folder for folder in MACHINE_FOLDERS}
    mounts |= {EXECUTOR: str(argoexec.resolve()), VENV: sys.prefix}
    for folder in {sys.base_prefix, sys.prefix}:  # where links and first lines of scripts expect them
        if not folder.startswith("/usr/"):
            mounts[folder] = folder
    options = ["rbind", "ro"]
    for destination, source in sorted(mounts.items()):
        spec["mounts"].append({"destination": destination, "type": "bind", "source": source, "options": options})
    target.write_text(json.dumps(spec))
