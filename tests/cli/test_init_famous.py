"""init on what well-known public programs did otherwise."""

from __future__ import annotations

import pytest

SAVES = 'torch.save(m, os.path.join(folder, "a.pt"))\n'
ABSL = "import os, torch\nfrom absl import app, flags\nOUT = flags.DEFINE_string('out', None, 'where')\n"
ARGPARSE = "import argparse, os, torch\np = argparse.ArgumentParser()\np.add_argument('--out')\na = p.parse_args()\n"


@pytest.mark.parametrize(
    "script",
    [
        f"{ABSL}def main(argv):\n    folder = OUT.value\n    {SAVES}app.run(main)\n",
        f"{ARGPARSE}folder = a.out\n{SAVES}",
    ],
)
def test_a_folder_elsewhere_that_is_given_is_named_as_it_is(script: str, argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(script)
    code, _, err = argosy("init", "train.py", "--", "--out=/far/away")
    assert (code, "saves where --out says, which is /far/away; name a folder below" in err) == (2, True), err


@pytest.mark.parametrize("link", [False, True])
def test_what_it_imports_and_does_not_travel_is_said(link: bool, argosy, tmp_path, monkeypatch) -> None:
    inside = tmp_path / "trainer"
    inside.mkdir()
    (tmp_path / "layers.py").write_text("class Net:\n    pass\n")
    if link:
        (inside / "layers.py").symlink_to(tmp_path / "layers.py")
    above = "" if link else "sys.path.append(os.path.join(os.path.dirname(__file__), '..'))\n"
    (inside / "train.py").write_text(f'import os, sys, torch\n{above}import layers\nfolder = "o"\n{SAVES}')
    monkeypatch.chdir(inside)
    code, out, err = argosy("init", "train.py")
    assert (code, "../layers.py: the script imports it, and only the folder of run.toml travels" in out) == (0, True), (
        err
    )
    assert f"or call argosy init in {tmp_path}\n" in out
    monkeypatch.chdir(tmp_path)
    assert "layers.py" not in argosy("init", "trainer/train.py")[1]


def test_a_gpu_that_ddp_is_told_by_the_rank_of_all_nodes_means_one_node(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, torch\nimport torch.distributed as dist\n"
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        f'dist.init_process_group("nccl")\nrank = dist.get_rank()\nm = DDP(m, device_ids=[rank])\nfolder = "o"\n{SAVES}'
    )
    code, out, err = argosy("init", "train.py")
    assert (code, "  nnodes = 1\n" in out) == (0, True), err
    assert "line 6 takes the rank of all nodes for a GPU's number: one node only" in out


RUNNER = """\
import os, torch
class Task:
    def train_epoch(self, net, opt, sched):
        self.inner(net=net, opt=opt, sched=sched)
    def inner(self, net, opt, sched):
        for x in data:
            net(x).backward()
            opt.step()
            sched.step(cur_step=x)
class Runner:
    def __init__(self, task):
        self.task, self.net = task, Net()
        self.opt, self.sched = torch.optim.SGD(self.net.parameters(), 0.1), Warmup()
    def train(self):
        for epoch in range(9):
            self.train_epoch(epoch)
            torch.save(self.net.state_dict(), "o/a.pt")
    def train_epoch(self, epoch):
        self.net.train()
        self.task.train_epoch(net=self.net, opt=self.opt, sched=self.sched)
Runner(Task()).train()
"""


BEST = """\
import argparse, os, torch
p = argparse.ArgumentParser()
p.add_argument('--resume', default='')
a = p.parse_args()
def save(epoch):
    torch.save({'epoch': epoch, 'optimizer': o}, f'o/c-{epoch}.pth')
if a.resume:
    state = torch.load(a.resume)
    optimizer.load_state_dict(state['optimizer'])
for epoch in range(9):
    save(epoch)
    if better():
        save('best')
"""
LOADS = """\
import numpy as np, torch
class Trainer:
    def save(self, n):
        torch.save(self.net, f'o/m-{n}.pt')
    def load(self, n):
        self.net = torch.load(f'{self.folder}/m-{n}.pt')
stats = np.load(path + '.npz')
Trainer().save(3)
"""
CASES = {
    # A method of the loop's object, and another's of its name; a schedule that is none of torch's has no state.
    "lines have no name that the loop has not": (
        RUNNER,
        'torch.save({"self.net": self.net.state_dict(), "self.opt": self.opt.state_dict(), "epoch": epoch}',
    ),
    "the best among numbered files is not the newest": (BEST, 'resume_args = ["--resume", "{newest:c-*[0-9].pth}"]'),
    "a library's load gives a method of that name nothing": (LOADS, "line 6 loads f'{self.folder}/m-{n}.pt'\n"),
}


@pytest.mark.parametrize(("script", "said"), CASES.values(), ids=CASES)
def test_what_is_said_of_a_program_like_a_public_one(script: str, said: str, argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(script)
    code, out, err = argosy("init", "train.py")
    assert (code, said in out) == (0, True), out + err


def test_horovod_that_the_flags_keep_it_from_starts_no_ranks(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        f'{ARGPARSE.replace("--out", "--cluster")}if a.cluster == "azure":\n    import horovod.torch as hvd\n'
        f'    hvd.init()\nelse:\n    torch.distributed.init_process_group("nccl")\nfolder = "o"\n{SAVES}'
    )
    assert 'launcher = "mpirun"' not in argosy("init", "train.py", "--", "--cluster", "local")[1]
    assert 'launcher = "mpirun"' in argosy("init", "train.py", "--force", "--", "--cluster", "azure")[1]


def test_flags_of_a_long_table_are_all_declared(argosy, tmp_path) -> None:
    table = ", ".join(f"size_{number}={number}" for number in range(60))
    (tmp_path / "train.py").write_text(
        f"import argparse, torch\nwords = dict({table}, resume='')\np = argparse.ArgumentParser()\n"
        "for name, value in words.items():\n    kind = type(value)\n    if value is None:\n        kind = str\n"
        "    elif isinstance(value, bool):\n        kind = lambda text: text.lower() == 'true'\n"
        "    p.add_argument(f'--{name}', default=value, type=kind)\na = p.parse_args()\n"
        "if a.resume:\n    optimizer.load_state_dict(torch.load(a.resume)['optimizer'])\n"
        "torch.save({'optimizer': optimizer.state_dict()}, 'o/a.pt')\n"
    )
    assert 'resume_args = ["--resume", "o/a.pt"]' in argosy("init", "train.py")[1]
