"""One real run of a plain script, and what a newcomer does with it: words in braces, its files back, its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.placeholders import VARIABLES, as_it_is, fill
from argosy.workflows.code import pack
from tests import starts

ARGOSY = str(Path(sys.executable).parent / "argosy")
TRAIN = """\
import json, os, sys, time
os.makedirs("out", exist_ok=True)
for step in range(1, 7):
    print(f"step {step} loss {1 / step:.3f}", flush=True)
    time.sleep(0.2)
    if step % 3 == 0:
        told = {"step": step, "argv": sys.argv[1:], "CACHE": os.environ["CACHE"], "PLAIN": os.environ["PLAIN"]}
        told["data"] = sorted(name for name in os.listdir(sys.argv[2]) if name[0] != ".")
        with open("out/model.json.tmp", "w") as target:
            json.dump(told, target)
        os.replace(target.name, "out/model.json")
"""
EVALUATE = """\
import json, os, sys
model, metrics, held_out = sys.argv[1:4]
(name,) = os.listdir(model)
size = os.path.getsize(os.path.join(model, name))
json.dump({"files": sum(name[0] != "." for name in os.listdir(held_out)), "size": size}, open(metrics, "w"))
"""
RUN = """\
name = "first"
script = "train.py"
args = ["--data", "{{data}}", "--tag={{run_name}}-{{run_id}}", "--pattern", '\\{{epoch}}', "; touch {folder}/shell #"]
env = {{ CACHE = "{{checkpoint}}/cache", PLAIN = "$HOME" }}

[dataset]
uri = "file://{folder}/data"

[gang]
launcher = "plain"

[checkpoint]
mode = "opaque"
path = "out"
include = ["model.json"]
resume_args = ["--from", "{{newest}}", "--of", "{{run_id}}"]

[evaluation]
script = "evaluate.py"
args = ["{{checkpoint}}", "{{metrics}}", "{{data}}"]
dataset_uri = "file://{folder}/data"
metric = "files"
direction = "max"
"""


def argosy(folder: Path, *argv: str) -> tuple[int, str, str]:
    done = starts.argosy(folder, *argv)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which one run has been done."""
    root = tmp_path_factory.mktemp("first")
    (root / "data").mkdir()
    for name in ("a.txt", "b.txt"):
        (root / "data" / name).write_text(name)
    work = root / "work"
    work.mkdir()
    (work / "train.py").write_text(TRAIN)
    (work / "evaluate.py").write_text(EVALUATE)
    (work / "run.toml").write_text(RUN.format(folder=root))
    code, out, err = argosy(work, "run", "run.toml", "--run-id", "one")
    assert code == 0, out + err
    return work


def saved(folder: Path, step: int) -> dict[str, Any]:
    (code, _, err) = argosy(folder, "checkpoint", "get", "one", str(step), f"got-{step}")
    assert code == 0, err
    found: dict[str, Any] = json.loads((folder / f"got-{step}" / "model.json").read_text())
    return found


def test_words_in_braces_are_replaced_in_the_pod_and_no_shell_sees_them(folder: Path) -> None:
    told = saved(folder, 6)
    flag, data, tag, pattern, glob, shell = told["argv"]
    assert (flag, tag, pattern, glob) == ("--data", "--tag=first-one", "--pattern", "{epoch}")
    assert told["data"] == ["a.txt", "b.txt"]
    assert data.endswith("/volumes/data")
    assert shell == f"; touch {folder.parent}/shell #"
    assert not (folder.parent / "shell").exists()
    assert told["CACHE"].endswith("/out/cache")
    assert told["PLAIN"] == "$HOME"
    status = json.loads(argosy(folder, "status", "--json")[1])
    assert status["metric"] == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{run_id}", "r{x}"), ("a{run_id}{run_id}", "ar{x}r{x}"), ("{nothing}", "{nothing}"), ("{}", "{}"),
        (r"\{run_id}", "{run_id}"), ('{"a": 1}', '{"a": 1}'), ("{Data}", "{Data}"), ("{newest}", "out/{run_id}"),
        (r"C:\{x}\y", r"C:{x}\y"),
    ],
)  # fmt: skip
def test_a_value_is_filled_in_once_and_its_own_braces_stay(text: str, expected: str) -> None:
    environ = {VARIABLES["run_id"][0]: "r{x}"}
    assert fill(text, environ, {"newest": "out/{run_id}"}) == expected
    assert fill(as_it_is(text), environ) == text.replace("\\{", "{") or "\\" in text
    assert os.environ.get(VARIABLES["run_id"][0]) is None


def test_a_checkpoint_comes_back_verified_into_a_folder_of_its_own(folder: Path) -> None:
    listed = json.loads(argosy(folder, "checkpoint", "list", "one", "--json")[1])["checkpoints"]
    assert [each["step"] for each in listed] == [6, 3]
    for step, digest in ((3, listed[1]["digest"]), (6, listed[0]["digest"])):
        into = folder / f"fetched-{step}"
        code, out, err = argosy(folder, "checkpoint", "get", "one", digest[:8], str(into), "--json")
        assert code == 0, err
        assert json.loads(out) == {
            "run": json.loads(out)["run"], "digest": digest, "folder": str(into),
            "files": {"model.json": (into / "model.json").stat().st_size},
        }  # fmt: skip
        assert {path.name for path in into.iterdir()} == {"model.json", ".argosyignore"}
        assert json.loads((into / "model.json").read_text())["step"] == step
        assert not [name for name in pack(folder).files if name.startswith("fetched")]  # or the next run is another
    newest = folder / "newest"
    newest.mkdir()
    (newest / ".argosy-fetch-0").write_text("of a call that was killed")
    assert argosy(folder, "checkpoint", "get", "one", str(newest))[0] == 0
    assert (newest / "model.json").read_bytes() == (folder / "fetched-6" / "model.json").read_bytes()
    for word in ("3", listed[0]["digest"][:7]):
        code, _, err = argosy(folder, "checkpoint", "get", "one", word)
        assert (code, (folder / word).exists()) == (2, False)
        assert f" {word} FOLDER, or ./{word} " in err
    assert "reads like a RUN" in argosy(folder, "checkpoint", "get", "one")[2]
    assert argosy(folder, "checkpoint", "get", "./3")[0] == 0
    lay = (newest / "model.json").stat()
    os.utime(newest / "model.json", ns=(1, 1))
    assert argosy(folder, "checkpoint", "get", "one", str(newest))[0] == 0, "the same once more"
    lies = (newest / "model.json").stat()
    assert (lies.st_ino, lies.st_mtime_ns) == (lay.st_ino, lay.st_mtime_ns), "hashed, not written again"
    (folder / "linked").mkdir()
    (folder / "linked/model.json").symlink_to(newest / "model.json")
    assert argosy(folder, "checkpoint", "get", "one", str(folder / "linked"))[0] == 0
    assert not (folder / "linked/model.json").is_symlink(), "what a link leads to others may change"
    code, _, err = argosy(folder, "checkpoint", "get", "one", "3", str(newest))
    assert (code, "model.json lies there with other bytes" in err, "name another folder" in err) == (2, True, True)
    assert (newest / "model.json").read_bytes() == (folder / "fetched-6" / "model.json").read_bytes()
    code, _, err = argosy(folder, "checkpoint", "get", "one", "/proc/none")
    assert (code, "name a folder of your own" in err) == (2, True)
    code, _, err = argosy(folder, "checkpoint", "get", "one", ".")
    assert (code, "lies there" in err) == (2, True)


@pytest.mark.parametrize("verb", ["status", "logs", "explain", "checkpoint get", "rm"])
def test_a_shell_completes_the_runs_of_this_machine(folder: Path, verb: str) -> None:
    words = f"argosy {verb} fir"
    shell = {"_ARGOSY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = starts.argosy(folder, env={**os.environ, **shell})
    (run,) = (folder / ".argosy" / "runs").iterdir()
    assert (done.stdout, done.stderr) == (f"plain,{run.name}\n", "")


def test_a_corrupt_checkpoint_is_not_handed_over(folder: Path, tmp_path: Path) -> None:
    _copy(folder, tmp_path / "work")
    for shard in (tmp_path / "work" / ".argosy" / "volumes").rglob("runs/one/data/**/model.json*"):
        shard.write_bytes(shard.read_bytes().replace(b"a.txt", b"x.txt"))
    code, _, err = argosy(tmp_path / "work", "checkpoint", "get", "one", "6", "got")
    assert (code, "Traceback" in err, len(err.splitlines())) == (1, False, 1)
    assert err.startswith("argosy: checkpoint_corrupt: step 6, ")
    assert "; which are whole says argosy checkpoint verify first-" in err
    assert not (tmp_path / "work" / "got" / "model.json").exists()


def test_runs_are_listed_of_the_machine_and_of_a_store(folder: Path) -> None:
    (store,) = (folder / ".argosy" / "volumes").rglob("first/runs")
    root = store.parent.parent
    here = json.loads(argosy(folder, "ls", "--json")[1])["runs"]
    assert [(each["phase"], each["step"]) for each in here] == [("Promoted", 6)]
    for place in (root, root / "first"):
        there = json.loads(argosy(folder, "ls", f"file://{place}", "--json")[1])["runs"]
        assert [(each["run_id"], each["step"]) for each in there] == [("one", 6)]
    assert "one" in argosy(folder, "ls", f"file://{root}")[1]
    code, _, err = argosy(folder, "ls", "file:///mnt/argosy/store")  # as the report calls it
    assert code == 2
    assert f"made in this folder is file://{folder}/.argosy/volumes/argosy/store" in err


def test_the_report_is_opened_in_the_browser_that_is_named(folder: Path, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    done = starts.argosy(folder, "open", "one", "--json", env={**os.environ, "BROWSER": f"{browser} %s"})
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["shown"]
    assert (tmp_path / "opened").read_text() == f"{Path(told['report']).absolute().as_uri()}\n"


def test_git_does_not_see_the_state_folder(folder: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    seen = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=folder, check=True, capture_output=True, text=True
    )
    assert "run.toml" in seen.stdout
    assert ".argosy/" not in seen.stdout


def test_a_removed_run_is_gone_and_its_checkpoints_only_when_that_is_asked_for(folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    _copy(folder, work)
    (store,) = (work / ".argosy" / "volumes").rglob("first/runs/one")
    code, _, err = argosy(work, "rm", "one", "--checkpoints")
    assert (code, "pointer" in err) == (2, True), "it was promoted"
    assert any(store.rglob("data/**/model.json*"))
    left = work / ".argosy" / "removed" / "of-a-killed-call"
    left.mkdir(parents=True)
    code, out, err = argosy(work, "rm", "one")
    assert code == 0, err
    assert out.startswith("removed first-")
    assert any(store.rglob("data/**/model.json*"))
    assert not left.exists()
    assert not any((work / ".argosy" / "runs").iterdir())
    assert argosy(work, "ls")[1].startswith(f"no run yet in {work / '.argosy'}\n")


SLOW = TRAIN.replace("range(1, 7)", "range(1, 4000)")


def test_a_run_is_stopped_goes_on_later_and_is_removed_with_all_it_saved(folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text(SLOW)
    text = RUN.format(folder=folder.parent).split("[evaluation]", maxsplit=1)[0]
    (work / "run.toml").write_text(text)
    engine = subprocess.Popen([ARGOSY, "run", "run.toml", "--run-id", "two"], cwd=work, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 120
        while '"checkpoint' not in _events(work) and time.monotonic() < until:
            time.sleep(0.2)
        code, _, err = argosy(work, "rm", "two")
        assert (code, "argosy stop" in err) == (2, True)
        code, _, err = argosy(work, "run", "run.toml", "--run-id", "two", "--new")
        assert (code, "trains it now" in err, "--force" in err) == (2, True, True)
        code, out, err = argosy(work, "stop", "two")
        assert (code, "stopped" in out) == (0, True), err
        assert engine.wait(30) != 0
    finally:
        engine.terminate()  # else what fails here leaves it training
    status = json.loads(argosy(work, "status", "--json")[1])
    assert status["phase"] == "Interrupted" or status["interrupted"], status
    assert "stopped already" in argosy(work, "stop", "two")[1]
    engine = subprocess.Popen([ARGOSY, "run", "run.toml", "--run-id", "two"], cwd=work, stdout=subprocess.DEVNULL)
    try:
        while _events(work).count('"gang_created"') < 2 and time.monotonic() < until:
            time.sleep(0.2)
        told = argosy(work, "status")[1]
        assert ("Running" in told, "stopped by" in told) == (True, False), told
    finally:
        engine.terminate()
        engine.wait(30)
    assert argosy(work, "rm", "two", "--checkpoints")[0] == 0
    assert not any(path.is_file() for path in (work / ".argosy" / "volumes").rglob("first/runs/two/**/*"))


def _copy(folder: Path, into: Path) -> None:
    subprocess.run(["cp", "-a", str(folder), str(into)], check=True)  # unlike shutil it also takes sockets


def _events(work: Path) -> str:
    """Only below this folder: others come and go, which rglob does not survive."""
    run = work / ".argosy/volumes/argosy/store/first/runs/two"
    return "".join(path.read_text() for path in (run / "events").glob("*/*"))
