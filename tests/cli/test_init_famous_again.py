"""init on what a second lot of well-known public programs did otherwise."""

from __future__ import annotations

import pytest

FLAGS = "import argparse, glob, os, torch\nimport numpy as np\np = argparse.ArgumentParser()\n"


def test_a_save_at_the_steps_of_an_empty_list_is_none(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        f"{FLAGS}p.add_argument('--save_at', nargs='+', type=int, default=[])\n"
        "p.add_argument('--start', default='')\na = p.parse_args()\ndef training(save_at):\n"
        "    for step in range(9):\n        if step in save_at:\n"
        "            torch.save({'step': step}, f'o/chkpnt{step}.pth')\ntraining(a.save_at)\n"
    )
    code, _, err = argosy("init", "train.py")
    assert (code, "line 10 saves only with --save_at" in err) == (2, True), err
    filled = (tmp_path / "train.py").read_text().replace("def training", "a.save_at.append(5)\ndef training")
    for script, words in ((filled, ()), (filled.replace("a.save_at.append(5)\n", ""), ("--", "--save_at", "5"))):
        (tmp_path / "train.py").write_text(script)
        code, out, err = argosy("init", "train.py", "--force", *words)
        assert (code, 'include = ["chkpnt*.pth"]' in out) == (0, True), err


NETS = """\
p.add_argument('--resume', type=lambda text: text == 'True', default=False)
a = p.parse_args()
gen, dis = Net(), Net()
optim = torch.optim.Adam(list(gen.parameters()) + list(dis.parameters()))
def begin(folder, step):
    state = torch.load(os.path.join(folder, 'n_%07d.pt' % step))
    gen.load_state_dict(state['gen'])
    dis.load_state_dict(state['dis'])
first = 1
if a.resume:
    found = sorted(glob.glob('o/model/*.pt'))
    first = int(found[-1].split('_')[-1][:-3])
    begin('o/model', first)
for step in range(first, 9):
    gen.train()
    loss.backward()
    optim.step()
    torch.save({'gen': gen.state_dict()}, 'o/n_latest.pt')
    torch.save({'gen': gen.state_dict()}, os.path.join('o/model', 'n_%07d.pt' % step))
"""


def test_of_several_places_that_is_kept_which_is_read_again(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(FLAGS + NETS)
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "o/model"\n' in out, 'include = ["n_*.pt"]\n' in out) == (0, True, True), out + err
    assert "nothing seen loads an optimizer's state, which begins anew" in out
    (tmp_path / "train.py").write_text(FLAGS + NETS.replace("    first = int(found[-1].split('_')[-1][:-3])\n", ""))
    assert "nothing seen loads an optimizer's state or a step" in argosy("init", "train.py", "--force")[1]


def test_an_optimizer_with_a_load_of_its_own_may_be_given_its_state(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        FLAGS + NETS.replace("    dis.load_state", "    optim.load(state)\n    dis.load_state")
    )
    assert "nothing seen loads" not in argosy("init", "train.py")[1]


def test_a_count_that_numpy_keeps_in_a_text_belongs_to_the_checkpoint(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        f"{FLAGS}p.add_argument('--continue_train', action='store_true')\na = p.parse_args()\npath = 'o/iter.txt'\n"
        "start = 0\nif a.continue_train:\n    start = int(np.loadtxt(path))\n"
        "    net.load_state_dict(torch.load('o/net.pth'))\n"
        "optim = torch.optim.Adam(net.parameters())\nfor epoch in range(start, 9):\n"
        "    torch.save(net.state_dict(), 'o/net.pth')\n    np.savetxt(path, [epoch])\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, 'include = ["net.pth", "iter.txt"]' in out) == (0, True), out + err
    assert "nothing seen loads an optimizer's state, which begins anew" in out


LIGHTNING = """\
import hydra, torch
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.plugins import CheckpointIO
class Own(CheckpointIO):
    pass
@hydra.main(config_path='.', config_name='main')
def main(cfg):
    saver = ModelCheckpoint(monitor='val_accuracy', mode='max', save_last=True)
    trainer = MADE
    trainer.fit(model, ckpt_path=cfg.ckpt_path)
main()
"""


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            "hydra.utils.instantiate(cfg.trainer, callbacks=[saver])",
            "--opaque out --include GLOB -- hydra.run.dir=out`",
        ),
        ("pl.Trainer(callbacks=[saver], plugins=[Own()])", "line 5 has a CheckpointIO of its own: name the folder"),
    ],
)
def test_no_line_to_write_is_given_of_lightning_that_would_not_hold(made: str, said: str, argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(LIGHTNING.replace("MADE", made))
    (tmp_path / "main.yaml").write_text("ckpt_path: null\ntrainer:\n  _target_: pytorch_lightning.Trainer\n")
    code, _, err = argosy("init", "train.py")
    assert (code, said in err, "val_accuracy" in err, "last.ckpt" in err) == (2, True, False, False), err


def test_what_a_saver_is_told_to_watch_is_no_place(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        f"{FLAGS}from other import Checkpointer\nsaver = Checkpointer(monitor='loss')\nsaver.run()\n"
    )
    assert "loss*" not in argosy("init", "train.py")[2]


TRAINER = """\
import torch
class Trainer:
    def __init__(self):
        self.net = Net()
        self.opt = torch.optim.Adam(self.net.parameters())
    def modes(self):
        for m in NETS:
            m.train()
    def train(self):
        for self.epoch in range(9):
            self.turn()
            torch.save(self.net.state_dict(), 'o/net.pth')
    def turn(self):
        self.modes()
        loss.backward()
        self.opt.step()
Trainer().train()
"""


def test_the_modules_that_are_put_into_training_have_a_train_of_their_own(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(TRAINER.replace("NETS", "(self.net,)"))
    code, out, err = argosy("init", "train.py")
    assert (code, "for self.epoch in range(start, 9):" in out) == (0, True), out + err
    assert '{"self.net": self.net.state_dict(), "self.opt": self.opt.state_dict(), "self.epoch": self.epoch}' in out


def test_a_loop_that_counts_from_0_is_told_of_whatever_it_trains(argosy, tmp_path) -> None:
    loads = "        if a.resume:\n            self.opt.load_state_dict(torch.load(a.resume)['opt'])\n    def modes"
    made = TRAINER.replace("NETS", "self.nets.values()").replace("self.net.parameters()", "params(self.nets)")
    made = made.replace("self.net.state_dict(), 'o/net", "{'opt': self.opt.state_dict()}, 'o/net")
    flags = f"{FLAGS}p.add_argument('--resume', default='')\na = p.parse_args()\n"
    (tmp_path / "train.py").write_text(flags + made.replace("    def modes", loads))
    code, out, err = argosy("init", "train.py")
    assert (code, "counts from 0 whatever was loaded" in out) == (0, True), out + err
    assert "unless self.epoch is saved and loaded, too" in out


def test_a_file_that_calls_nothing_trains_nothing(argosy, tmp_path) -> None:
    (tmp_path / "entry.py").write_text("import torch\ndef train():\n    torch.save({'epoch': 1}, 'o/a.pt')\n")
    code, _, err = argosy("init", "entry.py")
    assert (code, "defines train and calls nothing, so nothing would be trained" in err) == (2, True), err
    (tmp_path / "entry.py").write_text((tmp_path / "entry.py").read_text() + "train()\n")
    assert argosy("init", "entry.py")[0] == 0
