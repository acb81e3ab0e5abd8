"""init on what a third lot of well-known public programs did otherwise."""

from __future__ import annotations

import json

import pytest

PARSER = "import argparse, os, torch\np = argparse.ArgumentParser()\n"
TRAINER = """\
import os
from transformers import HfArgumentParser, Trainer, TrainingArguments
class MyTrainer(Trainer):
    def _save_checkpoint(self, model, trial):
        %s
a, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
if os.path.exists(a.output_dir) and not a.overwrite_output_dir:
    raise ValueError('it is there')
t = MyTrainer(model, a)
t.train(resume_from_checkpoint=a.resume_from_checkpoint)
"""


def test_a_switch_that_only_a_library_declares_is_on_where_it_is_given(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(TRAINER % "super()._save_checkpoint(model, trial)")
    code, _, err = argosy("init", "train.py", "--", "--output_dir", "o")
    assert (code, "line 7 ends the script if" in err) == (2, True), err
    (tmp_path / "train.py").write_text(TRAINER % "super(MyTrainer, self)._save_checkpoint(model, trial)")
    for given in (("--overwrite_output_dir", "--fp16"), ("--fp16", "--overwrite_output_dir")):
        code, out, err = argosy("init", "train.py", "--force", "--", "--output_dir", "o", *given)
        assert (code, 'path = "o"' in out) == (0, True), out + err


def test_a_trainer_that_saves_in_its_own_way_is_not_guessed(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(TRAINER % "self.save_model(self.args.output_dir)")
    code, _, err = argosy("init", "train.py", "--", "--output_dir", "o", "--overwrite_output_dir")
    assert (code, "train.py: line 4: transformers.MyTrainer saves by a _save_checkpoint of" in err) == (2, True), err
    assert "--opaque o --include GLOB" in err


DOCOPT = '''\
"""Trains.

usage: train.py [options]

options:
    --out=<dir>          Where to
                         [default: weights].
    -c=path, --checkpoint=path  What to
                         go on from.
    -h, --help           This text.
"""
from docopt import docopt
import os, torch
args = docopt(__doc__)
optimizer = torch.optim.Adam(model.parameters())
if args["--checkpoint"] is not None:
    state = torch.load(args["--checkpoint"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"]
for step in range(first, 9):
    torch.save({"optimizer": optimizer.state_dict(), "step": step}, os.path.join(args["--out"], f"step_{step}.pt"))
'''


def test_the_flags_of_docopt_are_those_of_its_text(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(DOCOPT)
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "weights"' in out) == (0, True), out + err
    assert 'resume_args = ["--checkpoint", "{newest}"]' in out
    assert 'path = "o"' in argosy("init", "train.py", "--force", "--", "--out=o")[1]


SETTING = """\
import argparse, json, torch
p = argparse.ArgumentParser()
p.add_argument('--config')
a = p.parse_args()
c = json.load(open(a.config))
if c['checkpoint_path'] != '':
    optimizer.load_state_dict(torch.load(c['checkpoint_path']))
for epoch in range(9):
    torch.save(optimizer.state_dict(), f"{c['out']}/e_{epoch}.pt")
"""


@pytest.mark.parametrize(("value", "told"), [("", True), ("pretrained.pt", False)])
def test_an_empty_setting_that_names_what_is_loaded_is_told_of(value, told, argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(SETTING)
    (tmp_path / "c.json").write_text(json.dumps({"out": "o", "checkpoint_path": value}))
    code, out, err = argosy("init", "train.py", "--", "--config", "c.json")
    assert (code, "checkpoint_path of c.json may make it go on" in out) == (0, told), out + err


@pytest.mark.parametrize("line", ["checkpoint = None", "cfg.model.resume = ''"])
def test_a_setting_that_the_script_itself_writes_down_is_told_of(line, argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(f"import config, torch\ncfg = config.Node()\n{line}\ntorch.save(x, 'o/m.pt')\n")
    code, out, err = argosy("init", "train.py")
    told = f"by its name {line.partition(' ')[0]} (line 3) may make it go on, which was not seen: if it does, name it"
    assert (code, told in out) == (0, True), out + err
    again = "checkpoint = {'model': x}\ntorch.save(checkpoint, 'o/m.pt')\n"  # what is about to be saved is no setting
    (tmp_path / "train.py").write_text(f"import torch\ncheckpoint = None\n{again}")
    assert "by its name" not in argosy("init", "train.py", "--force")[1]


COUNTED = f"""\
{PARSER}p.add_argument('--resume')
p.add_argument('--start_iter', default=0, type=int)
a = p.parse_args()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
if a.resume:
    net.load_state_dict(torch.load(a.resume))
for i in range(a.start_iter, 9):
    net.train()
    loss.backward()
    optimizer.step()
    torch.save(net.state_dict(), f'w/net_{{i}}.pth')
torch.save(net.state_dict(), 'w/done.pth')
"""


def test_a_count_that_only_a_flag_says_is_given_with_what_is_loaded(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(COUNTED)
    code, out, err = argosy("init", "train.py")
    words = '["--resume", "{newest:net_*.pth}", "--start_iter", "{step}"]'
    assert (code, f"resume_args = {words}" in out) == (0, True), out + err
    assert "line 10 begins at --start_iter, whatever was loaded" in out
    assert "nothing seen loads an optimizer's state" in out
    for name in ("{batches}", "{i * 100 + batch}", "{i}_{loss:.2f}"):  # which is no turn of that loop; of which of two?
        (tmp_path / "train.py").write_text(COUNTED.replace("net_{i}", f"net_{name}"))
        out = argosy("init", "train.py", "--force")[1]
        assert ("{step}" in out, "line 10 begins at --start_iter, whatever was loaded: give" in out) == (False, True)
    (tmp_path / "train.py").write_text(COUNTED.replace("for i in", "a.start_iter = int(a.resume or 0)\nfor i in"))
    out = argosy("init", "train.py", "--force")[1]
    assert ('["--resume", "{newest:net_*.pth}"]' in out, "begins at" in out) == (True, False), out


def test_what_goes_through_a_table_or_a_pickle_may_give_an_optimizer_its_state(argosy, tmp_path) -> None:
    loads = "    net.load_state_dict(torch.load(a.resume))\n"
    turned = "    for name, one in parts.items():\n        one.load_state_dict(torch.load(a.resume)[name])\n"
    for others in (turned, "    net, optimizer = torch.load(a.resume)\n"):
        (tmp_path / "train.py").write_text(COUNTED.replace(loads, others))
        code, out, err = argosy("init", "train.py", "--force")
        assert (code, "nothing seen loads an optimizer's state" in out) == (0, False), out + err
    turned = turned.replace("one", "net")
    (tmp_path / "train.py").write_text(COUNTED.replace(loads, turned))
    assert "nothing seen loads an optimizer's state" in argosy("init", "train.py", "--force")[1]


def test_a_fabric_takes_as_many_ranks_as_its_devices_whatever_its_strategy(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        "import lightning as L, torch\nfrom lightning.fabric.strategies import FSDPStrategy\n"
        "strategy = FSDPStrategy()\nfabric = L.Fabric(devices=8, strategy=strategy)\n"
        "for step in range(9):\n    fabric.save(f'o/{step}.pth', state)\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, "nnodes = 1\n" in out, "nproc_per_node = 8: line 4 uses Fabric" in out) == (0, True, True), out + err


NEEDING = f"""\
{PARSER}p.add_argument('--model')
p.add_argument('--memory')
a = p.parse_args()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
if a.model is not None:
    if not a.memory:
        raise ValueError('no memory')
if a.model:
    net.load_state_dict(torch.load(a.model))
for i in range(9):
    loss.backward()
    optimizer.step()
    torch.save(scores, 'w/scores.pth')
    torch.save(net.state_dict(), 'w/model.pth')
"""


def test_what_a_flag_needs_is_said_and_no_file_of_several_is_taken_for_its_own(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(NEEDING)
    code, out, err = argosy("init", "train.py")
    assert (code, "line 9 ends it without --memory: give that, too" in out) == (0, True), out + err
    assert "--resume-arg='{newest}'" not in out
    assert "ends it without" not in argosy("init", "train.py", "--force", "--", "--memory", "m")[1]
    (tmp_path / "train.py").write_text(NEEDING.replace("a.model is not None", "a.model == 'old'"))
    assert "ends it without" not in argosy("init", "train.py", "--force")[1]


LIGHTNING = """\
import argparse, os
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import ModelCheckpoint
p = argparse.ArgumentParser()
p.add_argument('--ckpt_path')
p.add_argument('--name', default='exp')
a = p.parse_args()
saver = ModelCheckpoint(filepath=os.path.join(f'ckpts/{a.name}', '{epoch:d}'), save_top_k=5)
Trainer(checkpoint_callback=saver, resume_from_checkpoint=a.ckpt_path).fit(model)
"""


def test_lightning_before_1_names_folder_and_file_in_one(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(LIGHTNING)
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "ckpts/exp"' in out, 'include = ["*.ckpt"]' in out) == (0, True, True), out + err
    assert 'resume_args = ["--ckpt_path", "{newest}"]' in out
    without = LIGHTNING.replace("p.add_argument('--ckpt_path')\n", "").replace("resume_from_checkpoint=a.ckpt_path", "")
    (tmp_path / "train.py").write_text(without)
    out = argosy("init", "train.py", "--force")[1]  # whose fit takes no ckpt_path
    line = "resume_from_checkpoint='ckpts/exp/last.ckpt' if os.path.exists('ckpts/exp/last.ckpt') else None into line 8"
    assert (line in out, "ckpt_path=" in out) == (True, False), out
    (tmp_path / "train.py").write_text(LIGHTNING.replace("f'ckpts/{a.name}'", "unknown()"))
    code, _, err = argosy("init", "train.py", "--force")
    assert (code, "name the folder with --opaque" in err, "dirpath" in err) == (2, True, False), err


@pytest.mark.parametrize(
    "trainer",
    [
        "Trainer(logger=WandbLogger(project='x'), resume_from_checkpoint=a.ckpt_path).fit(model)",
        "Trainer(resume_from_checkpoint='pretrained/epoch=9.ckpt').fit(model)",
        "Trainer().fit(model, ckpt_path='pretrained/epoch=9.ckpt')",
    ],
)
def test_lightnings_own_folder_is_not_that_of_a_logger_and_a_fixed_file_is_no_newest(trainer, argosy, tmp_path) -> None:
    made, known = LIGHTNING.split("saver =")[0], "Trainer(resume_from_checkpoint=a.ckpt_path).fit(model)\n"
    for call, code in ((trainer, 2), (known, 0)):
        (tmp_path / "train.py").write_text(f"{made}{call}\n")
        assert argosy("init", "train.py", "--force")[0] == code


def test_a_state_that_is_saved_at_the_end_is_not_left_for_a_model_that_is_none(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(ENDING)
    code, out, err = argosy("init", "train.py")
    assert (code, 'resume_args = ["--resume", "w/last.pt"]' in out) == (0, True), out + err


ENDING = f"""\
{PARSER}p.add_argument('--resume')
a = p.parse_args()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
if a.resume:
    state = torch.load(a.resume)
    net.load_state_dict(state['net'])
    optimizer.load_state_dict(state['optimizer'])
for i in range(9):
    loss.backward()
    optimizer.step()
    torch.save(net.state_dict(), 'w/best.pt')
torch.save({{'net': net.state_dict(), 'optimizer': optimizer.state_dict()}}, 'w/last.pt')
"""

PARTS = """\
import os, torch
first = 0
found = [int(each[:-6]) for each in os.listdir('run/states')] if os.path.isdir('run/states') else []
if found:
    state = torch.load(f'run/states/{max(found)}.state')
    optimizer.load_state_dict(state['optimizer'])
    first = state['step']
for step in range(first, 9):
    torch.save(net.state_dict(), f'run/models/net_{step}.pth')
    torch.save({'optimizer': optimizer.state_dict(), 'step': step}, f'run/states/{step}.state')
"""


def test_what_each_save_numbers_in_two_folders_is_kept_of_both(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(PARTS)
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "run"' in out) == (0, True), out + err
    assert 'include = ["states/*.state", "models/net_*.pth"]: if the * counts up, each commit holds all' in out
    (tmp_path / "train.py").write_text(PARTS.replace("f'run/models/net_{step}.pth'", "'run/models/net.pth'"))
    out = argosy("init", "train.py", "--force")[1]
    assert ('path = "run/states"' in out, "not kept" in out) == (True, True), out
