"""What is kept of starts that failed: the newest ones, found without a look at all that a long run has left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from argosy.steps.contract.layout import bundle_key
from argosy.steps.gang.host import PodState
from argosy.steps.store.base import ObjectInfo
from argosy.steps.store.files import FileStore
from argosy.steps.supervisor.bundles import KEPT, Bundles

RUN = "r/runs/w"


class Counting(FileStore):
    listed = 0

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        for info in super().list(prefix):
            self.listed += 1
            yield info


class Nobody:
    def pods(self, name: str) -> list[PodState]:
        return []


def left(store: FileStore) -> set[str]:
    return {info.key.split("/")[4] for info in FileStore.list(store, f"{RUN}/attempts") if "/bundle/" in info.key}


def test_the_newest_are_kept_and_the_rest_is_looked_at_once(tmp_path: Path) -> None:
    """Each failure listed the evidence of every pod of every gang, three times: a minute after a hundred large ones."""
    store = Counting(tmp_path.as_uri())
    for attempt in range(1, 41):
        for pod in range(50):
            store.put(f"{RUN}/attempts/w-a{attempt}/evidence/0000-p{pod}.json", b"{}")
    for attempt in range(1, 4):
        store.put(bundle_key(RUN, f"w-a{attempt}", 0, "p0"), b"archive")
    bundles = Bundles(store, RUN, Nobody())  # type: ignore[arg-type]
    for attempt in range(3, 20):
        key = bundle_key(RUN, f"w-a{attempt}", 0, "p0")
        store.put(key, b"archive")
        assert bundles.found(f"w-a{attempt}", 0) == [{"key": key, "bytes": 7}]
    assert left(store) == {f"w-a{attempt}" for attempt in range(20 - KEPT, 20)}
    assert store.listed < 2 * 40 * 50
