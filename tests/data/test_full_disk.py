"""A disk that really fills up while data are staged: a small tmpfs in a mount namespace of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.data.manifest import DatasetManifest

PROGRAM = """
import subprocess, sys
from pathlib import Path
from argosy.steps.contract.errors import StepError
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.data.staging import stage_objects

manifest, into = DatasetManifest.from_bytes(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2])
try:
    stage_objects(manifest, manifest, into)
except StepError as error:
    print(error.cause, int(error.code))
print((into / ".argosy-stage/complete.json").exists(), len(list((into / ".argosy-stage/parts").iterdir())))
subprocess.run(["mount", "-o", "remount,nr_inodes=1000,size=20m", into], check=True)
print(stage_objects(manifest, manifest, into).fetched_objects < manifest.count)
print(all((into / one.key).read_bytes() == one.key.encode() * 50 for one in manifest))
"""


@pytest.fixture
def on_tmpfs(tmp_path: Path) -> Callable[[str, DatasetManifest], list[str]]:
    """Run PROGRAM with a tmpfs of the given options at the folder it stages into."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here: a full disk cannot be made")

    def run(options: str, manifest: DatasetManifest) -> list[str]:
        (tmp_path / "program.py").write_text(PROGRAM)
        (tmp_path / "manifest").write_bytes(manifest.to_bytes())
        (tmp_path / "in").mkdir()
        script = 'mount -t tmpfs -o "$1" none "$2" && exec "$3" "$4" "$5" "$2"'
        paths = [tmp_path / "in", sys.executable, tmp_path / "program.py", tmp_path / "manifest"]
        command = ["unshare", "-rm", "sh", "-c", script, "sh", options, *map(str, paths)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert told.returncode == 0, told.stderr
        return told.stdout.splitlines()

    return run


def test_no_room_for_a_folder(
    dataset: Callable[..., DatasetManifest], on_tmpfs: Callable[[str, DatasetManifest], list[str]]
) -> None:
    keys = [f"folder-{i}/file" for i in range(20)]
    # Room for 20 files, which is what can be known beforehand, but not for their folders.
    lines = on_tmpfs("size=20m,nr_inodes=35", dataset({key: key.encode() * 50 for key in keys}))
    assert lines == ["disk_full 75", "False 0", "True", "True"]
