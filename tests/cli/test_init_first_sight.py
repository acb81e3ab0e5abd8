"""init on the ways of going on, and of keeping settings, that it took for others at first sight of public programs."""

from __future__ import annotations

import tomllib

import pytest

PARSER = "import argparse, os, torch\nfrom pathlib import Path\np = argparse.ArgumentParser()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": o}, '
MANY = "def save(name, state):\n    torch.save(state, args.out + '/' + name)\n"
CASES = {
    "a star import leaves the script its own name": (
        {
            "train.py": f"from things import *\n{PARSER}def train():\n    {STATE}f'{{FOLDER}}/{{n}}.pt')\n"
            "if __name__ == '__main__':\n    train()\n",
            "things.py": "from deeper import FOLDER\n",
            "deeper.py": "FOLDER = 'kept'\n",
        },
        ("kept", ["*.pt"], None),
    ),
    "a path relative to this folder, and the first free name of a run": (
        {
            "train.py": f"{PARSER}p.add_argument('--project', default=Path(os.path.relpath(Path(__file__).resolve()"
            f".parents[0], Path.cwd())) / 'runs')\np.add_argument('--resume')\nargs = p.parse_args()\n"
            "if args.resume:\n    torch.load(args.resume)\n"
            "def free(path):\n    path = Path(path)\n    if path.exists():\n        for n in range(2, 99):\n"
            "            found = f'{path}{n}'\n            if not os.path.exists(found):\n                break\n"
            f"        path = Path(found)\n    return path\nfolder = free(Path(args.project) / 'exp')\n"
            f"{STATE}folder / 'last.pt')\n"
        },
        ("runs", ["exp*/last.pt"], ["--resume", "{newest}"]),
    ),
    "a word that makes it look for the newest": (
        {
            "train.py": f"{PARSER}p.add_argument('--resume')\nargs = p.parse_args()\n"
            "if args.resume == 'latest':\n    args.resume = sorted(Path('o').glob('*.pt'))[-1]\n"
            f"if args.resume is not None:\n    torch.load(args.resume)\n{STATE}f'o/{{n}}.pt')\n"
        },
        ("o", ["*.pt"], ["--resume", "latest"]),
    ),
    "parameters of a function that is a command": (
        {
            "train.py": "import torch\nfrom jsonargparse import CLI\nfrom pathlib import Path\n"
            "def main(resume: bool | str | Path = False, out: Path = Path('o')):\n"
            "    if resume:\n        torch.load(resume)\n"
            f"    {STATE}out / f'{{n}}.pt')\nCLI(main)\n"
        },
        ("o", ["*.pt"], ["--resume", "{newest}"]),
    ),
    "one of several files that is called the last": (
        {
            "train.py": f"{PARSER}p.add_argument('--out', default='o')\np.add_argument('--resume', default='')\n"
            f"args = p.parse_args()\nif args.resume:\n    torch.load(args.resume)\n{MANY}"
            "for name in ('best-a.pt', f'epoch-{n}.pt', 'checkpoint.pt'):\n    save(name, {'epoch': 1})\n"
        },
        ("o", ["checkpoint.pt"], ["--resume", "o/checkpoint.pt"]),
    ),
    "settings in a module that is loaded by its path": (
        {
            "train.py": f"{PARSER}import importlib.util\ns = importlib.util.spec_from_file_location('c', 'cfg/a.py')\n"
            f"c = importlib.util.module_from_spec(s)\ns.loader.exec_module(c)\n{STATE}c.OUT + '/last.pt')\n",
            "cfg/a.py": "OUT = 'kept/a'\n",
        },
        ("kept/a", ["last.pt"], None),
    ),
}


ANEW = CASES["a word that makes it look for the newest"][0]["train.py"].replace("f'o/{n}.pt'", "f'o/{now()}/{n}.pt'")
CASES["the same word where each start has a folder of its own"] = (
    {"train.py": ANEW.replace("import argparse", "from datetime import datetime\nnow = datetime.now\nimport argparse")},
    ("o", ["*/*.pt"], ["--resume", "{newest}"]),
)


@pytest.fixture
def read(initialized):
    """What init says of the first file, and the [checkpoint] that it writes."""

    def call(files: dict[str, str], *argv: str):
        code, found, said = initialized(files, *argv)
        return code, found.get("checkpoint", {}), said

    return call


@pytest.mark.parametrize("name", CASES)
def test_it_is_seen(name: str, read) -> None:
    files, (folder, include, resume) = CASES[name]
    _, found, said = read(files)
    assert (found.get("path"), found.get("include"), found.get("resume_args")) == (folder, include, resume), said


def test_a_flag_that_names_a_model_only_is_none_to_go_on_with(read) -> None:
    script = f"{PARSER}p.add_argument('--load_weights')\nargs = p.parse_args()\nif args.load_weights:\n"
    script += "    model.load_state_dict(torch.load(args.load_weights))\ntorch.save(model.state_dict(), f'o/{n}.pt')\n"
    _, found, said = read({"train.py": script})
    assert "resume_args" not in found
    assert "line 7 loads what --load_weights names, but no optimizer's state" in said
    assert "--resume-arg=--load_weights --resume-arg='{newest}'" in said


def test_a_setting_that_its_reader_must_replace_is_named(read) -> None:
    script = f"{PARSER}import yaml\np.add_argument('--fname')\nargs = p.parse_args()\n"
    script += f"c = yaml.safe_load(open(args.fname))\n{STATE}c['log']['folder'] + '/last.pt')\n"
    files = {"train.py": script, "a.yaml": "log:\n  folder: $put_yours_here/x\n"}
    code, _, said = read(files, "--", "--fname", "a.yaml")
    assert code == 2
    assert "log.folder of a.yaml says, which is $put_yours_here/x; write a folder below" in said


def test_a_trainer_is_asked_for_the_newest_only_where_that_is_what_it_is_given(read) -> None:
    script = "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
    script += "from transformers.trainer_utils import get_last_checkpoint\n"
    script += "(args,) = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()\n"
    script += "last = get_last_checkpoint(args.output_dir)\nfound = None\n"
    script += "if args.resume_from_checkpoint is not None:\n    found = args.resume_from_checkpoint\n"
    wanted = "elif last is not None:\n    found = last\n"
    train = "trainer = Trainer(model=m, args=args)\ntrainer.train(resume_from_checkpoint=found)\n"
    for more, resume in (("", ["--resume_from_checkpoint", "{newest}"]), (wanted, None)):
        _, found, said = read({"train.py": script + more + train}, "--", "--output_dir", "o")
        assert (found.get("path"), found.get("resume_args")) == ("o", resume), said


def test_a_flag_that_the_script_sets_itself_is_read(read) -> None:
    script = f"{PARSER}p.add_argument('--resume', default='')\nargs = p.parse_args()\n"
    script += "if os.path.exists('o/last.pt'):\n    args.resume = 'o/last.pt'\n"
    _, found, said = read({"train.py": f"{script}if args.resume:\n    torch.load(args.resume)\n{STATE}'o/last.pt')\n"})
    assert found["resume_args"] == ["--resume", "o/last.pt"], said


def test_a_flag_that_names_the_folder_of_what_is_loaded(read) -> None:
    script = f"{PARSER}p.add_argument('--load_path', default=None)\nargs = p.parse_args()\n"
    script += "root = Path(args.load_path) if args.load_path else None\n"
    script += "if root:\n    net.load_state_dict(torch.load(root / 'n.pt'))\n"
    script += "    opt_g.load_state_dict(torch.load(root / 'o.pt'))\n"
    script += "torch.save(net.state_dict(), 'kept/n.pt')\ntorch.save(opt_g.state_dict(), 'kept/o.pt')\n"
    _, found, said = read({"train.py": script})
    assert found["resume_args"] == ["--load_path", "kept"], said


def test_a_save_that_is_never_come_to_is_none(read) -> None:
    script = f"{PARSER}from a import A\nfrom b import B\np.add_argument('--kind', default='a')\n"
    script += "p.add_argument('--save_model', action='store_true')\nargs = p.parse_args()\n"
    script += "kind = A() if args.kind == 'a' else B()\nif args.save_model:\n    kind.save('models/x')\n"
    one = "import torch\nclass {0}:\n    def save(self, name):\n        torch.save(self.m, name + '_{0}.pt')\n"
    code, _, said = read({"train.py": script, "a.py": one.format("A"), "b.py": one.format("B")})
    assert (code, "saves only with --save_model" in said) == (2, True), said


def test_what_is_loaded_in_another_mode_is_no_word_on_going_on(read) -> None:
    script = f"{PARSER}p.add_argument('--model_path', default='')\np.add_argument('--eval', action='store_true')\n"
    script += "args = p.parse_args()\nif args.eval:\n    torch.load(args.model_path)\n"
    _, _, said = read({"train.py": f"{script}else:\n    torch.save(model.state_dict(), 'o/m.pt')\n"})
    assert "model_path" not in said


def test_a_variable_that_may_name_the_folder_is_given_one(read, tmp_path) -> None:
    script = f"{PARSER}folder = os.environ.get('A_LOGDIR') or tmp()\n{STATE}os.path.join(folder, f'{{n}}.pt'))\n"
    _, found, said = read({"train.py": script})
    assert (found["path"], found["include"]) == ("out", ["*.pt"]), said
    assert tomllib.loads((tmp_path / "run.toml").read_text())["env"] == {"A_LOGDIR": "out"}


def test_a_hydra_script_of_the_old_style_finds_its_file(read) -> None:
    script = "import hydra, torch\nfrom pathlib import Path\n@hydra.main(config_path='conf/config.yaml')\n"
    script += "def main(args):\n    file, found = Path(args.file), None\n    if file.exists():\n        found = file\n"
    script += "    if found:\n        torch.load(found)\n    if args.checkpoint:\n"
    script += f"        {STATE}file)\nmain()\n"
    _, found, said = read({"train.py": script, "conf/config.yaml": "checkpoint: true\nfile: last.th\n"})
    assert (found["path"], found["include"]) == (".", ["last.th"]), said
    assert "line 6 looks for it and goes on by itself" in said


def test_a_flag_without_which_the_script_raises_is_named(read) -> None:
    script = f"{PARSER}p.add_argument('--name', default='N/A')\np.add_argument('--debug', action='store_true')\n"
    script += "p.add_argument('--extra', action='store_true')\ndef main():\n    args = p.parse_args()\n"
    script += "    if args.name == 'N/A' and not args.debug:\n        raise ValueError('a name, please')\n"
    script += (
        f"    if args.extra:\n        {STATE}'o/e.pt')\n    {STATE}os.path.join('o', args.name + '.pt'))\nmain()\n"
    )
    code, _, said = read({"train.py": script})
    assert code == 2
    assert "line 10 raises as the flags are (args.name == 'N/A' and (not args.debug))" in said
    assert "argosy init train.py -- --name VALUE`" in said
    _, found, said = read({"train.py": script}, "--", "--name", "a")
    assert (found["path"], found["include"]) == ("o", ["a.pt"]), said


def test_a_flag_without_which_nobody_makes_what_saves_is_named(read) -> None:
    script = f"{PARSER}from keep import Trainer\np.add_argument('--out', default=None)\n"
    script += "p.add_argument('--every', type=int, default=0)\nargs = p.parse_args()\nTrainer(args).train()\n"
    keep = "import torch\nfrom pathlib import Path\nclass Callback:\n    def on_epoch(self, epoch):\n        pass\n"
    keep += "class Log(Callback):\n    def on_epoch(self, epoch):\n        print(epoch)\n"
    keep += "class Saver(Callback):\n    def __init__(self, folder, every):\n"
    keep += "        self.folder, self.every = folder, every\n    def on_epoch(self, epoch):\n"
    keep += "        if self.every > 0 and epoch % self.every == 0:\n"
    keep += "            torch.save({'epoch': epoch}, self.folder / f'{epoch}.tar')\n"
    keep += "class Trainer:\n    def __init__(self, args):\n        self.callbacks, self.every = [Log()], args.every\n"
    keep += "        self.place = None if args.out is None else Path(args.out)\n        if self.place:\n"
    keep += "            self.callbacks.append(Saver(self.place, args.every))\n    def train(self):\n"
    keep += "        for epoch in range(9):\n            for each in self.callbacks:\n"
    keep += "                each.on_epoch(epoch)\n"
    code, _, said = read({"train.py": script, "keep.py": keep}, "--", "--every", "1")
    assert code == 2
    assert "only if not args.out is None (--out is not given)" in said
    _, found, said = read({"train.py": script, "keep.py": keep}, "--", "--every", "1", "--out", "o")
    assert (found["path"], found["include"]) == ("o", ["*.tar"]), said


def test_a_variable_that_names_a_catalog_is_no_place_to_save_to(read) -> None:
    script = f"{PARSER}data = os.environ.get('A_CATALOG_PATH')\n{STATE}find_out() + f'/{{n}}.pt')\n"
    code, _, said = read({"train.py": script})
    assert (code, "A_CATALOG_PATH" in said) == (2, False), said
