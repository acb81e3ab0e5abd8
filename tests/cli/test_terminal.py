"""What a script or an event says never steers the reader's terminal, and never speaks in another's name."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import re
import threading
import time
from pathlib import Path

import pytest

from argosy.steps.runlog import KEPT, LOG_UNWRITTEN, RunLog
from argosy.steps.store import open_store
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.unwritten import UnwrittenWatch
from tests.s3 import S3Server, nothing

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[1A\x08\x9b31m\u202e\x0b[rank 0] forged\r\x85argosy: forged \x1b[31mred\x1b[0m"


@pytest.fixture
def hostile(story) -> Path:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1, excluded=[EVIL])
    story.at(0.5, "admission", decision="start", reason=EVIL)
    story.at(1.0, "restart_began", attempt=1, restart=0, restored_digest=EVIL, restored_step=1)
    story.at(5.0, "restart_ended", attempt=1, restart=0, cause=EVIL, node=EVIL, quote=EVIL, last_step=3)
    story.at(6.0, "gated", decision=EVIL, reason=EVIL, metric=EVIL, value=1.0, floor=EVIL)
    folder = story.finish("Failed", 8.0, EVIL)
    log = folder / "nodes/node-0/pods/p/log"
    log.parent.mkdir(parents=True)
    log.write_bytes(f"[rank 1] {EVIL}\n".encode())
    state = json.loads((folder / "state.json").read_text())
    row = {"id": "a", "name": "a", "type": "Pod", "phase": "Failed", "message": EVIL, "log": str(log)}
    (folder / "state.json").write_text(json.dumps({**state, "nodes": [row]}))
    return folder


@pytest.mark.parametrize("verb", ["status", "explain", "logs", "report"])
def test_no_control_character_reaches_the_terminal(verb, hostile, argosy) -> None:
    code, out, err = argosy(verb)
    assert code == 0
    text = out + err
    assert [letter for letter in text if not (letter.isprintable() or letter == "\n")] == []
    assert "\x1b" not in argosy(verb, "--json")[1]


def test_a_rank_cannot_write_lines_of_another(hostile, argosy) -> None:
    _, out, _ = argosy("logs")
    (line,) = [line for line in out.split("\n") if line]
    assert line.startswith(r"p | [rank 1] \x1b]0;owned\x07\x1b[2J")
    assert "\\u202e" in line
    assert line.endswith("forged red"), "colours are left out"
    assert argosy("logs", "--rank", "0")[1] == ""


def test_an_error_does_not_steer_the_terminal_either(argosy) -> None:
    code, _, err = argosy("run", "\x1b[2Jx.toml")
    assert code == 2
    assert "\x1b" not in err


def test_the_panel_shows_the_step_below_the_bar() -> None:
    # By itself a bar ends no line: step, loss and time left vanished as soon as the total was known.
    from rich.console import Console

    from argosy.steps.record.tally import Tally
    from argosy.workflows.cli.live import _panel

    tally = Tally(step=20, end_step=40, loss=2.5, attempts=1, running=True)
    console = Console(width=70, record=True, file=io.StringIO())
    console.print(_panel("r", 1.0, tally, {}))
    lines = [line.strip("│ ") for line in console.export_text().splitlines()]
    assert "step 20 of 40, loss 2.5" in lines
    assert any(line.startswith("attempt 1; checkpoint") for line in lines)


def test_brackets_in_a_warning_or_a_name_are_no_markup(tmp_path: Path) -> None:
    """Of a folder "[/x]" argosy top told of a mistake of ours, and of "[x]" it left the name out."""
    from rich.console import Console

    from argosy.steps.record.tally import Tally
    from argosy.workflows.cli.live import _panel
    from argosy.workflows.cli.top import Rows, _table

    folder = RunFolder(tmp_path / "runs" / "gpt", tmp_path)
    folder.path.mkdir(parents=True)
    (folder.path / "state.json").write_text("[/x] [x]")
    rows = Rows(lambda: [folder])
    rows.look()
    rows.shown[0].trouble = "no [/x] and no [x]"
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(_table(rows))
    console.print(_panel("[/x] [x].yaml", 1.0, Tally(), {}))
    shown = console.export_text()
    assert "warning: no [/x] and no [x]" in shown
    assert "[/x] [x].yaml" in shown


def test_in_a_narrow_terminal_a_run_still_has_its_name(story, tell) -> None:
    from rich.console import Console

    from argosy.workflows.cli.run_folder import every_run
    from argosy.workflows.cli.top import Rows, _table

    tell.killed_and_resumed(story)
    story.finish("Succeeded", 130.0)
    rows = Rows(lambda: list(every_run(story.state_dir)))
    rows.look()
    console = Console(width=50, record=True, file=io.StringIO())
    console.print(_table(rows))
    assert story.workflow in console.export_text()


def test_a_store_that_does_not_answer_is_told_by_whoever_watches(story, monkeypatch) -> None:
    from argosy.workflows.cli import live, run_folder, store_away

    monkeypatch.setattr(run_folder, "PERSON_SECONDS", 0.1)
    monkeypatch.setattr(store_away, "SILENT_SECONDS", 0.0)
    folder, shown = story.finish("Running", None), io.StringIO()
    with S3Server(("lake",)) as server:
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        server.plan = lambda _: "slow-down"
        state = json.loads((folder / "state.json").read_text())
        state["annotations"]["argosy.dev/store-uri"] = "s3://lake"
        (folder / "state.json").write_text(json.dumps(state))
        with live.Watch(live.PlainScreen(shown), poll_seconds=0.01) as watch:
            watch.found(run_folder.RunFolder(folder, story.state_dir))
            while "has not answered" not in shown.getvalue():
                time.sleep(0.01)
            server.plan = nothing
            while "is back after" not in shown.getvalue():
                time.sleep(0.01)
    away, *still, back = shown.getvalue().splitlines()
    assert re.search(
        r"since \d\d:\d\d:\d\d: .* waits for it, 12 min 00 s at most.* asks for 3 min 00 s, .* exit code 75", away
    )
    assert all("the store has not answered for " in line for line in still)
    assert still
    assert "the store is back after " in back


@pytest.mark.parametrize(
    ("fault", "why", "follows"),
    [
        (
            "full",
            r"cannot write s3://lake/runs/\S+: the store is full \(507 ",
            "Training goes on; a save waits, 12 min 00 s at most",
        ),
        ("denied", r"write s3://lake/runs/\S+ was refused \(403 ", "the training ends of it unless this is mended"),
    ],
)
def test_of_a_bucket_that_takes_nothing_the_supervisors_own_log_tells(
    fault, why, follows, story, monkeypatch, capfd, argosy
) -> None:
    """While nothing can be written there, neither who watched nor status or explain said anything."""
    from argosy.workflows.cli import live, run_folder

    log, shown = story.state_dir / "log", io.StringIO()
    story.nodes.append({"id": "t", "name": "t", "templateName": "train", "type": "Pod", "phase": "Running"})
    story.nodes[0]["log"] = str(log)
    folder = story.finish("Running", None)
    held = (folder / "engine.lock").open("w")
    fcntl.flock(held, fcntl.LOCK_EX)  # as an engine that runs
    with S3Server(("lake",), plan=lambda _: fault) as server:
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        written = RunLog(open_store("s3://lake/runs", retry_seconds=0.1), "gpt/runs/full", "supervisor")
        with live.Watch(live.PlainScreen(shown), poll_seconds=0.01) as watch:
            watch.found(run_folder.RunFolder(folder, story.state_dir))
            written.append("gated", decision="promote")
            while "can be written again" not in shown.getvalue():
                with log.open("a") as file:
                    file.write(capfd.readouterr().err)
                time.sleep(0.02)
                if "warning" in shown.getvalue() and server.plan is not nothing:
                    status, explained = argosy("status")[1], argosy("explain")[1]
                    told = json.loads(argosy("status", "--json")[1])["unwritten"]
                    (row,) = json.loads(argosy("top", "--json")[1])["warnings"]
                    server.plan = nothing
        written.close()
    warning, _ = shown.getvalue().splitlines()
    for text in (warning, status, explained, told, row):
        assert re.search(rf"he store has taken nothing for [\d.]+ s: {why}", text), text
        assert follows in text
    assert warning.endswith("; what happens is told when it can be written")
    assert "the store has taken" not in argosy("status")[1]
    assert json.loads(argosy("top", "--json")[1])["warnings"] == []
    held.close()


def test_a_supervisor_that_ended_has_not_written_what_it_could_not(tmp_path: Path) -> None:
    log, lines = tmp_path / "log", list[str]()
    node = {"templateName": "train", "phase": "Running", "log": str(log)}
    watch = UnwrittenWatch(lines.append)
    log.write_text(f"{LOG_UNWRITTEN}2026-11-28T14:00:00Z: disk_full: cannot write /a: No space left on device{KEPT}\n")
    for phase in ("Running", "Failed", "Failed"):
        watch.look({"nodes": [{**node, "phase": phase}]}, away=False)
    assert len(lines) == 1, lines  # said that it can be written again
    watch.look({"nodes": [node]}, away=True)
    assert len(lines) == 1, "a store that is away is told in other words"


def test_who_leaves_waits_for_no_store(story, monkeypatch, capsys) -> None:
    from argosy.steps.store import leaving
    from argosy.workflows.cli import live
    from argosy.workflows.cli.run_folder import RunFolder

    monkeypatch.setattr(leaving, "LEAVE_SECONDS", 0.0)
    folder, shown = story.finish("Running", None), io.StringIO()
    with S3Server(("lake",), plan=lambda _: "slow-down") as server:
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        state = json.loads((folder / "state.json").read_text())
        state["annotations"]["argosy.dev/store-uri"] = "s3://lake"
        (folder / "state.json").write_text(json.dumps(state))
        with live.Watch(live.PlainScreen(shown), poll_seconds=0.01) as watch:
            watch.found(RunFolder(folder, story.state_dir))
            while not server.requests:
                time.sleep(0.01)
            stops = {"phase": "Running", "message": "stopping: what runs has up to 63 s to end"}
            watch.found(RunFolder(folder, story.state_dir), stops)
        assert watch.is_store_away
    assert shown.getvalue().count("stopping: ") == 1
    assert "cannot list" not in capsys.readouterr().err, "it is said in other words"


def test_a_full_disk_is_told_once_by_whoever_watches(story, monkeypatch) -> None:
    """On it neither the event log nor the step's own log could be written: the run was silent for a minute."""
    from argosy.workflows.cli import live
    from argosy.workflows.cli.run_folder import RunFolder

    monkeypatch.setattr(live, "FULL_BYTES", 1 << 62)
    folder, shown = story.finish("Running", None), io.StringIO()
    with live.Watch(live.PlainScreen(shown), poll_seconds=0.01) as watch:
        watch.found(RunFolder(folder, story.state_dir))
        while "disk" not in shown.getvalue():
            time.sleep(0.01)
        time.sleep(0.05)
    (line,) = shown.getvalue().splitlines()
    assert f"warning: the disk of {folder} is full (" in line
    assert line.endswith("the run will end; free some")


def test_a_stop_is_told_once_though_engine_and_watch_see_it_at_once() -> None:
    from argosy.workflows.cli import live

    both = threading.Barrier(2)

    class AtOnce(live.Watch):
        _seen = False

        @property
        def _stopping(self) -> bool:
            seen = self._seen
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.5)
            return seen

        @_stopping.setter
        def _stopping(self, value: bool) -> None:
            self._seen = value

    shown = io.StringIO()
    watch, stops = AtOnce(live.PlainScreen(shown)), {"phase": "Running", "message": "stopping: what runs has 30 s"}
    seeing = [threading.Thread(target=watch._tell_stop, args=(stops,)) for _ in range(2)]
    for thread in seeing:
        thread.start()
    for thread in seeing:
        thread.join()
    assert shown.getvalue().count("stopping: ") == 1
