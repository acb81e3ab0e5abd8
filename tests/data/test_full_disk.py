"""A disk that really fills up while data are staged: a small tmpfs in a mount namespace of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest
from tests.data.kills import BUCKET, slowly
from tests.s3 import S3Server

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


FILLED = """
import os, sys, threading
from pathlib import Path
from argosy.steps.contract.errors import StepError
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.data.staging import stage_objects

manifest, into = DatasetManifest.from_bytes(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2])
parts = into / ".argosy-stage/parts"

def fill():
    # As soon as the first bytes come, somebody else takes what is left of the disk.
    while not parts.is_dir() or sum(path.stat().st_size for path in parts.iterdir()) < 100_000:
        pass
    with (into / ".argosy-stage/filler").open("wb", buffering=0) as target:
        try:
            while target.write(bytes(1 << 16)):
                pass
        except OSError:
            pass

threading.Thread(target=fill).start()
try:
    stage_objects(manifest, manifest, into)
except StepError as error:
    print(error.cause, int(error.code))
(into / ".argosy-stage/filler").unlink()
print(stage_objects(manifest, manifest, into).fetched_bytes < manifest.total_bytes)
print(sorted(path.name for path in parts.iterdir()))
print(all((into / one.key).stat().st_size == one.size for one in manifest))
"""


@pytest.fixture
def on_tmpfs(tmp_path: Path) -> Callable[..., list[str]]:
    """Run a program with a tmpfs of the given options at the folder it stages into."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here: a full disk cannot be made")

    def run(options: str, manifest: DatasetManifest, program: str = PROGRAM) -> list[str]:
        (tmp_path / "program.py").write_text(program)
        (tmp_path / "manifest").write_bytes(manifest.to_bytes())
        (tmp_path / "in").mkdir()
        script = 'mount -t tmpfs -o "$1" none "$2" && exec "$3" "$4" "$5" "$2"'
        paths = [tmp_path / "in", sys.executable, tmp_path / "program.py", tmp_path / "manifest"]
        command = ["unshare", "-rm", "sh", "-c", script, "sh", options, *map(str, paths)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert told.returncode == 0, told.stderr
        return told.stdout.splitlines()

    return run


def test_no_room_for_a_folder(dataset: Callable[..., DatasetManifest], on_tmpfs: Callable[..., list[str]]) -> None:
    keys = [f"folder-{i}/file" for i in range(20)]
    # Room for 20 files, which is what can be known beforehand, but not for their folders.
    lines = on_tmpfs("size=20m,nr_inodes=35", dataset({key: key.encode() * 50 for key in keys}))
    assert lines == ["disk_full 75", "False 0", "True", "True"]


def test_the_room_that_was_there_is_taken_in_the_middle(
    on_tmpfs: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``disk_full``, worth a retry; which goes on from what had come."""
    with S3Server((BUCKET,)) as server:
        server.plan, server.slow_seconds = slowly, 1.0
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "REGION": "us-east-1"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        for number in range(4):
            server.buckets[BUCKET].put(f"set/{number}", bytes([number]) * (5 << 20))
        lines = on_tmpfs("size=25m", take_snapshot(f"s3://{BUCKET}/set"), FILLED)
    assert lines == ["disk_full 75", "True", "[]", "True"]
