"""init on how a script comes to its ranks, whom a library calls back, and folders outside the one that it runs in."""

from __future__ import annotations

import pytest
from torch.distributed.elastic.utils import macros

from argosy.steps.contract.placeholders import fill

PARSER = "import argparse, glob, os, torch\nfrom pathlib import Path\np = argparse.ArgumentParser()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": o}, '
GROUP = "torch.distributed.init_process_group('nccl'"


@pytest.fixture
def read(initialized):
    """What init says of train.py, and the run.toml that it writes."""
    return lambda script, *argv: initialized({"train.py": script}, *argv)


def ranks(found) -> tuple[int, int]:
    return found["gang"]["nnodes"], found["gang"]["nproc_per_node"]


def test_a_launcher_that_a_flag_names_is_torchrun(read) -> None:
    script = f"{PARSER}p.add_argument('--launcher', choices=['none', 'pytorch', 'slurm'], default='none')\n"
    script += f"args = p.parse_args()\nif args.launcher != 'none':\n    {GROUP})\n{STATE}f'o/{{n}}.pt')\n"
    _, found, said = read(script, "--", "--launcher", "none")
    assert ranks(found) == (1, 1)
    assert "makes its group of ranks only if args.launcher != 'none': one process" in said
    _, found, _ = read(script)
    assert (found["args"], ranks(found)) == (["--launcher", "pytorch"], (2, 2))


def test_a_rank_of_the_node_is_none_of_a_group_of_several(read) -> None:
    script = (
        f"{PARSER}local_rank = int(os.getenv('LOCAL_RANK', -1))\nif local_rank != -1:\n    {GROUP}, rank=local_rank)\n"
    )
    _, found, said = read(f"{script}{STATE}f'o/{{n}}.pt')\n")
    assert (ranks(found), "one node only" in said) == ((1, 2), True)


@pytest.mark.parametrize("name", ["f'last.{rank}.pt'", "'queue' + str(rank) + '.pth'"])
def test_a_file_for_each_rank_lies_on_its_node(name: str, read) -> None:
    script = f"{PARSER}{GROUP})\ndef save(rank):\n    {STATE}os.path.join('o', {name}))\n"
    _, found, said = read(f"{script}save(torch.distributed.get_rank())\n")
    assert (ranks(found), "names a file for each rank" in said, "write unit" in said) == ((1, 2), True, False)


@pytest.mark.parametrize("said_so", ["f'rank {rank} saved last.pt'", "'rank ' + str(rank) + ' saved last.pt'"])
def test_a_line_that_names_a_rank_and_a_file_is_no_file_of_that_rank(said_so: str, read) -> None:
    script = f"{PARSER}{GROUP})\nrank = torch.distributed.get_rank()\nprint({said_so})\n"
    assert "names a file for each rank" not in read(f"{script}{STATE}'o/last.pt')\n")[2]


def test_the_rank_that_an_older_launcher_gives_is_written(read) -> None:
    script = f"{PARSER}p.add_argument('--local_rank', type=int, required=True)\nargs = p.parse_args()\n"
    script += f"torch.cuda.set_device(args.local_rank)\n{GROUP}, rank=int(os.environ['RANK']))\n"
    _, found, said = read(f"{script}{STATE}f'o/{{n}}.pt')\n")
    assert (found["args"], ranks(found)) == ([r"--local_rank=$\{local_rank}"], (2, 2))
    assert "requires" not in said


def test_torchrun_replaces_what_is_written_there() -> None:
    given = fill(r"--local_rank=$\{local_rank}", {})
    assert macros.substitute([given, "$HOME"], "3") == ["--local_rank=3", "$HOME"]


def test_a_device_that_a_flag_tells_is_told_where_a_branch_reads_the_variable(read) -> None:
    script = f"{PARSER}p.add_argument('--local_rank', type=int, default=0)\nargs = p.parse_args()\n"
    script += "os.environ.setdefault('LOCAL_RANK', str(args.local_rank))\n{device}"
    script += f"torch.cuda.set_device(args.local_rank)\n{GROUP})\n{STATE}f'o/{{n}}.pt')\n"
    _, found, _ = read(script.replace("{device}", ""))
    assert found["args"] == [r"--local_rank=$\{local_rank}"]
    _, found, _ = read(script.replace("{device}", "args.local_rank = int(os.environ['LOCAL_RANK'])\n"))
    assert "args" not in found


def test_a_sampler_that_takes_the_rank_on_its_node_is_one_node_s(read) -> None:
    script = f"{PARSER}p.add_argument('--local_rank', type=int)\nargs = p.parse_args()\n{GROUP})\n"
    script += "torch.utils.data.DistributedSampler(data, num_replicas=2, rank=args.local_rank)\n"
    _, found, said = read(f"{script}{STATE}f'o/{{n}}.pt')\n")
    assert (ranks(found), "one node only" in said) == ((1, 2), True)


def test_a_rank_that_a_file_of_settings_has_is_none_of_torchrun(read, tmp_path) -> None:
    (tmp_path / "c.yaml").write_text("local_rank: -1\nout: o\n")
    script = (
        f"{PARSER}import hydra\n@hydra.main(config_path='.', config_name='c', version_base='1.3')\ndef main(cfg):\n"
    )
    script += f"    if cfg.local_rank != -1:\n        {GROUP})\n    {STATE}cfg.out + f'/{{n}}.pt')\nmain()\n"
    _, found, said = read(script)
    assert (ranks(found), "which torchrun does not give" in said) == ((1, 1), True), said


LIGHTNING = """from pytorch_lightning import Callback, Trainer
p.add_argument('--out', default='o')
p.add_argument('--devices', default='2')
args = p.parse_args()
for name in os.listdir(args.out):
    args.load = os.path.join(args.out, name)
torch.load(args.load)
class Saver(Callback):
    def __init__(self, args):
        self.args = args
    def on_train_epoch_end(self, trainer, module):
        if self.args.kind == 'part':
            torch.save(part, f'{self.args.out}/net-{trainer.current_epoch}.pth')
        else:
            torch.save(module.state_dict(), f'{self.args.out}/net-{trainer.current_epoch}.pth')
torch.save(net, args.out + '/first.pth')
args.enable_checkpointing = False
Trainer(devices=args.devices, callbacks=[Saver(args)], enable_checkpointing=args.enable_checkpointing).fit(net)
"""


def test_what_a_callback_saves_where_lightning_may_not_is_kept(read) -> None:
    _, found, said = read(f"{PARSER}p.add_argument('--kind', default='')\n{LIGHTNING}")
    assert (found["checkpoint"]["path"], set(found["checkpoint"]["include"])) == ("o", {"net-*.pth", "first.pth"}), said
    assert ranks(found) == (1, 2)
    assert "looks for it and goes on by itself" in said


def test_a_trainer_of_lightnings_that_is_made_of_flags_takes_as_many_ranks_as_they_say(read) -> None:
    """2x2 under torchrun is an error there."""
    before = LIGHTNING.partition("Trainer(devices")[0]
    made = f"{before}Trainer.from_argparse_args(args, callbacks=[Saver(args)]).fit(net)\n"
    made = made.replace(
        "p.add_argument('--devices', default='2')", "p = Trainer.add_argparse_args(p)\nimport deepspeed"
    )
    _, found, said = read(f"{PARSER}p.add_argument('--kind', default='')\n{made}", "--", "--devices", "4")
    assert ranks(found) == (1, 4), said


def test_a_checkpointer_of_fvcores_goes_on_if_it_is_asked(read) -> None:
    script = f"{PARSER}from fvcore.common.checkpoint import Checkpointer, PeriodicCheckpointer\n"
    script += "p.add_argument('--no-resume', action='store_true')\nargs = p.parse_args()\n"
    script += "class Own(Checkpointer):\n    pass\nown = Own(net, 'o')\n"
    _, found, said = read(f"{script}own.resume_or_load('w.pth', resume=not args.no_resume)\n")
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("o", ["*.pth", "last_checkpoint*"]), said
    assert "goes on by itself" in said
    _, found, said = read(f"{script}own.resume_or_load('w.pth', resume=False)\n")
    assert "goes on by itself" not in said


def test_the_launch_of_detectron2_starts_its_ranks_itself(read) -> None:
    script = "import torch\nfrom detectron2.engine import DefaultTrainer, default_argument_parser, launch\n"
    script += "def main(args):\n    cfg.OUTPUT_DIR\n    trainer = DefaultTrainer(cfg)\n    trainer.train()\n"
    script += "args = default_argument_parser().parse_args()\nlaunch(main, args.num_gpus, args=(args,))\n"
    _, found, said = read(script, "--", "--num-gpus", "8")
    assert ranks(found) == (1, 1)
    assert "line 8: the script starts and counts its ranks itself" in said


@pytest.mark.parametrize(
    ("script", "alone"),
    [
        ("import torch\n", True),
        ("import tqdm, torch\nfrom numpy import array\n", True),
        ("import os, torch\nrank = int(os.environ['RANK'])\n", False),
        ("import torch, transformers\n", False),
        ("import torch\nfrom torch import distributed\n", False),
        ("import torch\nfrom argosy import Checkpointer\n", True),
        ("import torch\nfrom argosy import ExactDataParallel\n", False),
        ("import torch, mine\n", True),
        ("import torch, theirs\n", False),
        ("import subprocess, torch\nsubprocess.run(['python', '-m', 'theirs'])\n", False),
        ("from os import system\nimport torch\nsystem('bash theirs.sh')\n", False),
        ("import importlib, torch\nimportlib.import_module('theirs')\n", False),
        ("import runpy, torch\nrunpy.run_path('theirs.py')\n", False),
        ("import torch\nexec(open('theirs.py').read())\n", False),
        ("import hydra, torch\nhydra.utils.instantiate({'_target_': 'lightning.Trainer'})\n", False),
        ("import torch\nfrom importlib.metadata import version\ntorch.nn.Linear(1, 1).eval()\n", True),
    ],
)
def test_ranks_that_know_nothing_of_each_other_are_said_to_train_alone(
    script: str, alone: bool, initialized, argosy, tmp_path
) -> None:
    beside = {
        "mine.py": "import torch\n",
        "theirs.py": "import torch\ndef mean(x, world_size): return x / world_size\n",
    }
    said = initialized({"train.py": f"{script}{STATE}'o/a.pt')\n", **beside}, "-j", "2x2")[2]
    words = "asks for no rank: each of the 4 ranks trains by itself, and all write the same files"
    assert (words in said) == alone
    code, _, err = argosy("compile", "run.toml", "-o", str(tmp_path / "w.yaml"))
    assert (code, f"warning: train.py {words}" in err) == (0, alone)
    assert words not in argosy("compile", "run.toml", "-j", "1x1", "-o", str(tmp_path / "w.yaml"))[2]


def test_a_module_whose_ranks_train_alone_is_said_to(argosy, tmp_path) -> None:
    for name, text in (("kit/__main__.py", "from .save import save\nsave()\n"), ("kit/save.py", "def save(): pass\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "run.toml").write_text('name = "kit"\nmodule = "kit"\n[gang]\nnnodes = 2\n')
    code, _, err = argosy("compile", "run.toml", "-o", str(tmp_path / "w.yaml"))
    assert (code, "warning: kit/__main__.py asks for no rank: each of the 2 ranks trains" in err) == (0, True), err


@pytest.mark.parametrize(("makes", "said"), [("", True), ("os.makedirs('o', exist_ok=True)\n", False)])
def test_a_folder_that_nothing_makes_is_named(makes: str, said: bool, read) -> None:
    words = 'nothing seen makes o: only an empty folder travels with the code, so write os.makedirs("o", exist_ok=True)'
    assert (words in read(f"import os, torch\n{makes}{STATE}'o/a.pt')\n")[2]) == said


def test_a_fabric_takes_the_ranks_of_one_node(read) -> None:
    script = "import lightning as L, torch\nfabric = L.Fabric()\nfabric.launch()\n"
    _, found, said = read(f"{script}fabric.save(f'o/{{n}}.pt', {{'optimizer': o}})\n")
    assert (ranks(found), "as its devices say" in said) == ((1, 1), True), said


@pytest.mark.parametrize("address", ["", "'head:1234', 2, 0"])
def test_jax_is_started_without_torchrun_and_told_where_it_meets(address: str, read) -> None:
    """torchrun comes with torch, and such a script's image has none: No module named 'torch'."""
    script = f"import os, jax, numpy as np\njax.distributed.initialize({address})\nos.makedirs('o')\n"
    _, found, said = read(f"{script}np.savez(f'o/state_{{step}}.npz', step=step, optimizer=o)\n")
    assert (ranks(found), found["gang"]["launcher"], found["checkpoint"]["include"]) == (
        (2, 1),
        "plain",
        ["state_*.npz"],
    )
    assert ("let it say initialize(f\"{os.environ['MASTER_ADDR']}:" in said) == (not address), said
    _, found, _ = read(f"import torch, {script[7:]}torch.save({{'optimizer': o}}, 'o/a.pt')\n")
    assert "launcher" not in found["gang"]
