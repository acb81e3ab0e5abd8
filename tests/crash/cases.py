"""One case: a copy of what was there before, a workload, one fault, the oracle. Batches of them for suites."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from obstore.store import S3Store

from argosy.steps.contract.errors import StepError
from argosy.steps.launch.folder_part import FilesChanged
from argosy.steps.store import ObjectStore, open_store
from argosy.steps.store.cloud import CloudStore
from tests.crash.oracle import History, judge
from tests.crash.striking import FaultyStore, Killed
from tests.crash.workloads import DEAD, HISTORY, IN_PARTS, OPAQUE, PINS, SAVES, WALK_BACK, ZOMBIE, Workload
from tests.s3 import Plan, S3Server, at, nothing
from tests.s3.direct import DirectStore
from tests.s3.faults import applies

BUCKET, PREFIX = "crash", "store"
FILE_KINDS = {"kill-after": 1, "fail-before": 1, "fail-after": 1, "fail-before-storm": 3}
"""Kind -> operations in a row that are struck."""
HTTP_KINDS = {
    "slow-down": 1,
    "error-before": 1,
    "error-after": 1,
    "reset-before": 1,
    "reset-request": 1,
    "reset-after": 1,
    "cut": 1,
    "conflict": 1,
    "complete-error": 1,
    "truncated": 1,
    "wrong-bytes": 1,
    "slow-down-storm": 40,
    "lost-answers": 3,
    "expired-for-good": 1 << 30,
    "unreachable-for-good": 1 << 30,
}
"""Kind -> requests in a row that are struck; the last three with the fault of NAMED."""
NAMED = {
    "slow-down-storm": "slow-down",
    "lost-answers": "error-after",
    "expired-for-good": "expired",
    "unreachable-for-good": "reset-before",
}
MISREAD = ("truncated", "wrong-bytes")
"""A gang that is given other bytes sets a good checkpoint aside: allowed, for its bytes stay."""


@dataclass(frozen=True)
class Batch:
    """All points of one workload with one kind of fault. ``over``: ``file`` or ``http``."""

    workload: Workload
    over: str
    kind: str

    @property
    def name(self) -> str:
        return f"{self.workload.name}, {self.over}, {self.kind}"


class Violation(AssertionError):
    """An invariant does not hold; the message names the case."""


def batches() -> list[Batch]:
    """Every batch there is."""
    on_files = [SAVES, HISTORY, OPAQUE, WALK_BACK, PINS, ZOMBIE, *DEAD]
    on_http = [SAVES, HISTORY, OPAQUE, WALK_BACK, PINS, ZOMBIE, IN_PARTS, DEAD[2]]
    found = [Batch(workload, "file", kind) for workload in on_files for kind in FILE_KINDS]
    return found + [Batch(workload, "http", kind) for workload in on_http for kind in HTTP_KINDS]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on tmpfs where there is one: fsync itself is not what these cases are about."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="argosy-crash-", dir=shm if os.access(shm, os.W_OK) else None) as folder:
        yield Path(folder)


@contextmanager
def serving() -> Iterator[S3Server]:
    """The server for :func:`run`, and the environment that leads to it."""
    with S3Server((BUCKET,)) as server, pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patched.delenv(name)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patched.setenv(name, "a")
        patched.setenv("AWS_REGION", "us-east-1")
        patched.setenv("AWS_ENDPOINT_URL", server.endpoint)
        yield server


def run(batch: Batch, server: S3Server, chosen: Callable[[int], bool] = lambda point: True) -> int:
    """All (or the chosen) points of a batch; how many there were. Raises Violation at the first that does not hold."""
    with scratch() as folder:
        if batch.over == "file":
            return _over_files(batch, folder, chosen)
        return _over_http(batch, server, folder, chosen)


def _over_files(batch: Batch, folder: Path, chosen: Callable[[int], bool]) -> int:
    start = History()
    batch.workload.before(open_store(f"file://{folder}/before"), start, folder)
    (folder / "before").mkdir(exist_ok=True)

    def case(point: int) -> FaultyStore:
        shutil.copytree(folder / "before", folder / "case")
        work = folder / "work"
        work.mkdir()
        kind = batch.kind.removesuffix("-storm")
        store = FaultyStore(open_store(f"file://{folder}/case"), point, kind, FILE_KINDS.get(batch.kind, 1))
        _one(batch, point, store, open_store(f"file://{folder}/case"), copy.deepcopy(start), work)
        shutil.rmtree(folder / "case")
        shutil.rmtree(work)
        return store

    points = [point for point in range(len(case(-1).operations)) if chosen(point)]
    for point in points:
        case(point)
    return len(points)


def _over_http(batch: Batch, server: S3Server, folder: Path, chosen: Callable[[int], bool]) -> int:
    bucket, start = server.buckets[BUCKET], History()
    bucket.replace({})
    batch.workload.before(DirectStore(bucket, PREFIX), start, folder)
    before = dict(bucket.objects)
    kind, length = NAMED.get(batch.kind, batch.kind), HTTP_KINDS[batch.kind]

    def case(point: int, plan: Plan) -> None:
        bucket.replace(before)
        work = folder / "work"
        work.mkdir()
        server.begin(plan)
        _one(batch, point, hasty(server), DirectStore(bucket, PREFIX), copy.deepcopy(start), work)
        shutil.rmtree(work)

    case(-1, nothing)
    points = [seen.number for seen in server.requests if applies(kind, seen) and chosen(seen.number)]
    for point in points:
        case(point, at(point, kind, length))
    return len(points)


def _one(batch: Batch, point: int, store: Any, honest: ObjectStore, history: History, work: Path) -> None:
    where = f"{batch.name}, at {point}"
    try:
        try:
            batch.workload.run(store, history, work)
        except (StepError, Killed, FilesChanged):
            # The gang is over, as it is when its process ends with the error's exit code.
            if point < 0:
                raise
        if batch.kind in MISREAD:
            history.damaged |= {info.key.rsplit("/", 1)[-1][:64] for info in honest.list("run/quarantine")}
        judge(honest, history)
    except (Exception, pytest.fail.Exception) as error:
        raise Violation(f"{where}: {type(error).__name__}: {error}") from error


def hasty(server: S3Server) -> CloudStore:
    """The real store and its client, whose waits between tries are short."""
    store = CloudStore(f"s3://{BUCKET}/{PREFIX}", retry_seconds=0.05)
    waits: Any = {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=8), "base": 2}
    store._opened = S3Store(
        BUCKET,
        prefix=PREFIX,
        config={
            "endpoint": server.endpoint,
            "region": "us-east-1",
            "access_key_id": "a",
            "secret_access_key": "b",
            "virtual_hosted_style_request": False,
            "disable_bulk_delete": True,
        },
        client_options={"allow_http": True},
        retry_config={"max_retries": 10, "retry_timeout": timedelta(seconds=0.05), "backoff": waits},
    )
    return store
