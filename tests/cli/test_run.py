"""run and compile, from the outside: real engine, real pods, files and exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from argosy.workflows.cli.source import from_toml
from argosy.workflows.cli.starting import read_event

HEAD = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: small-}\n"
THREE = f"""{HEAD}spec:
  entrypoint: main
  arguments: {{parameters: [{{name: word, value: hello}}]}}
  templates:
  - name: main
    dag:
      tasks:
      - {{name: a, template: echo}}
      - {{name: b, template: echo, depends: a}}
  - name: echo
    container: {{image: python, command: [python, -c, "print('{{{{workflow.parameters.word}}}}')"]}}
"""
BAD = f"""{HEAD}spec:
  entrypoint: main
  templates:
  - name: main
    container: {{image: python, command: [python, -c, "import sys; print('last words'); sys.exit(3)"]}}
"""
WAITS = f"""{HEAD}spec:
  entrypoint: main
  templates:
  - name: main
    dag:
      tasks: [{{name: a, template: quick}}, {{name: b, template: slow, depends: a}}]
  - name: quick
    container: {{image: python, command: [python, -c, "print('once')"]}}
  - name: slow
    container:
      image: python
      command: [python, -c, "import time; print('waiting', flush=True); time.sleep(600)  # MARK"]
"""
RUN = 'name = "r"\nscript = "train.py"\n[dataset]\nuri = "s3://bucket/corpus"\n'
NOTIFICATION = {
    "Records": [
        {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "other"}, "object": {"key": "x", "eTag": "e"}}}
    ]
}


def test_a_run_outlives_the_folder_that_it_was_started_in(tmp_path) -> None:
    (tmp_path / "w.yaml").write_text(THREE)
    gone = 'mkdir gone; cd gone; rmdir ../gone; "$0" "$@"'

    def from_nowhere(*words: object) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", gone, sys.executable, "-m", "argosy.workflows.cli.main", *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    state = tmp_path / "state"
    done = from_nowhere("run", tmp_path / "w.yaml", "--state-dir", state)
    assert done.returncode == 0, done.stderr
    assert f"--state-dir {state}" in done.stdout + done.stderr
    lost = from_nowhere("status")
    assert (lost.returncode, "was removed" in lost.stderr) == (2, True), lost.stderr


def test_a_workflow_runs_and_its_object_says_so(argosy, tmp_path) -> None:
    (tmp_path / "w.yaml").write_text(THREE)
    code, out, err = argosy("run", "w.yaml", "-p", "word=world", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["phase"] == "Succeeded"
    assert found["yaml_sha256"] == hashlib.sha256(THREE.encode()).hexdigest()
    assert f"yaml sha256 {found['yaml_sha256']}" in err
    assert "without effect on one machine: image\n" in err
    assert Path(found["report"]).read_text().startswith("<!doctype html>")
    assert "| world\n" in argosy("logs", found["workflow"])[1]


def test_lines_and_the_way_on_when_it_is_no_terminal(argosy, tmp_path) -> None:
    (tmp_path / "w.yaml").write_text(THREE)
    code, out, _ = argosy("run", "w.yaml")
    assert code == 0
    assert "step a: succeeded" in out
    assert "\x1b" not in out
    assert "\nNext:\n" in out


def test_a_failed_run_exits_1_and_quotes_its_last_words(argosy, tmp_path) -> None:
    (tmp_path / "w.yaml").write_text(BAD)
    code, out, _ = argosy("run", "w.yaml")
    assert code == 1
    assert "exit code 3" in out
    _, told, _ = argosy("explain")
    assert "    | last words\n" in told


def test_who_starts_a_run_waits_for_a_store_no_longer_than_a_person_does(argosy, tmp_path, monkeypatch) -> None:
    """As long as a pod does, three minutes, of an address that was mistyped."""
    monkeypatch.setattr("argosy.steps.store.opening.PERSON_SECONDS", 0.1)
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": "http://127.0.0.1:1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    (tmp_path / "t.py").write_text("print('step 1')\n")
    (tmp_path / "run.toml").write_text('name = "n"\nscript = "t.py"\nstorage.uri = "s3://b/p"\n')
    for verb in (("run",), ("compile", "--push")):
        code, _, err = argosy(*verb, str(tmp_path / "run.toml"))
        assert (code, "argosy: store_unavailable: cannot look at s3://b/p/n/code/" in err) == (1, True), err


def test_compile_and_run_name_the_same_bytes(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "run.toml").write_text('name = "r"\nscript = "train.py"\n')
    shas = []
    for output in ("a.yaml", "b.yaml"):  # the first must not become part of the code of the second
        code, out, err = argosy("compile", "run.toml", "-o", output, "--json")
        assert code == 0, err
        shas.append(json.loads(out)["yaml_sha256"])
    assert shas[0] == shas[1] == hashlib.sha256((tmp_path / "b.yaml").read_bytes()).hexdigest()
    code, out, err = argosy("compile", "run.toml")
    assert hashlib.sha256(out.encode()).hexdigest() == shas[0]
    assert "without progress: given up after" in err
    assert "code sha256" in err


def test_a_compiled_file_whose_code_was_not_pushed_is_refused_before_it_starts(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "run.toml").write_text('name = "r"\nscript = "train.py"\n')
    assert argosy("compile", "run.toml", "-o", "w.yaml")[0] == 0
    code, _, err = argosy("run", "w.yaml")
    assert code == 2
    assert "argosy compile run.toml -o w.yaml --push" in err
    assert not (tmp_path / ".argosy" / "runs").exists() or not list((tmp_path / ".argosy" / "runs").iterdir())


def test_ranks_override_the_shape_and_drop_the_gpus(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("")
    text = 'name = "r"\nscript = "train.py"\n[gang]\nnnodes = 4\nnproc_per_node = 8\nresources = { gpu = 8 }\n'
    (tmp_path / "run.toml").write_text(text)
    assert "nvidia.com/gpu" in argosy("compile", "run.toml")[1]
    yaml = argosy("compile", "run.toml", "-j", "2x1")[1]
    assert "nvidia.com/gpu" not in yaml
    assert "completions: 2" in yaml
    assert "--nproc-per-node" not in yaml  # 1 is launch's own default


def test_an_event_for_another_dataset_starts_nothing(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "run.toml").write_text(RUN)
    (tmp_path / "event.json").write_text(json.dumps(NOTIFICATION))
    code, out, _ = argosy("run", "run.toml", "--event", "event.json", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["phase"] == "NotStarted"
    assert found["admission"]["decision"] == "ignore"
    assert "s3://other/x" in found["admission"]["reason"]
    assert not (tmp_path / ".argosy").exists()


@pytest.mark.parametrize(("trigger", "below"), [('on = "marker"\nmarker = ["DONE"]', "/v2"), ('on = "marker"', "")])
def test_the_runs_own_marker_says_which_folder_an_event_is_of(argosy, tmp_path, trigger: str, below: str) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "run.toml").write_text(f"{RUN}\n[trigger]\n{trigger}\n")
    created = {"bucket": {"name": "bucket"}, "object": {"key": "corpus/v2/DONE", "eTag": "e"}}
    (tmp_path / "event.json").write_text(json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": created}]}))
    source = from_toml(tmp_path / "run.toml", None)
    starts, _, values = read_event(source, tmp_path / "event.json")
    assert (starts, values["dataset-uri"]) == (True, f"s3://bucket/corpus{below}")


@pytest.fixture
def start(tmp_path: Path):
    """Start ``argosy run`` of a workflow whose second step waits; returns once it waits."""
    mark = uuid.uuid4().hex
    (tmp_path / "mark").write_text(mark)
    (tmp_path / "w.yaml").write_text(WAITS.replace("MARK", mark))
    started = []

    def call(*flags: str) -> subprocess.Popen[str]:
        before = waits(tmp_path)
        command = [sys.executable, "-m", "argosy.workflows.cli.main", "run", "w.yaml", *flags]
        run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(run)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and run.poll() is None:
            if waits(tmp_path) - before:
                return run
            time.sleep(0.05)
        pytest.fail(f"the run does not wait: {run.poll()}")

    yield call
    for run in started:
        if run.poll() is None:
            run.kill()
        run.communicate()


def waits(folder: Path) -> set[int]:
    """Processes of the second step: it carries a mark, because a foreign container's environment is its own."""
    mark = (folder / "mark").read_bytes()
    listed = [int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit()]
    return {number for number in listed if mark in read(f"/proc/{number}/cmdline")}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_an_interrupted_run_goes_on_where_it_stopped(number, code, start, argosy, tmp_path) -> None:
    run = start()
    run.send_signal(number)
    _, err = run.communicate(timeout=60)
    assert run.returncode == code
    assert "Traceback" not in err
    status = json.loads(argosy("status", "--json")[1])
    assert status["interrupted"] == signal.Signals(number).name
    _, said, _ = argosy("status")
    assert "Interrupted" in said
    assert "Running" not in said
    assert "run it again to resume" in status["message"]
    assert "argosy run " in said
    (tmp_path / "other.yaml").write_text((tmp_path / "w.yaml").read_text() + "# other\n")
    refused, _, err = argosy("run", "other.yaml", "--name", status["workflow"])
    assert (refused, "another YAML" in err, "going on" in err) == (2, True, False), err
    again = start("--json")
    again.send_signal(signal.SIGINT)
    out, err = again.communicate(timeout=60)
    assert again.returncode == 130, err
    assert f"going on with the interrupted run {status['workflow']}" in err
    assert json.loads(out)["workflow"] == status["workflow"]
    logs = [log.read_text() for log in tmp_path.glob(".argosy/runs/*/nodes/*/pods/*/log")]
    assert sum(text.count("once") for text in logs) == 1  # the step that was done was not done again
    assert not waits(tmp_path)


def test_while_what_runs_ends_slowly_it_is_said_how_long_it_may(start, tmp_path) -> None:
    slowly = "import signal, time; signal.signal(15, lambda *_: (time.sleep(1.5), exit())); print("
    path = tmp_path / "w.yaml"
    path.write_text(path.read_text().replace("import time; print(", slowly))
    run = start()
    while not any("waiting" in log.read_text() for log in tmp_path.glob(".argosy/runs/*/nodes/*/pods/*/log")):
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    assert "] stopping: what runs has up to 30 s to end, and is killed" in run.communicate(timeout=60)[0]


def test_who_interrupts_once_more_does_not_wait_for_what_ends_slowly(start, argosy, tmp_path) -> None:
    deaf = "import signal, time; signal.signal(15, lambda *_: print('heard', flush=True)); print("
    path = tmp_path / "w.yaml"
    path.write_text(path.read_text().replace("import time; print(", deaf))
    run = start()
    for word in ("waiting", "heard"):
        while not any(word in log.read_text() for log in tmp_path.glob(".argosy/runs/*/nodes/*/pods/*/log")):
            time.sleep(0.02)
        time.sleep(0.6 if word == "heard" else 0)  # one that follows in no time is the first one, passed on
        run.send_signal(signal.SIGINT)
    run.communicate(timeout=20)
    assert (run.returncode, waits(tmp_path)) == (130, set())
    assert json.loads(argosy("status", "--json")[1])["interrupted"] == "SIGINT"


def test_an_interruption_that_a_wrapper_passes_on_is_one(start, tmp_path) -> None:
    slowly = "import signal, time; signal.signal(15, lambda *_: (time.sleep(0.3), print('saved', flush=True), exit()));"
    path = tmp_path / "w.yaml"
    path.write_text(path.read_text().replace("import time;", slowly))
    run = start()
    while not any("waiting" in log.read_text() for log in tmp_path.glob(".argosy/runs/*/nodes/*/pods/*/log")):
        time.sleep(0.02)
    for _ in range(2):
        run.send_signal(signal.SIGINT)
        time.sleep(0.01)
    run.communicate(timeout=60)
    assert any("saved" in log.read_text() for log in tmp_path.glob(".argosy/runs/*/nodes/*/pods/*/log"))


def test_what_was_done_before_an_interruption_is_not_told_again(start) -> None:
    run = start()
    run.send_signal(signal.SIGINT)
    assert "step a: succeeded" in run.communicate(timeout=60)[0]
    again = start()
    again.send_signal(signal.SIGINT)
    assert "step a: succeeded" not in again.communicate(timeout=60)[0]


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_named_with_the_way_on(tmp_path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "run.toml").write_text('name = "r"\nscript = "train.py"\n')
    tmp_path.chmod(0o555)
    # Root without its capabilities obeys permissions, and unlike another user it can read this interpreter.
    obeying = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    command = [*obeying, sys.executable, "-m", "argosy.workflows.cli.main", "run", "run.toml"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    tmp_path.chmod(0o755)
    assert ended.returncode == 2, ended.stderr
    assert f"--state-dir {tmp_path}/.argosy: cannot be made (Permission denied); name a folder" in ended.stderr


def test_another_run_of_the_name_says_that_one_was_interrupted(start, argosy, tmp_path) -> None:
    ours = "annotations: {argosy.dev/run-name: gpt}, generateName"
    text = (tmp_path / "w.yaml").read_text().replace("generateName", ours)
    text = text.replace("entrypoint: main", "entrypoint: main\n  arguments: {parameters: [{name: run-id, value: ''}]}")
    (tmp_path / "w.yaml").write_text(text)
    run = start()
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=60)
    assert ": Interrupted\n" in out
    name = json.loads(argosy("status", "--json")[1])["workflow"]
    (tmp_path / "w.yaml").write_text(text + "# another byte\n")
    other = start()
    other.send_signal(signal.SIGINT)
    _, err = other.communicate(timeout=60)
    assert f"starting anew: the interrupted run {name} has other code" in err
    assert f"go on with it: argosy run {tmp_path}/.argosy/runs/{name}/workflow.yaml" in err
    meant = start("--new")
    meant.send_signal(signal.SIGINT)
    assert "starting anew" not in meant.communicate(timeout=60)[1]
    gone_on = start("--run-id", name)  # nothing is begun anew under a run id that is there
    gone_on.send_signal(signal.SIGINT)
    assert "starting anew" not in gone_on.communicate(timeout=60)[1]


def read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def test_pushed_code_lies_where_the_answer_says(argosy, tmp_path) -> None:
    (tmp_path / "run.toml").write_text('name = "r"\nscript = "train.py"\n')
    (tmp_path / "train.py").write_text("print(1)\n")
    code, out, err = argosy("compile", "run.toml", "-o", "w.yaml", "--push", "--json")
    assert code == 0, err
    told = json.loads(out)
    pushed = Path(told["code_uri"].removeprefix("file://"))
    assert hashlib.sha256(pushed.read_bytes()).hexdigest() == told["code_digest"]


def test_an_interrupted_run_with_other_code_names_the_files(argosy, tmp_path) -> None:
    (tmp_path / "run.toml").write_text('name = "r"\nscript = "train.py"\n')
    (tmp_path / "train.py").write_text("import time; time.sleep(600)\n")
    (tmp_path / "old.py").write_text("")
    command = [sys.executable, "-m", "argosy.workflows.cli.main", "run", "run.toml"]

    def interrupted(until: str) -> str:
        run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert run.stdout is not None
        heard = ""
        while until not in heard:
            line = run.stdout.readline()
            assert line, heard
            heard += line
        run.send_signal(signal.SIGTERM)
        return heard + run.communicate(timeout=60)[0]

    interrupted("step admit: succeeded")
    (tmp_path / "train.py").write_text("import time; time.sleep(601)\n")
    (tmp_path / "old.py").unlink()
    (tmp_path / "a.py").write_text("")
    (tmp_path / "b.py").write_text("")
    heard = interrupted("step admit: succeeded")
    assert "has other code: train.py changed, a.py and b.py are new, old.py is gone; what is no code" in heard
    (tmp_path / "run.toml").write_text('name = "r"\nscript = "train.py"\n[retry]\nmax_restarts = 4\n')
    assert "has other code: run.toml changed;" in interrupted("step admit: succeeded")
