"""init on what a script needs to find its modules, and on flags and folders that it took for others at first sight."""

from __future__ import annotations

import pytest

PARSER = "import argparse, os, torch\nfrom pathlib import Path\np = argparse.ArgumentParser()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": o}, '


@pytest.fixture
def read(initialized):
    return initialized


def test_a_script_that_imports_from_its_package_is_a_module(read) -> None:
    script = f"from .where import OUT\n{PARSER}{STATE}f'{{OUT}}/{{n}}.pt')\n"
    _, found, _ = read({"kit/train.py": script, "kit/where.py": "OUT = 'o'\n", "kit/__init__.py": ""})
    assert (found["module"], "script" in found, found["checkpoint"]["path"]) == ("kit.train", False, "o")


def test_modules_of_the_folder_that_it_is_called_in_are_found(read) -> None:
    script = f"from util import OUT\n{PARSER}{STATE}f'{{OUT}}/{{n}}.pt')\n"
    _, found, _ = read({"tool/train.py": script, "util/__init__.py": "OUT = 'o'\n"})
    assert (found["script"], found["env"]) == ("tool/train.py", {"PYTHONPATH": "."})
    _, found, _ = read({"tool/train.py": f"import sys\nsys.path.insert(0, '.')\n{script}"})
    assert "env" not in found
    _, found, _ = read({"train.py": script})
    assert "env" not in found


def resumed(found) -> list[str] | None:
    return found["checkpoint"].get("resume_args")


def test_a_folder_that_begins_a_text_with_holes_is_one(read) -> None:
    script = f"{PARSER}p.add_argument('--restart_dir')\np.add_argument('--name', default='last')\n"
    script += "args = p.parse_args()\nif args.restart_dir:\n"
    script += "    state = torch.load(f'{args.restart_dir}/{args.name}.pt')\n"
    _, found, said = read({"train.py": f"{script}    optimizer.load_state_dict(state['o'])\n{STATE}'o/last.pt')\n"})
    assert resumed(found) == ["--restart_dir", "o"], said


def test_a_flag_that_is_a_path_has_what_paths_have(read) -> None:
    script = f"{PARSER}p.add_argument('--out', type=Path, default='o')\nargs = p.parse_args()\n"
    script += "def train(out):\n    file = out.joinpath('a').with_suffix('.pt')\n    if file.exists():\n"
    _, found, said = read({"train.py": f"{script}        torch.load(file)\n    {STATE}file)\ntrain(**vars(args))\n"})
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("o", ["a.pt"]), said
    assert "goes on by itself" in said


def test_a_name_without_a_value_is_no_number_of_a_flag(read) -> None:
    script = f"{PARSER}p.add_argument('--rate', type=float, default=-1)\nargs = p.parse_args()\n"
    script += "def of_file(path):\n    for line in open(path):\n        if int(line) <= 3:\n            rate = 0.1\n"
    script += "        else:\n            return rate\nfor n in range(9):\n    if of_file('r') <= 0:\n        break\n"
    _, found, said = read({"train.py": f"{script}    {STATE}f'o/{{n}}.pt')\n"})
    assert found["checkpoint"]["path"] == "o", said


def test_words_that_change_a_file_of_settings_have_no_dashes(read) -> None:
    script = "import sys\nfrom omegaconf import OmegaConf\nfrom transformers import HfArgumentParser, Trainer\n"
    script += "from transformers import TrainingArguments\nparser = HfArgumentParser((TrainingArguments,))\n"
    script += "told = OmegaConf.merge(OmegaConf.load(sys.argv[1]), OmegaConf.from_cli(sys.argv[2:]))\n"
    script += "args, = parser.parse_dict(told)\ntrainer = Trainer(net, args)\n"
    script += "trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)\n"
    _, found, said = read({"train.py": script, "a.yaml": "output_dir: o\n"}, "--", "a.yaml")
    assert (found["checkpoint"]["path"], resumed(found)) == ("o", ["resume_from_checkpoint={newest}"]), said


LIGHTNING = """from pytorch_lightning import Trainer
p.add_argument('--resume_from_ckpt')
p.add_argument('output_dir')
args = p.parse_args()
loggers = []
told = {key: value for key, value in vars(args).items() if key in KNOWN}
told.update({'default_root_dir': args.output_dir, 'logger': loggers})
Trainer(**told).fit(net, ckpt_path=args.resume_from_ckpt)
"""


def test_what_a_trainer_is_given_by_a_table_says_where_it_saves(read) -> None:
    _, found, said = read({"train.py": PARSER + LIGHTNING}, "--", "out")
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("out/checkpoints", ["*.ckpt"]), said
    _, found, _ = read({"train.py": PARSER + LIGHTNING.replace(", 'logger': loggers", "")}, "--", "out")
    assert found["checkpoint"]["path"] == "out/lightning_logs"


def test_megatrons_folder_is_that_of_its_flag(read) -> None:
    script = "from megatron.training import pretrain\nimport argparse\np = argparse.ArgumentParser()\n"
    script += "p.add_argument('--save')\np.add_argument('--adlr-autoresume', action='store_true')\n"
    _, found, said = read(
        {"train.py": f"{script}args = p.parse_args()\npretrain(data, args.save)\n"}, "--", "--save", "o"
    )
    assert (found["checkpoint"]["path"], found["checkpoint"]["unit"]) == ("o", ["iter_*"]), said
    assert resumed(found) == ["--load", "{path}"]


def test_a_package_below_a_folder_of_sources_is_found(initialized) -> None:
    files = {
        "src/mt/train.py": "import os, torch\nfrom mt.paths import OUT\nos.makedirs(OUT, exist_ok=True)\n"
        "torch.save({'step': 1}, os.path.join(OUT, 'a.pt'))\n",
        "src/mt/__init__.py": "",
        "src/mt/paths.py": "OUT = 'kept'\n",
    }
    _, found, _ = initialized(files)
    assert (found["script"], found["env"]) == ("src/mt/train.py", {"PYTHONPATH": "src"})
    assert found["checkpoint"]["path"] == "kept"


def test_a_package_in_place_of_its_script_is_told_which(initialized, argosy) -> None:
    script = "import torch\ntorch.save({'step': 1}, 'kept/a.pt')\n"
    code, found, _ = initialized({"mine/__main__.py": script, "mine/loop.py": ""})
    assert (code, found["name"]) == (0, "mine")
    for named, file in (("mine", "mine/__main__.py"), ("mine.loop", "mine/loop.py")):
        code, _, err = argosy("init", named)
        assert (code, err.endswith(f"; name your training script, for example {file}\n")) == (2, True), err
