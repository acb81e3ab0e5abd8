"""init: what it reads out of scripts as people write them, and what it refuses to guess."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from argosy.workflows.spec.load import load_run

DDP = """\
import argparse, os, torch
from torch.nn.parallel import DistributedDataParallel as DDP
p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=100)
p.add_argument("--out", default="out")
p.add_argument("--data", required=True)
p.add_argument("--resume", action="store_true")
args = p.parse_args()
ckpt = os.path.join(args.out, "ckpt.pt")
torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
def save(step):
    tmp = ckpt + ".tmp"
    torch.save({"step": step}, tmp)
    os.replace(tmp, ckpt)
"""
NANOGPT = """\
import os, torch
out_dir = 'out'
init_from = 'scratch'
exec(open('configurator.py').read())
from torch.nn.parallel import DistributedDataParallel as DDP
if init_from == 'resume':
    checkpoint = torch.load(os.path.join(out_dir, 'ckpt.pt'))
torch.save({}, os.path.join(out_dir, 'ckpt.pt'))
"""


@pytest.fixture
def written(argosy, tmp_path):
    """Write a script, call init, return the TOML's tables and what was said."""

    def call(script: str, *argv: str, name: str = "train.py"):
        (tmp_path / name).write_text(script)
        code, out, err = argosy("init", name, "-o", "run.toml", *argv)
        assert code == 0, err
        text = (tmp_path / "run.toml").read_text()
        assert text.count("\n") <= 15
        load_run(tmp_path / "run.toml")
        return tomllib.loads(text), out

    return call


def test_an_ordinary_ddp_script(written, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found, out = written(DDP)
    assert found["gang"]["nnodes"] == 2
    assert found["checkpoint"] == {"mode": "opaque", "path": "out", "include": ["ckpt.pt"], "resume_args": ["--resume"]}
    assert "line 2 uses DistributedDataParallel" in out
    assert "line 14 saves there" in out
    assert "line 7 declares --resume" in out
    assert "The script requires --data: add them to args." in out
    assert "argosy run run.toml" in out


def test_the_scripts_arguments_win_over_its_defaults(written) -> None:
    found, out = written(DDP, "--", "--out", "elsewhere", "--data=x")
    assert found["args"] == ["--out", "elsewhere", "--data=x"]
    assert found["checkpoint"]["path"] == "elsewhere"
    assert "requires" not in out


def test_a_nanogpt_script(written) -> None:
    found, _ = written(NANOGPT)
    assert found["checkpoint"]["path"] == "out"
    assert found["checkpoint"]["resume_args"] == ["--init_from=resume"]


@pytest.mark.parametrize(
    ("expression", "path", "pattern"),
    [
        ('"ckpt.pt"', ".", "ckpt.pt"),
        ('f"out/step_{step}.pt"', "out", "step_*.pt"),
        ('"out/%05d.pt" % step', "out", "*.pt"),
        ('"out/{}.pt".format(step)', "out", "*.pt"),
        ('Path("out") / "sub" / f"{step}.pt"', "out/sub", "*.pt"),
        ('os.path.join("a", "b", "c.pt")', "a/b", "c.pt"),
        ('FOLDER + "/last.pt"', "runs", "last.pt"),
        ('str(Path(FOLDER).joinpath("x.pt"))', "runs", "x.pt"),
        ("f'{FOLDER}/x-{rank}.pt'", "runs", "x-*.pt"),
    ],
)
def test_the_ways_of_writing_a_path(expression, path, pattern, written) -> None:
    found, _ = written(f'import os, torch\nfrom pathlib import Path\nFOLDER = "runs"\ntorch.save({{}}, {expression})\n')
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == (path, [pattern])


def test_a_script_without_distributed_runs_alone(written) -> None:
    found, out = written('import torch\ntorch.save({}, "ckpt.pt")\n')
    assert (found["gang"]["nnodes"], found["gang"]["nproc_per_node"]) == (1, 1)
    assert "no resume_args: no --resume flag found" in out


def test_a_resume_flag_with_a_value_gets_the_checkpoints_path(written) -> None:
    script = 'import torch\np.add_argument("--resume", default="")\ntorch.save({}, "out/last.pt")\n'
    assert written(script)[0]["checkpoint"]["resume_args"] == ["--resume", "out/last.pt"]


def test_a_script_that_knows_argosy_needs_no_folder(written) -> None:
    found, _ = written("from argosy import Checkpointer\nc = Checkpointer()\n")
    assert found["checkpoint"] == {"mode": "checkpointer"}


def test_the_name_comes_from_a_script_that_says_something(written) -> None:
    found, _ = written('import torch\ntorch.save({}, "c.pt")\n', name="3D_Unet!.py")
    assert found["name"] == "train-3d-unet"


def test_flags_win_over_guesses(written) -> None:
    found, _ = written(
        *(DDP, "--name", "mine", "--opaque", "ck", "--include", "a*.pt", "--include", "b.pt", "-j", "3x4"),
        *("--resume-arg=--go-on", "--resume-arg=1"),
    )
    assert found["name"] == "mine"
    assert found["gang"] == {"nnodes": 3, "nproc_per_node": 4}
    assert found["checkpoint"]["include"] == ["a*.pt", "b.pt"]
    assert found["checkpoint"]["resume_args"] == ["--go-on", "1"]


def test_an_existing_file_is_never_overwritten_without_force(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(NANOGPT)
    (tmp_path / "run.toml").write_text("mine")
    assert argosy("init", "train.py")[0] == 2
    assert (tmp_path / "run.toml").read_text() == "mine"
    assert argosy("init", "train.py", "--force")[0] == 0
    assert (tmp_path / "run.toml").read_text() != "mine"


def test_a_script_elsewhere_gets_its_file_beside_it(argosy, tmp_path: Path, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("unet")
    (folder / "train.py").write_text(NANOGPT)
    code, out, _ = argosy("init", str(folder / "train.py"), "--json")
    assert code == 0
    found = json.loads(out)
    assert found["path"] == str(folder / "run.toml")
    assert tomllib.loads(found["toml"])["script"] == "train.py"
    assert not (tmp_path / "run.toml").exists()


def test_a_script_outside_the_files_folder_is_refused(argosy, tmp_path: Path, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("unet")
    (folder / "train.py").write_text(NANOGPT)
    code, _, err = argosy("init", str(folder / "train.py"), "-o", "run.toml")
    assert code == 2
    assert "travels as code" in err


def test_the_script_is_never_run(written, tmp_path) -> None:
    written(f'import torch\nopen({str(tmp_path / "ran")!r}, "w")\ntorch.save({{}}, "c.pt")\n')
    assert not (tmp_path / "ran").exists()
