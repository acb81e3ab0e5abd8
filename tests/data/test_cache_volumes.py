"""The cache on volumes of their own kind: one that fills up, one that is mounted read-only, another kernel's."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.data.manifest import DatasetManifest

Dataset = Callable[..., DatasetManifest]
Inside = Callable[..., list[str]]

PREAMBLE = """
import os, subprocess, sys
from pathlib import Path
from argosy.steps.contract.errors import StepError
from argosy.steps.data.cache.use import Cache, use
from argosy.steps.data.manifest import DatasetManifest

def load(path):
    return DatasetManifest.from_bytes(Path(path).read_bytes())

def attempt(cache, manifest, who="x"):
    try:
        with use(cache, manifest, manifest, who=who) as used:
            whole = all((used.path / one.key).stat().st_size == one.size for one in manifest)
            print("used", used.result.fetched_bytes, whole)
    except StepError as error:
        print("refused", error.cause, int(error.code), error)

def here(root):
    return sorted(name[:6] for name in os.listdir(root) if not name.startswith("."))

root = Path(sys.argv[1])
a, b, *more = [load(path) for path in sys.argv[2:]]
cache = Cache(root)
"""

FULL = """
with use(cache, a, a, who="pod a"):
    attempt(cache, b)
print(here(root) == [a.digest[:6]])
(root / "other").write_bytes(b"o" * 1_000_000)
attempt(cache, b)
print(here(root) == sorted([b.digest[:6], "other"]))
(root / "other").write_bytes(b"o" * 4_100_000)
attempt(cache, a)
print(here(root) == sorted([b.digest[:6], "other"]), os.path.getsize(root / "other"))
"""

SURPRISE = """
# Somebody else takes the room after it was found to be there.
from argosy.steps.data.staging import StageProgress
took = []
def take(now: StageProgress) -> None:
    if not took:
        took.append((root / "other").write_bytes(b"o" * 2_500_000))
attempt(cache, a)
with use(cache, b, b, who="x", on_progress=take) as used:
    print(sum((used.path / one.key).stat().st_size for one in b), here(root) == sorted([b.digest[:6], "other"]))
"""

READ_ONLY = """
attempt(cache, a)
mount = root.parent / "read-only"
mount.mkdir()
subprocess.run(["mount", "--bind", root, mount], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", mount], check=True)
attempt(Cache(mount), b)
with use(Cache(mount, verify="full"), a, a, who="reader") as used:
    print(used.path.parent == mount, used.result.fetched_bytes)
    attempt(Cache(root, size_gib=5e6 / (1 << 30)), b)
attempt(Cache(root, size_gib=5e6 / (1 << 30)), b)
attempt(Cache(mount), a)
"""

KERNELS = """
import signal, time
(root.parent / "boot").write_text("11111111-another-kernel\\n")
inner = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"'
command = [sys.executable, os.environ["CACHE_USER"], sys.argv[2], str(root), "pod on the other kernel"]
child = subprocess.Popen(
    ["unshare", "-m", "sh", "-c", inner, "sh", str(root.parent / "boot"), *command], stdin=-1, stdout=-1
)
while b"using" not in child.stdout.readline():
    pass
# Silent for long: but its lock is refused, and that is proof of life.
(lease,) = (root / ".argosy-cache" / "leases").iterdir()
os.utime(lease, (0, 0))
attempt(Cache(root, size_gib=5e6 / (1 << 30)), b)
child.kill()
child.wait()
os.utime(lease, (0, 0))
attempt(Cache(root, size_gib=5e6 / (1 << 30)), b)
"""


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    """Run a program with a tmpfs of the given options as the cache's volume; what it printed."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here: a volume cannot be made")

    def run(program: str, options: str, *manifests: DatasetManifest) -> list[str]:
        (tmp_path / "program.py").write_text(PREAMBLE + program)
        (tmp_path / "cache").mkdir()
        paths = []
        for number, manifest in enumerate(manifests):
            paths.append(tmp_path / f"manifest-{number}")
            paths[-1].write_bytes(manifest.to_bytes())
        script = 'mount -t tmpfs -o "$1" none "$4" && exec "$2" "$3" "$4" "$5" "$6"'
        given = [sys.executable, tmp_path / "program.py", tmp_path / "cache", *paths]
        command = ["unshare", "-rm", "sh", "-c", script, "sh", options, *map(str, given)]
        environ = {
            "CACHE_USER": str(Path(__file__).with_name("cache_user.py")),
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        }
        told = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ)
        assert told.returncode == 0, told.stderr
        return [line for line in told.stdout.splitlines() if not line.startswith("argosy: ")]

    return run


@pytest.fixture
def two(dataset: Dataset) -> tuple[DatasetManifest, DatasetManifest]:
    """Two datasets of 4 MB each."""
    draw = random.Random(0)
    return tuple(dataset({f"{n}": draw.randbytes(100_000) for n in range(40)}, name=name) for name in "ab")  # type: ignore[return-value]


def test_a_full_volume_names_who_holds_the_room(inside: Inside, two: tuple[DatasetManifest, ...]) -> None:
    lines = inside(FULL, "size=8m", *two)
    assert lines[0].startswith("refused disk_full 75")
    assert f"{two[0].digest[:12]} of {two[0].uri}: 3.8 MiB, in use by pod a (pid" in lines[0]
    assert "what is idle would free 0 bytes: wait for a run to end" in lines[0]
    assert lines[1:4] == ["True", "used 4000000 True", "True"], "what was idle went, what is not ours stayed"
    assert lines[4].startswith("refused disk_full 78")
    assert "other files: " in lines[4]
    assert "what is idle would free 3.8 MiB: give the volume more room" in lines[4]
    assert lines[5] == "True 4100000", "nothing went in vain"


def test_room_that_vanishes_while_filling_is_made_again(inside: Inside, two: tuple[DatasetManifest, ...]) -> None:
    assert inside(SURPRISE, "size=10m", *two)[-1] == "4000000 True"


def test_a_read_only_mount_is_used_and_its_reader_is_seen(inside: Inside, two: tuple[DatasetManifest, ...]) -> None:
    lines = inside(READ_ONLY, "size=20m", *two)
    assert lines[0] == "used 4000000 True"
    assert lines[1].startswith("refused volume_mount 78")
    assert "cannot be written (Read-only file system) and does not hold the dataset" in lines[1]
    assert lines[2] == "True 0"
    assert lines[3].startswith("refused disk_full 75")
    assert "in use by a pod that mounts it read-only" in lines[3]
    assert lines[4] == "used 4000000 True"
    assert lines[5].startswith("refused volume_mount 78")


def test_a_lock_that_is_refused_is_proof_of_life_on_any_kernel(
    inside: Inside, two: tuple[DatasetManifest, ...]
) -> None:
    lines = inside(KERNELS, "size=20m", *two)
    assert "in use by pod on the other kernel (pid" in lines[0]
    assert lines[1] == "used 4000000 True"
