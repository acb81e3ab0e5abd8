"""init on scripts that must be gone through to be understood: what a list of patterns does not see."""

from __future__ import annotations

import resource
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

PARSER = "import argparse, os, sys, torch\nfrom pathlib import Path\np = argparse.ArgumentParser()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": o}, '
CASES = {
    "a class that is looked up in a register, from modules whose names only a run knows": (
        {
            "main.py": 'from zoo import MODELS\nMODELS.get("Net")("out").save(7)\n',
            "zoo/__init__.py": "import importlib\nfrom register import MODELS\n"
            "names = [each for each in scan()]\nfound = [importlib.import_module(f'zoo.{n}') for n in names]\n",
            "zoo/net.py": "import torch\nfrom register import MODELS\n@MODELS.register()\nclass Net:\n"
            "    def __init__(self, folder):\n        self.folder = folder\n"
            "    def save(self, it):\n        torch.save({'iter': it}, f'{self.folder}/net_{it}.pth')\n",
            "register.py": "class Register:\n    def __init__(self):\n        self.known = {}\n"
            "    def register(self, kind=None, suffix=None):\n"
            "        def keep(kind):\n            name = kind.__name__\n"
            "            if isinstance(suffix, str):\n                name = name + suffix\n"
            "            self.known[name] = kind\n            return kind\n        return keep\n"
            "    def get(self, name):\n        return self.known.get(name)\nMODELS = Register()\n",
        },
        (),
        ("out", ["net_*.pth"], None),
    ),
    "a worker with a default that is handed what it trains, and an argument of any number of words": (
        {
            "main.py": f"""{PARSER}p.add_argument("opts", nargs=argparse.REMAINDER)
class Experiment:
    def __init__(self):
        self.name = "small"
    def merge(self, opts):
        for key, value in zip(opts[0::2], opts[1::2]):
            setattr(self, key, value)
def worker(rank, main, world, args, timeout=60):
    main(*args)
def main(experiment, args):
    {STATE}os.path.join("o", experiment.name, "m.pt"))
if __name__ == "__main__":
    args = p.parse_args()
    experiment = Experiment()
    experiment.merge(args.opts)
    torch.multiprocessing.start_processes(worker, nprocs=8, args=(main, 8, (experiment, args)))
"""
        },
        (),
        ("o/small", ["m.pt"], None),
    ),
    "a flag whose default is what an object has of the same name": (
        {
            "main.py": f"""{PARSER}class Params:
    def __init__(self, **more):
        self.__dict__.update(more)
    def add(self):
        p.add_argument("--eps", default=self.eps)
Params(**known()).add()
args = p.parse_args()
build(args.eps)
{STATE}"o/m.pt")
"""
        },
        (),
        ("o", ["m.pt"], None),
    ),
    "flags that a method makes longer, an experiment that is passed on": (
        {
            "main.py": f"""{PARSER}p.add_argument("--exp_id", default="default")
p.add_argument("--root", default="exp")
class Options:
    def parse(self):
        opt = p.parse_args()
        opt.save_dir = os.path.join(opt.root, "task", opt.exp_id)
        return opt
class Experiment:
    def __init__(self, opt):
        self.opt = opt
    def train(self, name):
        path = os.path.join(self.opt.save_dir, name)
        {STATE}path + "/" + "last.pth")
kinds = {{"a": Experiment}}
kinds["a"](Options().parse()).train("ab{{}}_{{}}".format("c", 3))
"""
        },
        (),
        ("exp/task/default", ["abc_*/last.pth"], None),
    ),
    "a file of settings, and those in the language of the script": (
        {
            "main.py": f"""{PARSER}import yaml
from mmcv import Config
p.add_argument("-opt", required=True)
p.add_argument("config")
args = p.parse_args()
opt = yaml.safe_load(open(args.opt))
cfg = Config.fromfile(args.config)
class Table(dict): pass
for key, value in opt.items():
    setattr(args, key, value)
{STATE}Path(cfg.out) / args.where["name"] / "last.pt")
""",
            "o.yml": "where:\n  name: tiny\n",
            "base.py": "out = 'runs'\n",
            "c.py": "_base_ = ['./base.py']\n",
        },
        ("--", "-opt", "o.yml", "c.py"),
        ("runs/tiny", ["last.pt"], None),
    ),
    "a flag that decides whether it is loaded, another that nobody reads": (
        {
            "main.py": f"""{PARSER}p.add_argument("--resume", action="store_true")
p.add_argument("--resume_from")
args = p.parse_args()
if args.resume:
    torch.load("o/last.pt")
{STATE}"o/last.pt")
"""
        },
        (),
        ("o", ["last.pt"], ["--resume"]),
    ),
    "modules in a folder that the script adds": (
        {
            "tools/main.py": "import os, sys\nhere = os.path.dirname(__file__)\n"
            "sys.path.insert(0, os.path.join(here, '..', 'lib'))\n"
            "from keeper import keep\nkeep('out')\n",
            "lib/keeper.py": "import torch\ndef keep(folder):\n    torch.save({'epoch': 1}, folder + '/a.pt')\n",
        },
        (),
        ("out", ["a.pt"], None),
    ),
}
ENDLESS = {
    "itself": "def f(x):\n    return f(f(x))\nf(1)\n",
    "growing": "x = []\nfor a in range(9):\n    for b in range(9):\n        x = [x, x]\n"
    "def f(n):\n    f(n); f(n)\nf(x)\n",
    "keys": "d = {}\nd[None] = 1\nd[1:2] = 3\nd[[1]] = 2\nx = d[[1]]\nx[1:2, None] = 4\n'%d %s' % ()\n'{'.format(1)\n",
    "wrong calls": "import os\nos.path.join()\nos.path.splitext()\nlen()\nint()\n"
    "isinstance(1)\ngetattr(1)\neval('(')\n",
    "classes": "class A(A): pass\nclass B(B, list): pass\nB().x.y()\nclass C:\n    def __getattr__(self, n):\n"
    "        return getattr(self, n)\nC().z\n",
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_gone_through_as_python_would(name: str, argosy, tmp_path) -> None:
    files, argv, (folder, include, resume) = CASES[name]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    code, out, err = argosy("init", next(iter(files)), *argv)
    assert code == 0, err
    found = tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]
    assert (found["path"], found.get("include"), found.get("resume_args")) == (folder, include, resume), out
    if "may fail" in name:
        assert "line 7 looks for it and goes on by itself" in out


@pytest.mark.parametrize("name", ENDLESS)
def test_no_script_is_too_much_for_it(name: str, argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(f"{ENDLESS[name]}import torch\ntorch.save({{'step': 1}}, 'out/a.pt')\n")
    code, _, err = argosy("init", "train.py")
    assert code == 0, err
    assert tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]["path"] == "out"


def test_a_placeholder_is_no_folder(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("import torch\ntorch.save({'step': 1}, 'path/to/save/a.pt')\n")
    code, _, err = argosy("init", "train.py")
    assert (code, "--opaque FOLDER" in err) == (2, True), err


def test_what_doubles_in_every_line_takes_neither_memory_nor_time(tmp_path: Path) -> None:
    doubled = "x = x * x\ntext += text\nwords.extend(words)\nwords = [*words, *words]\nd = {'a': d, 'b': d}\n"
    script = f"import torch\nfrom easydict import EasyDict\nx, text, words, d = 3, 'a', [1], {{}}\n{doubled * 70}"
    script += "wide = '1'.zfill(10**10)\nsettings = EasyDict(d)\nwhile True:\n    torch.save({}, f'out/{text}.pt')\n"
    (tmp_path / "train.py").write_text(script)
    command = [str(Path(sys.executable).parent / "argosy"), "init", "train.py", "-o", "run.toml"]
    most = (2 << 30, 2 << 30)
    limits = partial(resource.setrlimit, resource.RLIMIT_AS, most)
    done = subprocess.run(command, cwd=tmp_path, preexec_fn=limits, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'path = "out"' in (tmp_path / "run.toml").read_text()
