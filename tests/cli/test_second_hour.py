"""A description under another name whose script fails, is mended, goes on as it was advised, and is cleaned up."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.workflows.cli.source import Source
from argosy.workflows.cli.state_dir import check_state_dir
from argosy.workflows.code import pack
from argosy.workflows.spec.run import TrainingRun
from tests import starts

ARGOSY = str(Path(sys.executable).parent / "argosy")
TRAIN = """\
import os, sys, time
os.makedirs("out", exist_ok=True)
done = max([int(name[5:-4]) for name in os.listdir("out") if name.endswith(".npz")], default=0)
for step in range(done + 1, 9):
    print(f"step {step} loss {1 / step:.3f}", flush=True)
    time.sleep(0.1)
    if step == 7:
        raise ValueError("a bad batch")
    if step % 2 == 0:
        with open("out/part", "w") as target:
            target.write(f"{step} weights")
        os.replace("out/part", f"out/snap_{step}.npz")
        time.sleep(0.5)
"""
RUN = """\
name = "gpt"
script = "train.py"

[gang]
launcher = "plain"
nnodes = 2

[checkpoint]
mode = "opaque"
path = "out"
include = ["snap_*.npz"]
"""


def argosy(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ARGOSY")}
    return starts.argosy(folder, *argv, env=clean)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a run that has failed, and the run's name."""
    folder = tmp_path_factory.mktemp("second-hour")
    (folder / "train.py").write_text(TRAIN)
    (folder / "gpt.toml").write_text(RUN)
    ended = argosy(folder, "run", "gpt.toml", "-j", "1x1", "-p", "force=true")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    (run,) = (folder / ".argosy" / "runs").iterdir()
    return folder, run.name


def test_the_command_that_goes_on_is_the_one_that_was_typed(failed: tuple[Path, str]) -> None:
    folder, name = failed
    before = argosy(folder, "status", name).stdout
    advised = re.search(r"`(argosy run [^`]*)`", argosy(folder, "explain").stdout)
    assert advised is not None
    assert advised[1] == f"argosy run gpt.toml -j 1x1 -p force=true --run-id {name}"
    (folder / "train.py").write_text(TRAIN.replace("step == 7", "False"))
    on = argosy(folder, *advised[1].split()[1:])
    assert on.returncode == 0, on.stdout + on.stderr
    assert "from step 6" in on.stdout
    # It is the same run in the store, and another workflow: the one that failed has trained no further.
    assert argosy(folder, "status", name).stdout == before
    assert f"{name} Failed 7 " in " ".join(argosy(folder, "ls").stdout.split())


def test_what_is_left_after_rm_is_said_and_found(failed: tuple[Path, str]) -> None:
    folder, name = failed
    told = re.search(r"its checkpoints stay: (argosy checkpoint list .*)", argosy(folder, "rm", name).stdout)
    assert told is not None
    assert "newest" in argosy(folder, *told[1].split()[1:]).stdout


def test_a_lone_snapshot_has_the_number_that_its_glob_counts(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(re.sub(r"print\(.*\)", "pass", TRAIN).replace("step == 7", "False"))
    (tmp_path / "run.toml").write_text(RUN.replace("nnodes = 2", ""))
    ended = argosy(tmp_path, "run", "run.toml")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.findall(r"checkpoint: step (\d+)", ended.stdout)[0] == "2"


def test_a_run_that_saved_nothing_ended_at_the_step_it_had_reached(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("for step in range(1, 6): print(f'step {step} loss 1')\n")
    (tmp_path / "run.toml").write_text(RUN.replace("nnodes = 2", ""))
    ended = argosy(tmp_path, "run", "run.toml")
    assert "exit code 70: finished_without_checkpoint: step 5\n" in ended.stdout, ended.stdout


def test_an_empty_place_has_no_run_and_is_not_an_empty_table(tmp_path: Path) -> None:
    assert argosy(tmp_path, "top").stdout == "no run yet\n"
    store = f"file://{tmp_path}"
    found = argosy(tmp_path, "ls", store).stdout
    assert found == f"no run in {store}; it is storage.uri of a run.toml, or that and the run's name\n"


def test_who_looked_and_found_nothing_new_is_not_told_that_nobody_looked(tmp_path: Path) -> None:
    (tmp_path / "corpus" / "v1").mkdir(parents=True)
    for name in ("_SUCCESS", "a"):
        (tmp_path / "corpus" / "v1" / name).touch()
    (tmp_path / "train.py").write_text(TRAIN)
    data = f'[dataset]\nuri = "file://{tmp_path}/corpus"\n[trigger]\non = "marker"\n'
    (tmp_path / "run.toml").write_text(RUN + data)
    assert "and nobody has looked\n" in argosy(tmp_path, "events").stdout
    assert argosy(tmp_path, "watch", "run.toml", "--once").returncode == 0
    assert "and the looks have found nothing new\n" in argosy(tmp_path, "events").stdout
    assert "there is no folder /mnt/none/store here" in argosy(tmp_path, "events", "file:///mnt/none/store/gpt").stderr


def test_the_description_that_lies_here_is_the_one_that_is_advised(tmp_path: Path) -> None:
    (tmp_path / "gpt.toml").write_text(RUN)
    (tmp_path / "w.yaml").write_text("kind: Pod\n")
    assert "argosy run gpt.toml " in argosy(tmp_path, "ls").stdout
    assert "start one with: argosy run gpt.toml;" in argosy(tmp_path, "status").stderr
    assert "compile one with: argosy compile gpt.toml -o workflow.yaml\n" in argosy(tmp_path, "run", "w.yaml").stderr
    (tmp_path / "other.toml").write_text(RUN)
    os.mkfifo(tmp_path / "pipe.toml")  # the advice waited for somebody to write there
    assert "start one with: argosy run run.toml;" in argosy(tmp_path, "status").stderr


def refused(folder: Path, *flags: str) -> str:
    """Why a run of a script that does nothing is not begun."""
    (folder / "train.py").write_text("")
    (folder / "run.toml").write_text(RUN)
    ended = argosy(folder, "run", "run.toml", *flags)
    assert (ended.returncode, ended.stdout) == (2, "")
    return ended.stderr


def test_a_state_folder_that_only_says_that_it_can_be_written_is_refused(tmp_path: Path) -> None:
    told = refused(tmp_path, "--state-dir", "/proc")
    assert "--state-dir /proc: cannot be written (" in told
    assert "; name a folder of your own with --state-dir" in told


@pytest.mark.parametrize("named", [".", "", "src"])
def test_a_state_folder_among_the_code_is_refused_and_nothing_of_it_is_hidden(named: str, tmp_path: Path) -> None:
    """A .gitignore with "*" was put there: git saw no file any more, and the next run no script."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "model.py").write_text("")
    told = refused(tmp_path, "--state-dir", named)
    assert "would be packed as code; name a folder of your own with --state-dir" in told
    assert not list(tmp_path.rglob(".gitignore"))


def test_a_state_folder_of_its_own_among_the_code_is_no_code(tmp_path: Path) -> None:
    for path in (tmp_path / "new", tmp_path / "old", tmp_path / ".argosy"):
        path.mkdir()
    (tmp_path / "old" / ".gitignore").write_text("*\n")
    (tmp_path / "old" / "runs").mkdir()
    (tmp_path / ".argosy" / "volumes").mkdir()  # data that was put there for the first run
    (tmp_path / "pushed" / "volumes").mkdir(parents=True)  # and by compile --push
    (tmp_path / "pushed" / "volumes" / "code.tar.gz").write_text("")
    (tmp_path / "pushed" / ".gitignore").write_text("")  # the disk was full
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "notes.txt").write_text("")
    (tmp_path / ".gitignore").write_text("hidden/\n")
    run = TrainingRun(name="gpt", script="train.py")
    source = Source(tmp_path / "run.toml", b"", {}, run, pack(tmp_path))
    for name in ("new", "old", ".argosy", "pushed", "made"):
        check_state_dir(tmp_path / name, source)
        assert (tmp_path / name / ".gitignore").read_text() == "*\n"
    check_state_dir(tmp_path / "hidden", source)
    assert [*map(str, pack(tmp_path).files)] == [".gitignore"]


@pytest.mark.parametrize("named", ["run.toml", "train.py", "link.yaml"])
def test_what_a_workflow_is_made_of_is_not_written_over(named: str, tmp_path: Path) -> None:
    """compile -o run.toml put the YAML in the description's place, and exited with 0."""
    (tmp_path / "run.toml").write_text(RUN)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "link.yaml").symlink_to("train.py")
    ended = argosy(tmp_path, "compile", "run.toml", "-o", named)
    assert (ended.returncode, "the workflow is made of this file; name another" in ended.stderr) == (2, True)
    assert [(tmp_path / name).read_text() for name in ("run.toml", "train.py")] == [RUN, TRAIN]


@pytest.mark.parametrize("named", ["wf", "empty.yaml"])
def test_what_was_compiled_before_is_written_over(named: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(RUN)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "empty.yaml").touch()  # as mktemp makes it
    for _ in range(2):
        assert argosy(tmp_path, "compile", "run.toml", "-o", named).returncode == 0


def test_a_state_folder_above_the_code_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(TRAIN)
    run = TrainingRun(name="gpt", script="train.py")
    source = Source(tmp_path / "code" / "run.toml", b"", {}, run, pack(tmp_path / "code"))
    check_state_dir(tmp_path, source)


def test_words_in_braces_that_this_run_has_no_value_for_are_refused_by_p_too(tmp_path: Path) -> None:
    """The description refused them, and -p handed the script the braces."""
    told = refused(tmp_path, "-p", 'args=["{data}"]')
    assert "{data} has no value in this run; add [dataset] with its uri, or write the path" in told


def test_a_description_is_no_script_though_it_reads_as_python(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('name = "gpt"\n[gang]\nnnodes = 1\n')
    ended = argosy(tmp_path, "init", "run.toml")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "SCRIPT run.toml: no Python script; name the .py file that trains" in ended.stderr


@pytest.mark.parametrize("kind", ["PyTorchJob", "List"])
def test_a_manifest_that_is_no_workflow_is_not_advised_to_be_written_over(kind: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(f"kind: {kind}\n")
    for verb in ("run", "compile"):
        ended = argosy(tmp_path, verb, "job.yaml")
        assert ended.returncode == 2
        assert "argosy import job.yaml -o run.toml" in ended.stderr
        assert "-o job.yaml" not in ended.stderr


@pytest.mark.parametrize(("launcher", "of_rank"), [("torchrun", "128 MiB a rank"), ("plain", "16 MiB a rank")])
def test_more_ranks_than_this_machine_could_hold(launcher: str, of_rank: str, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(RUN.replace("plain", launcher))
    (tmp_path / "train.py").write_text("")
    told = argosy(tmp_path, "run", "other.toml", "-j", "999x999").stderr
    assert "other.toml: 999 nodes with 999 ranks each take " in told
    assert f" at least (20 MiB a node, {of_rank}), and this machine has " in told
    assert "; run fewer here (-j NxP, from Python ranks=(N, P)), or all of them on a cluster" in told
    assert not (tmp_path / ".argosy/runs").exists()


def test_what_is_written_to_a_device_or_a_pipe_leaves_it_what_it_was(argosy, tmp_path: Path) -> None:
    """As root ``argosy compile -o /dev/null`` put a file in place of the whole machine's /dev/null."""
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "run.toml").write_text('name = "r"\nscript = "train.py"\n')
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        code, _, err = argosy("compile", str(tmp_path / "run.toml"), "-o", str(pipe))
        assert code == 0, err
        assert pipe.is_fifo()
        assert os.read(reader, 100).startswith(b"apiVersion: argoproj.io")
    finally:
        os.close(reader)


def test_the_command_that_goes_on_takes_up_that_run_with_what_it_was_started_with(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN.replace("step == 7", "False").replace("sleep(0.5)", "sleep(1.5)"))
    (tmp_path / "run.toml").write_text(RUN.replace("nnodes = 2", ""))
    told = {name: interrupted(tmp_path, "run.toml", "--run-id", name) for name in ("a", "b")}
    ways = {name: re.findall(r"(argosy run .*/workflow\.yaml) +# go on where it", text) for name, text in told.items()}
    anew = interrupted(tmp_path, "run.toml")
    assert f"has other parameters (run-id=b); go on with it: {ways['b'][0]}\n" in anew
    for name, (way,) in ways.items():
        assert way in argosy(tmp_path, "status", name).stdout
        assert way in argosy(tmp_path, "explain", name).stdout
        on = argosy(tmp_path, *way.split()[1:])
        assert on.returncode == 0, on.stdout + on.stderr
        assert (f"interrupted run {Path(way).parent.name} " in on.stderr, "from step 2" in on.stdout) == (True, True)


def interrupted(folder: Path, *argv: str) -> str:
    """What ``argosy run`` says that is stopped after its first checkpoint."""
    command = [ARGOSY, "run", *argv]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ARGOSY")}
    run = subprocess.Popen(
        command, cwd=folder, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )  # fmt: skip
    heard = ""
    while "checkpoint: step" not in heard:
        assert run.stdout is not None
        line = run.stdout.readline()
        assert line, heard
        heard += line
    run.send_signal(signal.SIGINT)
    return heard + run.communicate(timeout=60)[0]
