"""init on habits of well known programs: settings told to a file that is executed, numbers below zero for "not"."""

from __future__ import annotations

import pytest

PARSER = "import argparse, glob, json, os, torch\np = argparse.ArgumentParser()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": o}, '
LOAD = "    optimizer.load_state_dict(state['optimizer'])\n"


@pytest.fixture
def read(initialized):
    return initialized


def test_a_file_that_is_executed_takes_settings_of_the_command_line(read) -> None:
    script = "import os, torch\nout = 'out'\nexec(open('told.py').read())\n"
    files = {
        "train.py": f"{script}{STATE}os.path.join(out, 'ckpt.pt'))\n",
        "told.py": "import sys\nfor word in sys.argv[1:]:\n    tell(word)\n",
        "config/small.py": "out = 'small'\n",
    }
    for words, path in (([], "out"), (["config/small.py"], "small"), (["config/small.py", "--out=mine"], "mine")):
        _, found, said = read(files, *(["--", *words] if words else []))
        assert found["checkpoint"]["path"] == path, said


def test_what_only_a_flag_gives_a_name_saves_only_with_it(read) -> None:
    script = f"{PARSER}p.add_argument('--every')\nargs = p.parse_args()\nif hasattr(args.every, 'isdigit'):\n"
    script += "    every = int(args.every) if args.every.isdigit() else args.every\nelse:\n    every = None\n"
    script += f"for n in range(9):\n    if isinstance(every, int):\n        {STATE}f'o/{{n}}.pt')\n"
    code, _, said = read({"train.py": script})
    assert (code, "saves only with --every" in said) == (2, True), said
    _, found, said = read({"train.py": script}, "--", "--every", "5")
    assert found["checkpoint"]["path"] == "o", said


@pytest.mark.parametrize(
    "looked", ["runs = glob.glob('o/*.pt')\n", "if os.path.isfile('o/1.pt'):\n    open('o/1.pt')\n"]
)
def test_what_is_looked_for_and_not_taken_into_training_is_no_resume(read, looked) -> None:
    script = f"{PARSER}p.add_argument('--start_check_point')\nargs = p.parse_args()\n{looked}"
    script += f"if args.start_check_point:\n    state = torch.load(args.start_check_point)\n{LOAD}"
    _, found, said = read({"train.py": f"{script}{STATE}'o/1.pt')\n"})
    assert found["checkpoint"].get("resume_args") == ["--start_check_point", "o/1.pt"], said


def test_lines_name_no_library_and_nothing_that_some_ranks_lack(read) -> None:
    script = "import numpy as np\nimport torch\nfrom accelerate import Accelerator\nclass Trainer:\n"
    script += "    def __init__(self, model):\n        self.accelerator = Accelerator()\n        self.step = 0\n"
    script += "        self.model, self.opt = self.accelerator.prepare(model, torch.optim.Adam(model.parameters()))\n"
    script += "        EMA\n    def load(self):\n        self.ema.load_state_dict(torch.load('o/1.pt')['ema'])\n"
    script += "    def save(self):\n        torch.save({'ema': self.ema.state_dict()}, 'o/1.pt')\n"
    script += (
        "    def train(self):\n        while self.step < 9:\n            np.load('x')\n            self.model.train()\n"
    )
    script += "            loss.backward()\n            self.opt.step()\n            self.step += 1\n"
    script += "            self.save()\nTrainer(net).train()\n"
    made = "if self.accelerator.is_main_process:\n            self.ema = EMA(model)"
    _, _, said = read({"train.py": script.replace("EMA\n", f"{made}\n", 1)})
    assert "argosy.pt" not in said
    _, _, said = read({"train.py": script.replace("EMA\n", "self.ema = EMA(model)\n", 1)})
    assert "self.ema.load_state_dict" in said
    assert "np." not in said


def test_lines_have_no_scheduler_that_only_a_flag_makes(read) -> None:
    script = f"{PARSER}p.add_argument('--sched')\nargs = p.parse_args()\nscheduler = None\n"
    script += "if args.sched == 'cycle':\n    scheduler = Cycle(optimizer)\nfor n in range(9):\n    model.train()\n"
    script += "    loss.backward()\n    optimizer.step()\n    if scheduler is not None:\n        scheduler.step()\n"
    _, _, said = read({"train.py": f"{script}    torch.save(model.state_dict(), f'o/{{n}}.pt')\n"})
    assert ("optimizer.load_state_dict" in said, "scheduler.load" in said) == (True, False), said


def test_a_module_only_where_its_first_lines_import_from_its_package(read) -> None:
    script = f"{PARSER}def late():\n    from .where import OUT\n{STATE}'o/1.pt')\n"
    assert read({"train.py": script})[1]["script"] == "train.py"


def test_a_file_with_all_settings_stands_alone_on_the_command_line(read) -> None:
    script = "import sys, torch\nfrom transformers import HfArgumentParser, TrainingArguments\n"
    script += "args = HfArgumentParser(TrainingArguments).parse_json_file(sys.argv[1])[0]\n"
    script += (
        f"if args.resume_from_checkpoint is not None:\n    state = torch.load(args.resume_from_checkpoint)\n{LOAD}"
    )
    _, found, said = read({"train.py": f"{script}{STATE}'o/1.pt')\n", "all.json": "{}"}, "--", "all.json")
    assert "resume_args" not in found["checkpoint"], said


def test_a_folder_is_as_the_first_rank_makes_it(read) -> None:
    script = (
        "import os, time, torch\nout = 'o'\nif get_rank() == 0:\n    out = os.path.join(out, time.strftime('%H'))\n"
    )
    _, found, said = read({"train.py": f"{script}{STATE}os.path.join(out, '1.pt'))\n"})
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("o", ["*/1.pt"]), said


def test_a_line_that_puts_a_log_inside_is_no_help_for_what_is_saved(read) -> None:
    script = "import os, time, torch\ndef log(folder):\n    logs = folder + '/logs_%s' % time.time()\n"
    script += "    os.makedirs(logs)\nfolder = os.path.join('..', 'exp', name())\nlog(folder)\n"
    code, _, said = read({"train.py": f"{script}{STATE}folder + '/last.pt')\n"})
    assert (code, "logs = " in said) == (2, False), said


def test_what_each_save_writes_anew_lies_beside_the_numbered(read) -> None:
    script = f"{PARSER}for n in range(9):\n    {STATE}f'o/checkpoint{{n:04}}.pth')\n    {STATE}'o/checkpoint.pth')\n"
    _, _, said = read({"train.py": script})
    assert 'unit = ["checkpoint*[0-9].pth"]' in said


@pytest.mark.parametrize("number", ["_epoch_", "0"])
def test_files_of_two_kinds_that_would_be_two_units_are_none(number: str, read) -> None:
    script = f"{PARSER}for n in range(9):\n    {STATE}f'o/g{number}{{n}}.pth')\n    {STATE}f'o/d{number}{{n}}.pth')\n"
    _, _, said = read({"train.py": script})
    assert ("each commit holds all files so far" in said, "unit =" in said) == (True, False), said


def test_a_resume_that_takes_the_model_only_is_said_to_begin_anew(read) -> None:
    script = f"{PARSER}import pickle\np.add_argument('--resume', default=None)\nargs = p.parse_args()\n"
    script += "net = build()\nmade = call('torch.optim.Adam', net)\nif args.resume:\n"
    script += "    copy(pickle.load(open(args.resume, 'rb')), net)\nn = 0\nwhile True:\n    n += train(net, made)\n"
    script += "    with open(f'o/net-{n:06d}.pkl', 'wb') as f:\n        pickle.dump(net, f)\n"
    _, found, said = read({"train.py": script})
    assert found["checkpoint"]["resume_args"] == ["--resume", "{newest}"], said
    assert "nothing seen loads an optimizer's state or a step: a restart begins anew with that model" in said


def test_a_copy_of_settings_is_a_thing_of_its_own(read) -> None:
    script = f"{PARSER}import copy, re, yaml\np.add_argument('--override', nargs='*')\nargs = p.parse_args()\n"
    script += (
        "config = yaml.safe_load(open('c.yaml'))\nif len(args.override) > 0:\n    config = copy.deepcopy(config)\n"
    )
    script += "def save(info):\n    path = '{}/{}.pt'.format(info['out'], info['tag'])\n"
    script += f"    {STATE}re.sub('.pt$', '.pth', path))\n"
    script += "def check():\n    info = copy.deepcopy(config)\n    info['tag'] = 'CV'\ncheck()\n"
    script += "for n in range(9):\n    save({'tag': 'epoch_{}'.format(n), **config})\n"
    _, found, said = read({"train.py": script, "c.yaml": "out: kept\n"})
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("kept", ["epoch_*.pth"]), said


def test_a_flag_that_is_the_file_is_told_a_file(read) -> None:
    script = f"{PARSER}from torch.utils.tensorboard import SummaryWriter\np.add_argument('--save-model', default='')\n"
    script += f"args = p.parse_args()\nSummaryWriter('logs')\nif args.save_model != '':\n    {STATE}args.save_model)\n"
    code, _, said = read({"train.py": script})
    assert (code, "`argosy init train.py -- --save-model out/model.pt`" in said) == (2, True), said
    _, found, said = read({"train.py": script}, "--", "--save-model", "out/model.pt")
    assert (found["checkpoint"]["path"], "nothing seen makes out" in said) == ("out", True), said  # a log's is another


def test_lines_for_a_file_beside_say_where_their_imports_belong(read) -> None:
    trainer = "import torch\ndef run(model):\n    optimizer = torch.optim.Adam(model.parameters())\n"
    trainer += "    for n in range(9000):\n        model.train()\n        loss.backward()\n        optimizer.step()\n"
    script = "import torch\nfrom trainer import run\nmodel = torch.nn.Linear(2, 2)\nrun(model)\n"
    _, _, said = read({"train.py": f"{script}torch.save(model.state_dict(), 'o/1.pt')\n", "trainer.py": trainer})
    assert "at the top of trainer.py:\n        import os" in said, said


def test_of_several_commands_that_are_told_by_a_table_the_one_is_read(read) -> None:
    train = "import lightning as L\ndef setup(model_name: str, out_dir: str = 'o', resume: bool | str = False):\n"
    train += "    fabric = L.Fabric(devices=1)\n    fabric.launch()\n    if resume == 'auto':\n"
    train += "        resume = newest(out_dir)\n    if resume:\n        fabric.load(resume, {'optimizer': o})\n"
    train += "    for n in range(9):\n        fabric.save(f'{out_dir}/step-{n}/model.pth', {'optimizer': o})\n"
    train += "    fabric.save(f'{out_dir}/final/model.pth', {'optimizer': o})\n"
    other = "import lightning as L\n\n@no_grad()\ndef main(out_dir: str = 'x'):\n    fabric = L.Fabric(devices=4)\n"
    files = {
        "main.py": "from jsonargparse import CLI\nfrom pack.pretrain import setup as pretrain\nfrom pack.merge import "
        "main as merge\nCOMMANDS = {'merge': merge, 'pretrain': pretrain}\nCLI(COMMANDS)\n",
        "pack/pretrain.py": train,
        "pack/merge.py": f"{other}    fabric.save(f'{{out_dir}}/merged.pth', m)\n",
    }
    _, found, said = read(files, "--", "pretrain", "pythia", "--out_dir", "kept")
    kept = found["checkpoint"]
    assert (kept["path"], kept["include"]) == ("kept", ["step-*/**/*", "final/model.pth"]), said
    assert (kept["resume_args"], found["gang"]["nproc_per_node"]) == (["--resume", "auto"], 1), said
    assert "requires" not in said  # what has a place has no flag


def test_a_field_of_a_class_within_another_is_no_flag_of_that_name(read) -> None:
    script = "import tyro, torch\nclass Manager:\n    class Config:\n        seed_checkpoint: bool = False\n"
    script += "kind = type(loaded())\nconfig = tyro.cli(kind)\n"
    script += f"if config.checkpoint.seed_checkpoint:\n    {STATE}where())\n"
    code, _, said = read({"train.py": script})
    assert (code, "--seed_checkpoint" in said) == (2, False), said
