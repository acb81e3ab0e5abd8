"""The probe: honest stores pass, each kind of liar is named, nothing is left behind, and slow stores are not slow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract import env
from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectInfo, ObjectMissing, ObjectStore, StoreError, open_store
from argosy.steps.store.probe import probe
from argosy.steps.store.probe_rules import RULES
from argosy.steps.supervisor.store_check import check_store


class Around:
    """The real store, one verb of which may lie."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner, self.uri = inner, inner.uri

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.inner, verb)


class Forbidden(Around):
    def put(self, key: str, data: Any) -> None:
        raise StoreError(Cause.S3_ACCESS, "403")


class IgnoresTheCondition(Around):
    def put_if_absent(self, key: str, data: Any) -> bool:
        self.inner.put(key, data)
        return True


class AnswersAlwaysCreated(Around):
    def put_if_absent(self, key: str, data: Any) -> bool:
        self.inner.put_if_absent(key, data)
        return True


class RefusesAndReplaces(Around):
    def put_if_absent(self, key: str, data: Any) -> bool:
        created = self.inner.put_if_absent(key, data)
        self.inner.put(key, data)
        return created


class LooksThenWrites(Around):
    """Checks the condition and then writes, which is not one step."""

    def put_if_absent(self, key: str, data: Any) -> bool:
        if self.inner.head(key) is not None:
            return False
        time.sleep(0.05)
        self.inner.put(key, data)
        return True


class IgnoresTheConditionOfLargeOnes(Around):
    def put_if_absent(self, key: str, data: Any) -> bool:
        if len(data) < 1 << 20:
            return self.inner.put_if_absent(key, data)
        self.inner.put(key, data)
        return True


class RemembersAbsence(Around):
    """A cache before the store: what was absent stays absent for it."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.absent: set[str] = set()

    def get(self, key: str) -> bytes:
        try:
            if key in self.absent:
                raise ObjectMissing(key)
            return self.inner.get(key)
        except ObjectMissing:
            self.absent.add(key)
            raise


class RemembersBytes(Around):
    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.seen: dict[str, bytes] = {}

    def get(self, key: str) -> bytes:
        return self.seen.setdefault(key, self.inner.get(key))


class Truncates(Around):
    def put(self, key: str, data: Any) -> None:
        self.inner.put(key, data[:65536] if isinstance(data, bytes) else data)


class TearsUploads(Around):
    def upload(self, key: str, source: Any) -> tuple[str, int]:
        answer = self.inner.upload(key, source)
        self.inner.put(key, self.inner.get(key)[: 8 << 20])
        return answer


class SwapsParts(Around):
    def upload(self, key: str, source: Any) -> tuple[str, int]:
        answer = self.inner.upload(key, source)
        data = self.inner.get(key)
        self.inner.put(key, data[8 << 20 :] + data[: 8 << 20])
        return answer


class IgnoresRanges(Around):
    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self.inner.get(key)[:length]


class ListsAnOldDay(Around):
    """Listings are a moment behind."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.before: dict[str, list[ObjectInfo]] = {}
        self.lock = threading.Lock()

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        now = list(self.inner.list(prefix))
        with self.lock:
            shown, self.before[prefix] = self.before.get(prefix, []), now
        yield from shown


class ForgetsTheLast(Around):
    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        yield from list(self.inner.list(prefix))[:-1]


class FoldsCase(Around):
    def __getattr__(self, verb: str) -> Any:
        return lambda key, *rest: getattr(self.inner, verb)(key.lower(), *rest)


class HasOneETag(Around):
    def head(self, key: str) -> ObjectInfo | None:
        found = self.inner.head(key)
        return found and ObjectInfo(found.key, found.size, "same")

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        yield from (ObjectInfo(info.key, info.size, "same") for info in self.inner.list(prefix))


class KeepsTheDeleted(Around):
    def delete(self, key: str) -> None:
        if not key.endswith("/1"):
            self.inner.delete(key)


class NeverCreatesAgain(Around):
    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.gone: set[str] = set()

    def delete(self, key: str) -> None:
        self.gone.add(key)
        self.inner.delete(key)

    def put_if_absent(self, key: str, data: Any) -> bool:
        return key not in self.gone and self.inner.put_if_absent(key, data)

    def get(self, key: str) -> bytes:
        return b"" if key in self.gone else self.inner.get(key)


LIARS: list[tuple[Callable[[ObjectStore], Any], str]] = [
    (IgnoresTheCondition, "create-refused"),
    (AnswersAlwaysCreated, "create-refused"),
    (RefusesAndReplaces, "create-refused"),
    (LooksThenWrites, "create-wins-once"),
    (IgnoresTheConditionOfLargeOnes, "large-kept"),
    (RemembersAbsence, "absence-ends"),
    (RemembersBytes, "read-after-overwrite"),
    (Truncates, "read-after-write"),
    (TearsUploads, "large-kept"),
    (SwapsParts, "large-kept"),
    (IgnoresRanges, "range-exact"),
    (ListsAnOldDay, "list-after-write"),
    (ForgetsTheLast, "list-after-write"),
    (FoldsCase, "keys-distinct"),
    (HasOneETag, "head-agrees"),
    (KeepsTheDeleted, "list-after-delete"),
    (NeverCreatesAgain, "create-after-delete"),
]


def test_an_honest_store_passes_and_nothing_is_left(store: ObjectStore) -> None:
    store.put("name/runs/r/log/0000000001.json", b"mine")
    assert probe(store, "name/runs/r") == []
    assert probe(store, "") == []
    assert [info.key for info in store.list("")] == ["name/runs/r/log/0000000001.json"]


@pytest.mark.parametrize(("liar", "rule"), LIARS, ids=[liar.__name__ for liar, _ in LIARS])
def test_each_liar_is_named(tmp_path: Path, liar: Callable[[ObjectStore], Any], rule: str) -> None:
    inner = open_store(f"file://{tmp_path}/store")
    found = {finding.rule: finding for finding in probe(liar(inner), "run")}
    assert rule in found
    why = next(known.why for known in RULES if known.name == rule)
    assert found[rule].message.endswith(f"; {why}")
    assert len(found) <= 4
    if liar is not KeepsTheDeleted:
        assert len(list(inner.list(""))) <= 1 or liar in (ListsAnOldDay, FoldsCase)


def test_every_rule_catches_somebody() -> None:
    assert {rule for _, rule in LIARS} == {rule.name for rule in RULES}


def test_no_rule_makes_many_requests_one_after_another(tmp_path: Path) -> None:
    """At 0.1 s a request, and with all rules at the same time, no probe then takes 10 s."""
    requests: Counter[str] = Counter()

    class Counting(Around):
        def __getattr__(self, verb: str) -> Any:
            def call(key: str, *rest: Any) -> Any:
                requests[key.split("/")[3] if key.count("/") > 2 else "cleaning"] += 1
                return getattr(self.inner, verb)(key, *rest)

            return call

    assert probe(Counting(open_store(f"file://{tmp_path}/store")), "run") == []  # type: ignore[arg-type]
    # These ask by many threads at once.
    assert requests.pop("create-wins-once") <= 3 * 2 * 16 + 3
    assert max(requests.values()) <= 60
    assert requests.total() <= 260


def test_a_store_that_does_not_serve_is_no_liar(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="403"):
        probe(Forbidden(open_store(f"file://{tmp_path}/store")), "run")  # type: ignore[arg-type]


def test_keys_that_may_only_read_a_fit_store_are_refused_at_once(tmp_path: Path) -> None:
    """Else twenty pods would be told that it was allowed until now."""
    store = open_store(f"file://{tmp_path}/store")
    assert check_store(store, "run") == []
    with pytest.raises(StoreError, match="403"):
        check_store(Forbidden(store), "run")  # type: ignore[arg-type]


def test_a_store_without_room_for_the_first_probe_ends_the_run_at_once(tmp_path: Path) -> None:
    """It was tried again with growing pauses, as what passes by itself."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here: a full disk cannot be made")
    program = """
import sys
from argosy.steps.store import open_store
from argosy.steps.supervisor.store_check import check_store
try:
    check_store(open_store(f"file://{sys.argv[1]}"), "run")
except Exception as error:
    print(error.cause, int(error.code))
"""
    script = 'mount -t tmpfs -o size=64k none "$1" && exec "$2" -c "$3" "$1"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(tmp_path), sys.executable, program]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "disk_full 78\n"


def test_a_fit_store_is_asked_once_per_run_and_an_unfit_one_each_time(tmp_path: Path) -> None:
    inner = open_store(f"file://{tmp_path}/store")
    liar: Any = IgnoresTheCondition(inner)
    for _ in range(2):
        with pytest.raises(StepError, match=r"cannot hold checkpoints \(create-refused.*; train on a store") as caught:
            check_store(liar, "run")
        assert caught.value.code == 78
    assert check_store(inner, "run") == []
    stamp = inner.get("run/probe.json")
    assert check_store(inner, "run") == []
    # Nobody asks again, so a store that turns into a liar is not found: the probe is no watchman.
    assert check_store(liar, "run") == []
    assert inner.get("run/probe.json") == stamp
    inner.put("run/probe.json", b'{"torn')
    assert check_store(inner, "run") == []
    assert json.loads(inner.get("run/probe.json"))["findings"] == []


def test_what_is_only_a_nuisance_is_told_and_does_not_refuse(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store: Any = HasOneETag(open_store(f"file://{tmp_path}/store"))
    assert [finding.rule for finding in check_store(store, "run")] == ["head-agrees"]
    assert "head-agrees: the ETag stayed the same" in capfd.readouterr().err


GANG = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {generateName: r-}
spec:
  replicatedJobs:
  - name: node
    replicas: 1
    template:
      spec:
        parallelism: 1
        completions: 1
        completionMode: Indexed
        template: {spec: {restartPolicy: Never, containers: [{name: main, image: none, command: ["true"]}]}}
"""


def test_the_train_step_refuses_a_store_that_ignores_conditions(
    proxy: Any, s3_environment: str, tmp_path: Path
) -> None:
    proxy.forget = {"if-none-match"}
    (tmp_path / "gang.yaml").write_text(GANG)
    args = TrainArgs(
        store_uri=f"s3://argosy-tests/{uuid.uuid4().hex}", name="r", workflow="r-abc", workflow_uid="0123456789abcdef",
        gang=str(tmp_path / "gang.yaml"), min_nnodes=1,
    )  # fmt: skip
    local = {
        env.GANG_HOST: "processes",
        env.LOCAL_DIR: str(tmp_path / "local"),
        env.POD_TOKEN: "t",
        env.MOUNTS: json.dumps({"/argosy": str(tmp_path / "step"), "/dev": str(tmp_path / "dev")}),
    }
    done = subprocess.run(
        [sys.executable, "-m", TrainArgs.MODULE, *args.to_argv()],
        env={**os.environ, **local},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 78, done.stderr
    assert "s3_access" in done.stderr
    assert "create-refused" in done.stderr
    assert "train on a store that honours conditional writes" in done.stderr
    ending = json.loads((tmp_path / "dev/termination-log").read_text())
    assert (ending["cause"], ending["exit_code"]) == ("s3_access", 78)
    kept = [info.key.split("/", 3)[-1] for info in open_store(args.store_uri).list("")]
    assert kept == ["probe.json"], "nothing was claimed, and the probe's own objects are gone"
