"""init on what a fifth lot of well-known public programs did otherwise."""

from __future__ import annotations

import pytest

SWITCHED = """\
import argparse, os, torch

def main(args):
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    file = os.path.join(args.out, "last.pt")
    if args.%s:
        state = torch.load(file)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, first = state["step"], state["epoch"]
    else:
        step, first = 0, 0
    for epoch in range(first, 9):
        loss, step = train(model, optimizer, step)
        %s

def train(model, optimizer, step):
    for _ in range(9):
        loss = model(torch.ones(1, 1)).sum()
        loss.backward()
        optimizer.step()
        step += 1
    return loss, step

parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out")
parser.add_argument("--%s", action="store_true")
main(parser.parse_args())
"""
SAVES = 'torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}, %s)'


def test_a_switch_of_any_name_without_which_nothing_that_was_saved_is_loaded(argosy, tmp_path) -> None:
    """Only a few names were known."""
    (tmp_path / "train.py").write_text(SWITCHED % ("keep_going", SAVES % "file", "keep_going"))
    code, out, err = argosy("init", "train.py")
    assert (code, 'resume_args = ["--keep_going"]' in out) == (0, True), out + err
    text = (tmp_path / "train.py").read_text().replace('action="store_true"', "type=int, choices=[0, 1], default=0")
    (tmp_path / "train.py").write_text(text)
    code, out, err = argosy("init", "train.py", "--force")
    assert (code, 'resume_args = ["--keep_going", "1"]' in out) == (0, True), out + err
    other = SWITCHED % ("tuned", SAVES % 'args.out + "/new.pt"', "tuned")
    (tmp_path / "train.py").write_text(other)  # what it reads was not saved by it
    code, out, err = argosy("init", "train.py", "--force")
    assert (code, "resume_args = [" in out, "every restart may begin anew" in out) == (0, False, True), out + err


def test_a_number_that_a_function_of_the_turn_gives_back_goes_on(argosy, tmp_path) -> None:
    """``loss, step = train(..., step)``: the lines left the step out."""
    (tmp_path / "train.py").write_text(SWITCHED % ("tuned", SAVES % 'args.out + "/new.pt"', "tuned"))
    code, out, err = argosy("init", "train.py")
    assert (code, 'step = state["step"]' in out, "loss = state" in out) == (0, True, False), out + err


OF_A_FOLDER = """\
import argparse, os, pathlib, torch
from yacs.config import CfgNode

parser = argparse.ArgumentParser()
parser.add_argument("--resume", default="")
args = parser.parse_args()
config = CfgNode({"out": "runs/first"})
if args.resume != "":
    config.merge_from_file(%s)
out = pathlib.Path(config.out)
print(f"{out}", f"")
out.mkdir(exist_ok=True, parents=True)
with open(out / "config.yaml", "w") as file:
    file.write(str(config))
for epoch in range(9):
    torch.save({"optimizer": optimizer.state_dict()}, out / f"{epoch}.pt")
"""


@pytest.mark.parametrize(
    "path", ['(pathlib.Path(args.resume) / "config.yaml").as_posix()', 'os.path.join(args.resume, "config.yaml")',
             'f"{args.resume}/config.yaml"']
)  # fmt: skip
def test_a_flag_below_which_a_file_of_settings_is_read_names_the_folder(argosy, tmp_path, path) -> None:
    """It was given the newest file, and what it reads there was not kept."""
    (tmp_path / "train.py").write_text(OF_A_FOLDER % path)
    code, out, err = argosy("init", "train.py")
    told = ['resume_args = ["--resume", "runs/first"]' in out, '"config.yaml"]' in out]
    assert (code, told) == (0, [True, True]), out + err


def test_beside_a_file_lies_another_that_is_read_too(argosy, tmp_path) -> None:
    """A flag of which only the folder above is asked for still names a file."""
    (tmp_path / "train.py").write_text(OF_A_FOLDER % 'os.path.join(os.path.dirname(args.resume), "config.yaml")')
    code, out, err = argosy("init", "train.py")
    assert (code, 'resume_args = ["--resume", "{newest' in out) == (0, True), out + err


SEVERAL_TIMES = """\
import argparse, torch

def fit():
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(9):
        model.train()
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        torch.save(model.state_dict(), "out/best.pt")

parser = argparse.ArgumentParser()
parser.add_argument("--times", type=int, default=3)
args = parser.parse_args()
for run in range(args.times):
    fit()
"""


@pytest.mark.parametrize(("args", "lines"), [((), False), (("--times", "1"), True)])
def test_what_is_trained_once_is_not_trained_several_times(argosy, tmp_path, args, lines) -> None:
    """A loop of one turn around it had left it without lines."""
    (tmp_path / "train.py").write_text(SEVERAL_TIMES)
    code, out, err = argosy("init", "train.py", "--", *args)
    assert (code, "for epoch in range(start, 9)" in out, "may begin anew" in out) == (0, lines, True), out + err


COUNTS_ITSELF = """\
import torch

class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), 0.1)
        self.step = 0
        self.calls = 0

    def train(self):
        self.model.train()
        self.calls = 0
        for _ in range(9):
            self.model(torch.ones(1, 1)).sum().backward()
            self.optimizer.step()
            self.step += 1
            self.calls += 1

trainer = Trainer(torch.nn.Linear(1, 1))
for epoch in range(9):
    trainer.train()
    torch.save({"step": trainer.step}, "out/last.pt")
"""


def test_what_an_object_counts_on_in_its_methods_goes_on(argosy, tmp_path) -> None:
    """The lines left out the step by which it warms up and decides what to save; what begins anew is none."""
    (tmp_path / "train.py").write_text(COUNTS_ITSELF)
    code, out, err = argosy("init", "train.py")
    told = ['trainer.step = state["trainer.step"]' in out, "trainer.calls" in out]
    assert (code, told) == (0, [True, False]), out + err


def test_what_is_saved_once_before_the_training_is_not_what_it_goes_on_from(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "torch.save(words, 'vocab/words.pt')\n"
        "model = torch.nn.Linear(1, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for epoch in range(9):\n"
        "    model(torch.ones(1, 1)).sum().backward()\n"
        "    optimizer.step()\n"
        "    torch.save(model.state_dict(), 'out/last.pt')\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "out"' in out, "not kept (line 2: vocab/words.pt)" in out) == (0, True, True), out + err


@pytest.mark.parametrize(
    ("name", "include", "waits"),
    [("os.getcwd().split('/')[-1]", "*/last.pt", False), ("input('which run? ')", "*/last.pt", True),
     ("input() if None else 'a'", "last.pt", False)],
)  # fmt: skip
def test_a_name_that_only_a_run_knows_or_that_nobody_types(argosy, tmp_path, name, include, waits) -> None:
    (tmp_path / "train.py").write_text(
        f"import os, torch\nname = {name}\nfor epoch in range(9):\n"
        "    torch.save({'model': model.state_dict()}, os.path.join('out', name, 'last.pt'))\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, f'include = ["{include}"]' in out, "line 2 waits" in out) == (0, True, waits), out + err


GROUPED = """\
import argparse, torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
parser.add_argument("--world_size", type=int, default=4)
args = parser.parse_args()
%s
dist.init_process_group(backend="gloo", world_size=%s)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
torch.cuda.set_device(args.local_rank)
for epoch in range(9):
    torch.save(model.state_dict(), "out/last.pt")
"""


@pytest.mark.parametrize(
    ("args", "line", "size", "nodes", "each"),
    [((), "", "args.world_size", 1, 4), (("--world_size=2",), "", "args.world_size", 1, 2), ((), "", "3", 1, 3),
     ((), "import os", "3, rank=int(os.environ['RANK'])", 1, 3),
     ((), 'args.world_size = int(os.environ["WORLD_SIZE"])', "args.world_size", 2, 2)],
)  # fmt: skip
def test_a_group_waits_for_as_many_ranks_as_it_says(argosy, tmp_path, args, line, size, nodes, each) -> None:
    """One rank was started of four, which it would have waited for; each has its number of the environment."""
    (tmp_path / "train.py").write_text(GROUPED % (line, size))
    code, out, err = argosy("init", "train.py", "--", *args)
    told = [f"nnodes = {nodes}\n" in out, f"nproc_per_node = {each}\n" in out, "counts its ranks itself" in out]
    assert (code, told) == (0, [True, True, False]), out + err


@pytest.mark.parametrize(
    ("test", "seen"),
    [("not (os.path.exists(path) and again)", True), ("not os.path.exists(path) or args", True),
     ("not (os.path.exists(path) or again)", False), ("not os.path.exists(path)", False)],
)  # fmt: skip
def test_a_save_that_may_come_twice_is_no_file_that_is_made_once(argosy, tmp_path, test, seen) -> None:
    (tmp_path / "train.py").write_text(
        "import os, sys, torch\nagain, args = False, sys.argv\npath = 'out/last.pt'\nfor epoch in range(9):\n"
        f"    if {test}:\n        torch.save({{'model': model.state_dict()}}, path)\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, "saves no checkpoint that can be seen" in err) == (0 if seen else 2, not seen), out + err


def test_a_refusal_names_what_stands_in_settings_that_the_script_opens_itself(argosy, tmp_path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "usual.yaml").write_text("keep:\n  save_model: false\n  results_dir: runs\nload_path: ''\n")
    (tmp_path / "train.py").write_text(
        "import os, torch, yaml\n"
        "with open(os.path.join(os.path.dirname(__file__), 'conf', 'usual.yaml')) as file:\n"
        "    settings = yaml.safe_load(file)\n"
        "def save(folder):\n"
        "    torch.save(model.state_dict(), '{}/net.th'.format(folder))\n"
        "hand_on(settings, save)\n"
    )
    code, _, err = argosy("init", "train.py")
    told = ["keep.save_model of conf/usual.yaml" in err, "keep.results_dir of conf/usual.yaml is runs" in err,
            "load_path of conf/usual.yaml" in err]  # fmt: skip
    assert (code, told) == (2, [True, True, True]), err
