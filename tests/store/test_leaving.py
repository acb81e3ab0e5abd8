"""Somebody wants to end while the store stands in a request: that one is left, and no other is begun."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store import ObjectMissing, StoreError, leaving, open_store
from argosy.steps.store.leaving import LeavableStore
from tests.s3.faults import nothing
from tests.s3.server import S3Server


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[str]:
    """Uri of a store that never answers who reads ``k``: a pipe that nobody writes to."""
    (tmp_path / "store").mkdir()
    os.mkfifo(pipe := tmp_path / "store" / "k")
    yield (tmp_path / "store").as_uri()
    os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))  # lets go whoever still reads


def test_a_request_is_left_and_no_other_begins(hung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "SLOW_SECONDS", 0.0)
    leave = threading.Event()
    store = LeavableStore(open_store(hung), leave, 0.0)
    store.put("before", b"data")
    threading.Timer(0.05, leave.set).start()
    for ask in (lambda: store.get("k"), lambda: store.get("before"), lambda: store.put("after", b"")):
        with pytest.raises(StoreError, match="does not answer, and was not waited for") as caught:
            ask()
        assert caught.value.cause is Cause.STORE_UNAVAILABLE
    assert not store.answers


def test_whether_it_is_away_is_known_soon_and_a_throttle_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with S3Server(("lake",), plan=lambda _: "slow-down") as server:
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        store = open_store("s3://lake/store", retry_seconds=0.1)
        assert LeavableStore(store, threading.Event()).is_away(5.0)
        plans = iter(["slow-down", "slow-down"])
        server.plan = lambda request: next(plans, None) or nothing(request)
        patient = open_store("s3://lake/store", retry_seconds=60.0)
        assert not LeavableStore(patient, threading.Event()).is_away(30.0)
        assert next(plans, None) is None


def test_who_gets_no_thread_waits_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that starts as many as it may takes them from all: the thread of who watched the run ended of it."""
    store = LeavableStore(open_store(tmp_path.as_uri()), threading.Event())
    end = threading.Timer(0.5, threading.stack_size, [0])
    end.start()
    try:
        threading.stack_size(1 << 48)  # more than there is: no thread begins
        assert store.put_if_absent("log/1", b"one")
        monkeypatch.setattr(leaving, "THREADLESS_SECONDS", 0.0)
        threading.stack_size(1 << 48)
        with pytest.raises(StoreError, match="cannot be asked: can't start new thread"):
            store.get("log/1")
    finally:
        end.join()
        threading.stack_size(0)
    assert store.get("log/1") == b"one"


def test_who_answers_is_heard_also_then(tmp_path: Path) -> None:
    leave = threading.Event()
    leave.set()
    store = LeavableStore(open_store(tmp_path.as_uri()), leave)
    assert store.put_if_absent("log/1", b"one")
    assert not store.put_if_absent("log/1", b"two")
    assert store.get("log/1") == b"one"
    assert [info.key for info in store.list("log")] == ["log/1"]
    store.delete("log/1")
    with pytest.raises(ObjectMissing):
        store.get("log/1")
    assert store.answers


def test_an_answer_that_comes_as_the_wait_ends_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "LOOK_SECONDS", 0.0)  # each look may be the one
    store = LeavableStore(open_store(tmp_path.as_uri()), threading.Event())
    for _ in range(20):
        assert store.head("none") is None
