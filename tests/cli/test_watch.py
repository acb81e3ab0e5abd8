"""``argosy watch`` from outside: killed with signal 9, alone and with what it started, each dataset starts one run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from argosy.steps.events.journal import Decision, Journal
from argosy.steps.store import open_store
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.watch.local_runs import LocalRuns
from tests.s3 import S3Server
from tests.starts import argosy

ARGOSY = [sys.executable, "-m", "argosy.workflows.cli.main"]
SCRIPT = """
import os, sys, time
from pathlib import Path
data, trained = Path(os.environ["ARGOSY_DATA_PATH"]), Path(sys.argv[1])
name = (data / "part-0").read_text()
for step in range(1, 21):
    time.sleep(0.05)
    print(f"step {step} loss {1 / step}", flush=True)
Path("out").mkdir(exist_ok=True)
Path("out/model").write_text(name)
with (trained / name).open("a") as log:
    log.write("ended\\n")
"""
RUN = """
name = "fed"
script = "train.py"
code = "code"
args = ["{trained}"]
[dataset]
uri = "{corpus}"
[gang]
nnodes = 1
launcher = "plain"
[checkpoint]
mode = "opaque"
path = "out"
include = ["model"]
[retry]
backoff_seconds = 0.1
[trigger]
poll_seconds = 1
max_starts_per_hour = 100
"""


class Watched:
    """A folder with a run, its data beside it."""

    def __init__(self, folder: Path, corpus: str = "") -> None:
        self.folder, self.trained = folder, folder / "trained"
        (folder / "code").mkdir()
        self.trained.mkdir()
        (folder / "corpus").mkdir()
        (folder / "code" / "train.py").write_text(SCRIPT)
        text = RUN.format(trained=self.trained, corpus=corpus or f"file://{folder}/corpus")
        (folder / "run.toml").write_text(text)
        self.watch: subprocess.Popen[str] | None = None

    def put(self, name: str) -> None:
        (self.folder / "corpus" / name).mkdir()
        (self.folder / "corpus" / name / "part-0").write_text(name)
        (self.folder / "corpus" / name / "_SUCCESS").touch()

    def begin(self, *words: str) -> None:
        with (self.folder / "watch.log").open("a") as log:
            self.watch = subprocess.Popen(
                [*ARGOSY, "watch", "run.toml", *words], cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, *, all_of_it: bool) -> None:
        assert self.watch is not None
        (os.killpg if all_of_it else os.kill)(self.watch.pid, signal.SIGKILL)
        self.watch.wait()

    def told(self) -> str:
        return (self.folder / "watch.log").read_text()

    def argosy(self, *words: str) -> Any:
        done = argosy(self.folder, *words, "--json")
        done.check_returncode()
        return json.loads(done.stdout)

    def ended(self, name: str) -> bool:
        return (self.trained / name).exists()

    def until(self, what: str, holds: Callable[[], bool], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self.told()}"
            assert self.watch is not None
            assert self.watch.poll() is None, self.told()
            time.sleep(0.05)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    if made.watch is not None and made.watch.poll() is None:
        made.watch.send_signal(signal.SIGTERM)
        made.watch.wait(60)


@pytest.mark.variant
def test_killed_at_any_moment_it_goes_on_and_each_dataset_starts_one_run(watched: Watched) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    watched.put("old")
    watched.begin()
    looked = watched.folder / ".argosy" / "volumes"
    # Folders come and go below it, which rglob does not survive.
    watched.until("the first look", lambda: any("baseline.json" in names for _, _, names in os.walk(looked)))
    names = [f"v{number}" for number in range(2)]
    for number in range(4):
        if number < len(names):
            watched.put(names[number])
        time.sleep(dice.uniform(0.3, 4))
        watched.kill(all_of_it=bool(number % 2))
        watched.begin()
    watched.until("every dataset trained", lambda: all(watched.ended(name) for name in names))
    log = watched.folder / ".argosy" / "watch" / "fed"
    watched.until("every run ended", lambda: len(list((log / "ended").glob("0*.json"))) == len(names))
    assert [run["phase"] for run in watched.argosy("ls")["runs"]] == ["Succeeded"] * len(names)
    assert watched.told().count(": Succeeded\n") == len(names)
    assert not watched.ended("old")
    for name in names:
        why = watched.argosy("events", "why", f"file://{watched.folder}/corpus/{name}", "run.toml")
        assert [each["decision"] for each in why["decisions"]].count("start") == 1


def test_a_look_at_a_bucket_where_nothing_is_new_costs_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the default of a look a minute that is 60 an hour; here a look a second."""
    with S3Server(("lake",)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "REGION": "us-east-1"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        client = boto3.client("s3", endpoint_url=server.endpoint, region_name="us-east-1")
        for name in ("v1", "v2"):
            for key in ("part-0", "_SUCCESS"):
                client.put_object(Bucket="lake", Key=f"corpus/{name}/{key}", Body=b"")
        watched = Watched(tmp_path, "s3://lake/corpus")
        server.begin()
        watched.begin()
        began = time.monotonic()
        watched.until("looks", lambda: sum(each.operation == "ListObjectsV2" for each in server.requests) >= 5)
        asked = [each.operation for each in server.requests]
        assert time.monotonic() - began > 4
        assert asked[-4:] == ["ListObjectsV2"] * 4, asked
        watched.kill(all_of_it=True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_ends_it_reads_by_what_in_its_exit_code(number: int, code: int, watched: Watched) -> None:
    watched.begin()
    looked = watched.folder / ".argosy" / "volumes"
    watched.until("the first look", lambda: any("baseline.json" in names for _, _, names in os.walk(looked)))
    assert watched.watch is not None
    watched.watch.send_signal(number)
    assert watched.watch.wait(60) == code


def test_a_run_that_fails_is_told_and_is_the_exit_code(watched: Watched) -> None:
    def once() -> Any:
        return argosy(watched.folder, "watch", "run.toml", "--once")

    first = once()
    assert (first.returncode, first.stderr.splitlines()[-1]) == (0, "nothing new")
    (watched.folder / "code" / "train.py").write_text("import absent")
    watched.put("bad")
    bad = once()
    name = bad.stderr.splitlines()[-1].partition(":")[0]
    assert (bad.returncode, bad.stderr.splitlines()[-1]) == (1, f"{name}: Failed; argosy explain {name} tells why")
    assert f"{name}: runs; argosy logs -f {name} shows what it writes" in bad.stderr.splitlines()


def test_a_run_that_its_gate_refused_has_not_succeeded(story, tell, tmp_path: Path) -> None:
    tell.killed_and_resumed(story)
    tell.judged(story, "refuse")
    story.finish("Succeeded", 130.0)
    said: list[str] = []
    runs = LocalRuns(story.state_dir, "gpt", tmp_path / "none.yaml", said.append)
    runs.start(Decision("start", "", "", seq=1, workflow=story.workflow))
    assert (runs.turn(), runs.turn(), runs.exit_code) == (True, False, 3)
    (last,) = said
    assert last.startswith(f"{story.workflow}: Refused by the gate; argosy explain {story.workflow} ")


def test_decisions_are_read_where_the_runs_own_env_says_that_its_bucket_is(argosy, tmp_path: Path, monkeypatch) -> None:
    """``argosy events``, a next step of ``install --trigger``, asked AWS with the keys of another store."""
    with S3Server(("lake",)) as server:
        for name in ("AWS_ENDPOINT_URL", "AWS_REGION"):
            monkeypatch.setenv(name, "")  # so that it is absent again at the end, whatever is set meanwhile
            monkeypatch.delenv(name)
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ALLOW_HTTP": "true"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        (tmp_path / "train.py").write_text("print(1)\n")
        (tmp_path / "run.toml").write_text(
            'name = "r"\nscript = "train.py"\n[storage]\nuri = "s3://lake/store"\n[dataset]\nuri = "s3://lake/c"\n'
            f'[trigger]\n[env]\nAWS_ENDPOINT_URL = "{server.endpoint}"\nAWS_REGION = "us-east-1"\n'
        )
        code, out, err = argosy("events", str(tmp_path / "run.toml"))
    assert code == 0, err
    assert "no decision yet" in out


def test_before_anybody_has_looked_a_look_is_not_said_to_start_what_is_there(argosy, tmp_path: Path) -> None:
    """``argosy events why`` promised that a look would, and the first look took it for old."""
    (tmp_path / "train.py").write_text("print(1)\n")
    data = tmp_path / "corpus"
    uri = f"{data.as_uri()}/v1/_SUCCESS"
    told = []
    for backfill in ("false", "true"):
        trigger = f'[trigger]\non = "marker"\nbackfill = {backfill}\n'
        (tmp_path / "run.toml").write_text(
            f'name = "r"\nscript = "train.py"\n[dataset]\nuri = "{data.as_uri()}"\n{trigger}'
        )
        code, out, _ = argosy("events", "why", uri, str(tmp_path / "run.toml"))
        assert code == 1
        told.append(out.splitlines()[1])
    assert told[0].startswith("now: nobody has looked yet: what was there before the trigger starts nothing")
    assert told[1] == "now: an event of this object, or a look, starts the run (on = marker)"


def test_who_looks_once_does_not_listen(argosy, tmp_path: Path) -> None:
    """Announcements went to a port that nobody had opened."""
    run = tmp_path / "run.toml"
    run.write_text('name = "fed"\n')
    code, _, err = argosy("watch", str(run), "--once", "--listen", "127.0.0.1:0")
    assert (code, "--listen 127.0.0.1:0: --once looks once and ends, and hears nobody; leave one" in err) == (2, True)


def test_a_start_whose_workflow_nobody_has_created_is_told_as_that(argosy, tmp_path: Path) -> None:
    """A trigger without the right to create Workflows had "started" a run that was nowhere."""
    journal = Journal(open_store(tmp_path.as_uri()), "r")
    code, out, err = argosy("events", f"{tmp_path.as_uri()}/r")
    assert code == 0, err
    assert "argo submit --from workflowtemplate/r-trigger" in out
    assert "argosy watch" not in out  # without the run's description
    start = Decision("start", "new", "file:///c/v1", key="k", workflow="r-1", seq=1)
    assert journal.append(start)
    journal.settle(start)
    _, out, _ = argosy("events", f"{tmp_path.as_uri()}/r")
    assert "-> r-1, not created yet: the next event or look does: new" in out
    journal.mark_done(1)
    _, out, _ = argosy("events", f"{tmp_path.as_uri()}/r")
    assert "-> r-1: new" in out


def test_an_address_that_cannot_be_listened_on_is_refused_with_a_way_out(watched: Watched) -> None:
    refused = argosy(watched.folder, "watch", "run.toml", "--listen", "127.0.0.1:99999")
    assert refused.returncode == 2
    assert "a free port, at most 65535" in refused.stderr


def test_a_question_about_no_uri_or_a_run_without_a_trigger_is_answered_as_such(argosy, tmp_path: Path) -> None:
    """It asked "which data?" for data that were named, and offered a watch that refuses the run."""
    (tmp_path / "train.py").write_text("print(1)\n")
    run = tmp_path / "run.toml"
    run.write_text('name = "r"\nscript = "train.py"\n')
    code, _, err = argosy("events", "why", "corpus/v1", str(run))
    assert code == 2
    assert "why 'corpus/v1': no uri" in err
    code, out, _ = argosy("events", str(run))
    assert code == 0
    assert "has no [trigger], so nothing starts it" in out
    assert "argosy watch" not in out


def test_a_store_that_counts_from_one_again_starts_what_it_decides(story, tell, tmp_path: Path) -> None:
    """After a new storage.uri "start" was said of new data, the exit code was 0, and no run was ever begun."""
    tell.killed_and_resumed(story)
    story.finish("Succeeded", 130.0)
    runs = LocalRuns(story.state_dir, "gpt", tmp_path / "none.yaml", lambda text: None)
    runs.start(Decision("start", "", "", seq=1, workflow=story.workflow))
    assert runs.turn()
    assert runs.running() == []
    runs.start(Decision("start", "", "", seq=1, workflow="gpt-other"))
    assert runs.running() == ["gpt-other"]


def test_a_run_by_hand_that_new_data_replace_has_ended_before_theirs_begins(watched: Watched) -> None:
    """It "is asked to end" was said, nobody asked it, and both ran at once."""
    script = watched.folder / "code" / "train.py"
    script.write_text(SCRIPT.replace("time.sleep(0.05)", "time.sleep(0.05 if name == 'v1' else 60)"))
    run = watched.folder / "run.toml"
    run.write_text(run.read_text() + 'while_running = "replace"\n')
    watched.put("old")
    assert argosy(watched.folder, "watch", "run.toml", "--once").returncode == 0
    command = [*ARGOSY, "run", "run.toml", "--name", "by-hand", "-p", f"dataset-uri=file://{watched.folder}/corpus/old"]
    state = watched.folder / ".argosy"
    folder = RunFolder(state / "runs" / "by-hand", state)
    with subprocess.Popen(command, cwd=watched.folder, stdout=subprocess.DEVNULL) as by_hand:
        try:
            while not (folder.engine_runs() and folder.state().get("phase") == "Running"):
                assert by_hand.poll() is None
                time.sleep(0.05)
            watched.put("v1")
            watched.begin()
            watched.until("the new one", lambda: ": runs; " in watched.told())
            assert not folder.engine_runs()
            watched.until("its end", lambda: watched.ended("v1"))
            assert by_hand.wait(60) == 143
        finally:
            by_hand.terminate()


SLEEPER = """
import sys, time
awake, sleep, slept = time.monotonic(), time.sleep, []
def sleeps(seconds):
    slept.append(seconds)
    sleep(seconds)
time.sleep = sleeps
time.time = lambda: 1924948800 + time.monotonic() - awake + (13 * 3600 if 0.2 in slept else 0)
from argosy.workflows.cli.main import main
main()
"""


def test_a_machine_that_slept_is_not_late_and_a_store_that_was_away_is_asked_before_the_next_night(
    watched: Watched,
) -> None:
    """At noon of 2030-12-31 it falls asleep for 13 hours. The look at midnight came 13 hours late, or a year."""
    (watched.folder / "run.toml").write_text(
        (watched.folder / "run.toml").read_text() + 'on = "schedule"\nschedule = "0 0 1 1 *"\n'
    )
    watched.put("v1")
    no_folder = watched.folder / ".argosy" / "volumes" / "argosy" / "store" / "fed" / "trigger"
    no_folder.parent.mkdir(parents=True)
    no_folder.touch()
    with (watched.folder / "watch.log").open("a") as log:
        command = [sys.executable, "-c", SLEEPER, "watch", "run.toml"]
        watched.watch = subprocess.Popen(command, cwd=watched.folder, stdout=log, stderr=log, start_new_session=True)
    watched.until("a look that fails", lambda: "looking again later" in watched.told(), 60)
    no_folder.unlink()
    watched.until("the start", lambda: "new data at the time of the schedule -> fed-" in watched.told())
