"""What is told of a store that takes nothing, by the log of the supervisor's pod."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.record.unwritten import unwritten
from argosy.steps.runlog import RunLog
from argosy.steps.store.base import ObjectInfo, StoreError
from argosy.steps.store.files import FileStore
from argosy.steps.store.leaving import LEAVE_SECONDS
from argosy.workflows.cli.live import PlainScreen, Watch
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.unwritten import UnwrittenWatch


class Refusing(FileStore):
    """A store that takes nothing, for ``cause``."""

    cause: Cause | None

    def put(self, key: str, data: bytes | Path) -> None:
        if self.cause is not None:
            raise StoreError(self.cause, "no")
        super().put(key, data)


def until(log: Path, capfd: pytest.CaptureFixture[str], word: str) -> None:
    """Wait until a supervisor whose stderr is ``log`` has said it."""
    while word not in (log.read_text() if log.exists() else ""):
        with log.open("a") as file:
            file.write(capfd.readouterr().err)


def supervisor(log: Path, phase: str = "Running") -> dict[str, Any]:
    return {"nodes": [{"templateName": "train", "phase": phase, "log": str(log)}]}


def test_a_supervisor_that_ended_has_not_written_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It ended because nothing could be written, and who watched was told that all was well."""
    said: list[str] = []
    watch, store = UnwrittenWatch(said.append), Refusing(f"file://{tmp_path}/store")
    for each in ("first", "second"):
        store.cause = Cause.STORE_UNAVAILABLE
        log = RunLog(store, "run", "supervisor")
        log.append("gated", decision="promote")
        until(tmp_path / each, capfd, "not written since")
        for phase in ("Running", "Failed"):
            watch.look(supervisor(tmp_path / each, phase), away=False)
        store.cause = None
        log.close()
    assert [text[:7] for text in said] == ["warning"] * 2
    watch.look(supervisor(tmp_path / "second"), away=False)
    with (tmp_path / "second").open("a") as file:
        file.write("argosy: event log written again\n")
    watch.look(supervisor(tmp_path / "second"), away=False)
    watch.look(supervisor(tmp_path / "second"), away=False)
    assert [text[:33] for text in said[3:]] == ["the event log can be written agai"]


@pytest.mark.parametrize(("cause", "waits"), [("s3_access", False), ("disk_full", False), ("s3_throttle", True)])
def test_a_save_waits_only_for_what_passes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], cause: str, waits: bool
) -> None:
    store = Refusing(f"file://{tmp_path}/store")
    store.cause = Cause(cause)
    log = RunLog(store, "run", "supervisor")
    log.append("gated", decision="promote")
    until(tmp_path / "log", capfd, "not written since")
    found = unwritten(supervisor(tmp_path / "log"))
    assert found is not None
    assert ("a save waits" in found.sentence(found.since + 3)) == waits
    assert found.sentence(found.since + 3).startswith("the store has taken nothing for 3.0 s: no")
    store.cause = None
    log.close()


def test_who_leaves_waits_for_no_store_that_is_silent(story: Any) -> None:
    """Ctrl-C of a run that is followed stood for as long as the store's client asks again."""
    asked, never = threading.Event(), threading.Event()

    class Silent(FileStore):
        def list(self, prefix: str) -> Iterator[ObjectInfo]:
            asked.set()
            never.wait(60)
            return super().list(prefix)

    class Run(RunFolder):
        def store(self, *, quiet: bool = False) -> FileStore:
            return Silent(f"file://{story.state_dir}/store")

    folder = story.finish("Running", None)
    with contextlib.suppress(KeyboardInterrupt), Watch(PlainScreen(io.StringIO()), poll_seconds=0.01) as watch:
        watch.found(Run(folder, story.state_dir))
        assert asked.wait(30)
        began = time.monotonic()
        raise KeyboardInterrupt
    assert time.monotonic() - began < LEAVE_SECONDS + 5
    never.set()
