"""Full disks, stores that become read-only, permission lost in mid-run, wrong clocks: said clearly, nothing lost."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectStore
from tests.crash.cases import BUCKET, PREFIX, hasty, serving
from tests.crash.oracle import RUN, History, judge, replay
from tests.crash.workloads import PINS, SAVES, WALK_BACK, ZOMBIE, Workload, saves
from tests.s3 import Bucket, S3Server, Seen
from tests.s3.direct import DirectStore

ROOT = Path(__file__).resolve().parents[2]
WRITES = ("PutObject", "UploadPart", "CreateMultipartUpload", "CompleteMultipartUpload", "DeleteObject")


def test_a_disk_that_is_full_at_each_write(tmp_path: Path) -> None:
    """A sample of the sizes (all of them: the same with stride 1); a read-only store too."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here: a full disk cannot be made")
    command = ["unshare", "-rm", sys.executable, "-m", "tests.crash.full_disk", str(tmp_path), "5"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert told.returncode == 0, told.stderr
    first, *lines = told.stdout.splitlines()
    assert first.startswith("read-only s3_access 78 cannot write ")
    assert first.endswith(".json: Read-only file system")
    ends = [line.split(" ", 3)[3] for line in lines]
    assert set(ends) == {"disk_full 75", "went well"}
    assert ends.count("went well") == 2
    assert len(ends) > 10


@pytest.fixture
def server() -> Iterator[S3Server]:
    with serving() as served:
        yield served


@pytest.mark.parametrize("first", [3, 20, 47])
def test_writing_is_refused_in_mid_run(server: S3Server, tmp_path: Path, first: int) -> None:
    """From one request on every write is 403: the gang ends with a remedy, readers go on."""
    history = History()
    server.begin(lambda seen: "denied" if seen.number >= first and seen.operation in WRITES else "")
    with pytest.raises(StepError, match=r"AccessDenied.*allow this action on this key") as caught:
        saves(hasty(server), history, tmp_path)
    assert (caught.value.cause, caught.value.code) == (Cause.S3_ACCESS, 78)
    newest = CheckpointStore(hasty(server), RUN).newest()
    assert (newest.digest if newest else None) == (history.acknowledged[-1] if history.acknowledged else None)
    judge(DirectStore(server.buckets[BUCKET], PREFIX), history)


def test_credentials_that_expire_are_said_and_come_back(server: S3Server, tmp_path: Path) -> None:
    history = History()

    def expired(seen: Seen) -> str:
        return "expired" if seen.number >= 30 else ""

    server.begin(expired)
    with pytest.raises(StepError, match="the credentials expired") as caught:
        saves(hasty(server), history, tmp_path)
    assert (caught.value.cause, caught.value.code) == (Cause.CREDENTIALS_EXPIRED, 75)
    server.begin()
    judge(DirectStore(server.buckets[BUCKET], PREFIX), history)


@pytest.mark.parametrize("workload", [SAVES, ZOMBIE, WALK_BACK, PINS], ids=lambda workload: workload.name)
def test_no_clock_decides_anything(workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is up to 30 days off, in both directions: the log is the same but for ``created``."""

    def run(folder: Path) -> tuple[list[tuple[object, ...]], set[str]]:
        store: ObjectStore = DirectStore(Bucket())
        history = History()
        folder.mkdir()
        workload.before(store, history, folder)
        workload.run(store, history, folder)
        judge(store, history)
        said = [
            (entry["kind"], entry["generation"], entry.get("step"), entry.get("keep"))
            for entry in replay(store).entries
        ]
        return said, {info.key.split("/")[1] for info in store.list(RUN)}

    right = run(tmp_path / "right")
    draw, now = random.Random(5), time.time
    monkeypatch.setattr(time, "time", lambda: now() + draw.uniform(-30, 30) * 86400)
    assert run(tmp_path / "wrong") == right
