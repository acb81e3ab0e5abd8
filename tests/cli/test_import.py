"""``argosy import`` from outside: exit codes, the file it writes, and what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Argosy = Callable[..., tuple[int, str, str]]
JOB = """\
# two nodes
apiVersion: batch/v1
kind: Job
metadata: {name: train, labels: {team: vision}}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: trainer
          image: registry.example/train:1.4.2
          command: [torchrun, --nnodes=2, --node-rank=$(JOB_COMPLETION_INDEX), /app/train.py, --lr, "0.1"]
          resources: {limits: {nvidia.com/gpu: 2, memory: 64Gi}}
        - {name: watch, image: registry.example/watch:1}
"""
TOML = """\
# Imported from Job train (job.yaml).

name = "train"
image = "registry.example/train:1.4.2"  # the image needs argosy beside torch: in a clone of it, pip install '.[train]'
script = "/app/train.py"
args = ["--lr", "0.1"]
code = ""

[gang]
nnodes = 2
nproc_per_node = 2
runtime = "job"

[gang.resources]
gpu = 2
memory = "64Gi"
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    return file


def test_the_run_goes_to_standard_output_and_the_account_beside_it(argosy: Argosy, manifest: Path) -> None:
    code, out, err = argosy("import", manifest.name)
    assert (code, out) == (0, TOML)
    first, *lines = err.splitlines()
    assert first.startswith("Job train: ")
    assert [line for line in lines if line and not line.startswith(" ")][:3] == [
        "left to you",
        "changed",
        "not representable",
    ]
    assert any("watch" in line and "sidecars" in line for line in lines)
    assert any("team" in line for line in lines)
    assert all(len(line) <= 120 for line in lines)
    assert "kept\n" not in err


def test_what_says_the_same_is_one_line_and_columns_are_aligned(argosy: Argosy, manifest: Path) -> None:
    _, _, err = argosy("import", manifest.name)
    assert next(line.split() for line in err.splitlines() if "owns restarts" in line)[:3] == [
        "9…",
        "backoffLimit,",
        "restartPolicy",
    ]
    block = err.partition("\nchanged\n")[2].partition("\n\n")[0].splitlines()
    reasons = {len(line) - len(line.lstrip()) for line in block if line.startswith(" " * 12)}
    assert len(reasons) <= 1


def test_explain_tells_of_every_value_by_its_path(argosy: Argosy, manifest: Path) -> None:
    _, _, err = argosy("import", manifest.name, "--explain")
    assert "\nkept\n" in err
    for path in ("spec.template.spec.containers[0].image", "spec.parallelism", "spec.template.spec.containers[1]"):
        assert path in err


def test_json_is_one_object_with_stable_keys(argosy: Argosy, manifest: Path) -> None:
    code, out, err = argosy("import", manifest.name, "--json")
    assert (code, err) == (0, "")
    record = json.loads(out)
    assert list(record) == ["kind", "name", "output", "toml", "account"]
    assert (record["kind"], record["name"], record["output"], record["toml"]) == ("Job", "train", "", TOML)
    keys = {"fate", "path", "part", "file", "document", "line", "into", "why", "advice"}
    assert {frozenset(each) for each in record["account"]} == {frozenset(keys)}
    assert {each["fate"] for each in record["account"]} == {"kept", "changed", "by hand", "not representable"}


def test_a_file_is_written_once_and_the_next_commands_are_told(argosy: Argosy, manifest: Path) -> None:
    code, out, err = argosy("import", manifest.name, "-o", "run.toml")
    assert (code, out) == (0, "")
    assert Path("run.toml").read_text() == TOML
    assert "argosy compile run.toml -o workflow.yaml" in err
    code, _, err = argosy("import", manifest.name, "-o", "run.toml")
    assert code == 2
    assert "--force" in err
    assert argosy("import", manifest.name, "-o", "run.toml", "--force")[0] == 0
    code, _, err = argosy("import", manifest.name, "-o", "nowhere/run.toml")
    assert code == 2
    assert "nowhere/run.toml" in err


def test_a_dash_is_standard_output_and_no_file_of_that_name(argosy: Argosy, manifest: Path) -> None:
    assert argosy("import", manifest.name, "-o", "-")[:2] == (0, TOML)
    Path("run.toml").write_text(TOML)
    code, out, _ = argosy("compile", "run.toml", "-o", "-")
    assert (code, out) == (0, argosy("compile", "run.toml")[1])
    assert "--push" not in argosy("compile", "run.toml", "-o", "wf.yaml")[2]  # the image has the code
    code, _, err = argosy("init", "train.py", "-o", "-")
    assert (code, err) == (2, "argosy: --output -: this does not go to standard output; name a file\n")
    assert not Path("-").exists()


def test_what_cannot_be_imported_is_exit_2_and_one_line(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "service.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    code, out, err = argosy("import", "service.yaml")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("argosy: service.yaml: no training in it (it holds Service); name a file")
    assert argosy("import", "absent.yaml")[0] == 2
    # It was called a template, to be rendered by helm.
    wrong = "argosy: run.toml: is a run's description already; argosy compile run.toml makes its YAML\n"
    assert argosy("import", "run.toml") == (2, "", wrong)


def test_a_script_and_a_module_are_not_both_started(argosy: Argosy, manifest: Path) -> None:
    code, out, err = argosy("import", str(manifest), "--script", "a.py", "--module", "b")
    assert (code, out) == (2, "")
    assert "--script a.py and --module b: a rank starts one of them" in err


def test_a_folder_and_standard_input_are_read(argosy: Argosy, manifest: Path, tmp_path: Path) -> None:
    assert argosy("import", str(tmp_path))[0] == 0
    done = subprocess.run(
        [sys.executable, "-m", "argosy.workflows.cli.main", "import", "-"],
        input=JOB.encode(), capture_output=True, check=False, env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.decode() == TOML.replace("job.yaml", "<stdin>")
    assert max(len(line) for line in done.stderr.decode().splitlines()) <= 80


def test_control_characters_of_a_manifest_reach_no_terminal(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB.replace("team: vision", 'team: vision, "x\\u001b[31m": "\\u202e"'))
    code, out, err = argosy("import", "job.yaml", "--explain")
    assert code == 0
    assert "\x1b" not in out + err
    assert "\u202e" not in out + err


def test_a_run_here_is_offered_only_where_the_script_lies(argosy: Argosy, manifest: Path, tmp_path: Path) -> None:
    code, _, err = argosy("import", str(manifest), "-o", str(tmp_path / "run.toml"))
    assert (code, "argosy compile" in err, "argosy run" in err) == (0, True, False), err
    here = tmp_path / "train.py"
    here.write_text("")
    manifest.write_text(JOB.replace("/app/train.py", "train.py"))  # it is the image's, which no run here has
    code, _, err = argosy("import", str(manifest), "-o", str(tmp_path / "beside.toml"))
    assert (code, "argosy run" in err) == (0, False), err
    manifest.write_text(JOB.replace("/app/train.py", str(here)))
    code, _, err = argosy("import", str(manifest), "-o", str(tmp_path / "other.toml"))
    assert (code, "argosy run" in err) == (0, True), err


def test_a_script_of_the_image_is_not_started_on_one_machine(argosy: Argosy, manifest: Path, tmp_path: Path) -> None:
    assert argosy("import", str(manifest), "-o", str(tmp_path / "run.toml"))[0] == 0
    code, out, err = argosy("run", "run.toml", "-j", "2x1")
    assert (code, out) == (2, "")
    assert "run.toml: script = '/app/train.py', code = '': the script is in the image, which no run on one mach" in err
    assert "with: argosy submit run.toml" in err
    assert not (tmp_path / ".argosy/runs").exists()


def test_a_script_of_a_volume_is_started_on_one_machine(argosy: Argosy, tmp_path: Path) -> None:
    folder = tmp_path / ".argosy/volumes/argosy/code"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("import os\nos.mkdir('out')\nopen('out/a.txt', 'w').write('1')\n")
    (tmp_path / "run.toml").write_text(
        'name = "volume"\nscript = "train.py"\ncode = ""\nworking_dir = "/mnt/argosy/code"\n'
        '[gang]\nnnodes = 1\nlauncher = "plain"\n[checkpoint]\nmode = "opaque"\npath = "out"\ninclude = ["*.txt"]\n'
    )
    code, out, err = argosy("run", "run.toml")
    assert (code, "Trained on 1 node" in out) == (0, True), out + err
