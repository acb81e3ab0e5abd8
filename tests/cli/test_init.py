"""init: what it reads out of scripts as people write them, and what it refuses to guess."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
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
    assert "line 10 uses init_process_group" in out
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
    assert "no resume_args: no --resume flag, and nothing" in out


def test_a_resume_flag_with_a_value_gets_the_checkpoints_path(written) -> None:
    script = 'import torch\np.add_argument("--resume", default="")\ntorch.save({}, "out/last.pt")\n'
    assert written(script)[0]["checkpoint"]["resume_args"] == ["--resume", "out/last.pt"]


def test_a_resume_flag_for_names_that_change_gets_the_newest(written) -> None:
    script = 'import torch\np.add_argument("--resume-from")\ntorch.save({}, f"out/epoch_{epoch}.pt")\n'
    assert written(script)[0]["checkpoint"]["resume_args"] == ["--resume-from", "{newest}"]


FOLDERS = """\
import os, torch
p.add_argument("--output_dir", default="outputs")
p.add_argument("--max_steps", type=int, default=30)
p.add_argument("--resume_from_checkpoint")
d = os.path.join(args.output_dir, f"checkpoint-{step}")
torch.save({}, os.path.join(d, "pytorch_model.bin"))
torch.save({}, os.path.join(d, "optimizer.pt"))
print("step", step)
"""


def test_what_numbered_files_cost_is_said_with_the_line_that_saves_it(written) -> None:
    numbered = 'import torch\nfor step in range(9):\n    torch.save({}, f"out/model_{step}.pt")\n'
    _, out = written(numbered)
    assert (
        'each commit holds all files so far; write unit = ["model_*[0-9].pt"] below it to store only the newest' in out
    )
    assert "only the newest" not in written(numbered.replace("model_", "fold_"), "--force")[1], "each is a result"
    assert "each commit holds" not in written(DDP, "--force")[1]


@pytest.mark.parametrize("flags", [(), ("--opaque", "outputs")])
def test_a_folder_for_each_checkpoint(flags, written) -> None:
    found, out = written(FOLDERS, *flags)
    assert found["checkpoint"] == {
        "mode": "opaque",
        "path": "outputs",
        "include": ["checkpoint-*/**/*"],
        "resume_args": ["--resume_from_checkpoint", "{newest}"],
    }
    assert "kill:rank=0@step=15 " in out


def test_a_folder_of_which_nothing_is_known_is_not_guessed(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text('import torch\ntorch.save({}, f"{where()}/{step}/model.pt")\n')
    code, _, err = argosy("init", "train.py")
    assert code == 2
    assert "--opaque FOLDER" in err


TURN = "    loss.backward()\n    optimizer.step()\n"


@pytest.mark.parametrize(
    ("script", "argv", "step"),
    [
        ('p.add_argument("--epochs", default=8)\nprint(f"Epoch {epoch}: loss {loss}")\n', (), 4),
        ('p.add_argument("--epochs", default=8)\nprint(f"step {step}: loss {loss}")\n', (), 50),
        ('p.add_argument("--max-iters", default=8)\n', ("--", "--max-iters=200"), 100),
        ('p.add_argument("--steps", default=1)\n', (), 1),
        ('p.add_argument("--steps", default="many")\n', (), 50),
        ("END = 12\nfor e in range(END):\n" + TURN + '    print(f"Epoch {e}: loss {loss}")\n', (), 6),
        ("END, s = 40, 0\nwhile s < 40:\n    s += 1\n" + TURN + '    print(f"step {s}: loss {loss}")\n', (), 20),
        ("END = 100_000\nfor e in range(END):\n" + TURN + '    print(f"Epoch {e}: loss {loss}")\n', (), 50),
        ("END = 40\ns = 0\nwhile s < END:\n    s += 1\n" + TURN + '    print(f"step {s}: loss {loss}")\n', (), 20),
    ],
)
def test_the_suggested_kill_comes_while_the_script_runs(script, argv, step, written) -> None:
    made = "model = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(model.parameters())\n"
    _, out = written(f'import torch\n{made}{script}torch.save(model.state_dict(), "c.pt")\n', *argv)
    assert f"kill:rank=0@step={step} " in out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
def test_a_full_disk_leaves_no_half_of_a_file(argosy, tmp_path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(small)]
    if subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        (small / "train.py").write_text(NANOGPT)
        with (small / "fill").open("wb", buffering=0) as fill, contextlib.suppress(OSError):
            while True:
                fill.write(b"0" * 4096)
        code, _, err = argosy("init", "small/train.py", "-o", "small/run.toml")
        assert code == 1
        assert "disk_full: small/run.toml: No space left on device; free some" in err
        (tmp_path / "run.toml").write_text('name = "r"\nscript = "train.py"\ncode = ""\n')
        code, _, err = argosy("compile", "run.toml", "-o", "small/w.yaml")
        assert (code, "disk_full: small/w.yaml: No space left on device" in err) == (1, True), err
        (tmp_path / "run.toml").write_text('name = "r"\nscript = "small/train.py"\n')
        (small / "state").mkdir()
        code, _, err = argosy("run", "run.toml", "--state-dir", "small/state")
        assert (code, "disk_full" in err, "free some and run the same again" in err) == (1, True, True), err
        assert sorted(path.name for path in small.iterdir()) == ["fill", "state", "train.py"]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_script_that_knows_argosy_needs_no_folder(written) -> None:
    uses = "from argosy import Checkpointer\nc = Checkpointer()\n"
    found, said = written(f"{uses}c.save(1, {{}}, final=True)\n")
    assert (found["checkpoint"], "final=True" in said) == ({"mode": "checkpointer"}, False)
    _, said = written(f"{uses}c.save(1, {{}})\n", "--force")
    assert "  final=True: no save of the script has it: without one a run has not succeeded" in said


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


READS = "import argparse, os, torch\np = argparse.ArgumentParser()\n{line}\ntorch.save({{}}, 'out/a.pt')\n"


@pytest.mark.parametrize(
    ("line", "given", "args", "env"),
    [
        ('p.add_argument("--data-dir", default="x")', (), ["--data-dir", "{data}"], None),
        (
            'p.add_argument("--data_path")',
            ("--lr", "1", "--data_path=/old"),
            ["--lr", "1", "--data_path", "{data}"],
            None,
        ),
        ('p.add_argument("--data")', ("--data", "/old", "--lr", "1"), ["--lr", "1", "--data", "{data}"], None),
        ('p.add_argument("data", nargs="?", default="imagenet")', ("--lr", "1"), ["--lr", "1", "{data}"], None),
        ('d = os.environ["DATA_DIR"]', (), None, {"DATA_DIR": "{data}"}),
        ('d = os.environ.get("DATASET_PATH", "x")', ("--lr", "1"), ["--lr", "1"], {"DATASET_PATH": "{data}"}),
        ('from os import getenv; d = getenv("DATA_DIR")', (), None, {"DATA_DIR": "{data}"}),
        ('d = os.environ["HOME"]', (), None, None),
    ],
)
def test_where_a_script_reads_its_data_is_filled_in(line, given, args, env, written) -> None:
    script = READS.format(line=line)
    found, out = written(script, "--dataset", "s3://bucket/c4/", *(("--", *given) if given else ()))
    assert found["dataset"] == {"uri": "s3://bucket/c4"}
    assert (found.get("args"), found.get("env")) == (args, env)
    assert "line 3 reads" in out or "$ARGOSY_DATA_PATH" in out
    found, out = written(script, "--force", *(("--", *given) if given else ()))
    assert "dataset" not in found
    assert ("--dataset URI" in out) == ("HOME" not in line)


def test_a_folder_that_the_shell_or_the_arguments_name_becomes_the_dataset(written, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "c4"
    folder.mkdir()
    odd = tmp_path / "50%41 #ü"  # %41 and # mean something else in a uri
    odd.mkdir()
    found, _ = written(READS.format(line='p.add_argument("--data")'), "--force", "--dataset", str(odd))
    assert found["dataset"]["uri"] == odd.as_uri()
    monkeypatch.setenv("DATA_DIR", str(folder))
    found, _ = written(READS.format(line='d = os.environ["DATA_DIR"]'), "--force")
    assert (found["dataset"]["uri"], found["env"]) == (f"file://{folder}", {"DATA_DIR": "{data}"})
    found, _ = written(READS.format(line='p.add_argument("--data")'), "--force", "--", "--data", str(folder))
    assert (found["dataset"]["uri"], found["args"]) == (f"file://{folder}", ["--data", "{data}"])


@pytest.mark.parametrize("name", ["start.sh", "start"])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("exec torchrun $OPTIONS src/train.py --lr 1", "starts src/train.py; give that one: argosy init src/train.py"),
        ("make train", "is no Python; name the .py file that trains"),
    ],
)
def test_a_script_of_the_shell_is_called_one(name: str, line: str, said: str, argosy, tmp_path) -> None:
    (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{line}\n")
    code, out, err = argosy("init", name)
    assert (code, out) == (2, "")
    assert f"SCRIPT {name}: a shell script, which {said}" in err


def test_a_step_that_may_never_come_is_no_promise(initialized) -> None:
    begin = "import torch\nm = torch.nn.Linear(4, 1)\no = torch.optim.SGD(m.parameters())\n"
    turn = "    m(x).backward()\n    o.step()\n    torch.save(m.state_dict(), 'o/m.pt')\n"
    _, _, told = initialized({"train.py": f"{begin}for step in range(40):\n{turn}"})
    assert "step=20   # watch it being killed and resumed\n" in told
    _, _, told = initialized({"train.py": f"{begin}for i, x in zip(range(40), data()):\n{turn}"})
    assert "step=50   # watch it being killed and resumed, if it takes so many steps\n" in told


def test_what_is_no_description_is_not_to_be_renamed(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    assert "write one with: argosy init train.py" in argosy("run", "train.py")[2]


def test_arguments_of_the_script_are_told_from_those_of_init(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    code, _, err = argosy("init", "train.py", "--epochs", "1")
    assert code == 2
    assert "the script's own follow --, as in argosy init train.py -- --epochs" in err
