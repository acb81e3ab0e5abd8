"""init says no more than it knows: where a piece of its reasoning was left open, it says which."""

from __future__ import annotations

import pytest

PARSER = "import argparse, io, os, torch\np = argparse.ArgumentParser()\n"
PARSED = "args = p.parse_args()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": o}, '
LOOP = "model = Net()\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\nfor epoch in range(9):\n"
LOOP += "    model(x).backward()\n    optimizer.step()\n"
LIGHTNING = "import pytorch_lightning as pl\nfrom pytorch_lightning.callbacks import ModelCheckpoint\n"
LIGHTNING += f"{PARSER}p.add_argument('--resume')\n{PARSED}"
GROUP = "import torch.distributed as dist\ndist.init_process_group('nccl')\n"

CASES = {
    "a folder that is the default of one that only a run could tell": (
        f"{PARSER}{PARSED}def either(a, b):\n    return a if given(a) else b\n"
        f"class Loop:\n    def __init__(self, place):\n        self.place = either(place, 'kept')\n"
        f"    def save(self):\n        {STATE}f'{{self.place}}/m.pt')\nLoop(place=asked()).save()\n",
        [],
        ("kept", ["m.pt"], None, "or elsewhere, which only a run could tell: if so, name that folder with --opaque"),
    ),
    "a folder of which nothing is left open": (
        f"{PARSER}{PARSED}{STATE}'kept/m.pt')\n",
        [],
        ("kept", ["m.pt"], None, 'path = "kept": line 4 saves there\n'),
    ),
    "a model that lies over the ranks gets no lines for the first alone": (
        f"import torch\n{GROUP}from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
        f"{LOOP.replace('Net()', 'FSDP(Net())')}    torch.save(model.state_dict(), 'kept/m.pt')\n",
        [],
        ("kept", ["m.pt"], None, "every restart may begin anew; name what makes the script go on with --resume-arg"),
    ),
    "a buffer in memory is no file": (
        f"{PARSER}{PARSED}buffer = io.BytesIO()\ntorch.save(x, buffer)\n{STATE}'kept/m.pt')\n",
        [],
        ("kept", ["m.pt"], None, 'path = "kept": line 6 saves there\n'),
    ),
    "Lightning's names without those of what they count": (
        f"{LIGHTNING}saver = ModelCheckpoint(dirpath='kept', auto_insert_metric_name=False)\n"
        "pl.Trainer(callbacks=[saver]).fit(m, ckpt_path=args.resume)\n",
        [],
        ("kept", ["*.ckpt"], ["--resume", "{newest}"], 'unit = ["[0-9]*-*.ckpt"]'),
    ),
    "Lightning with a strategy whose checkpoints may be folders": (
        f"{LIGHTNING}saver = ModelCheckpoint(dirpath='kept')\n"
        "pl.Trainer(strategy=DeepSpeedStrategy(), callbacks=[saver]).fit(m, ckpt_path=args.resume)\n",
        [],
        ("kept", ["*.ckpt", "*.ckpt/**/*"], ["--resume", "{newest}"], 'unit = ["epoch=*.ckpt"]'),
    ),
    "a library whose note of the newest holds a path of its machine": (
        "from mmengine.config import Config\nimport argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('config')\np.add_argument('--work-dir')\np.add_argument('--resume', nargs='?', const='auto')\n"
        f"{PARSED}cfg = Config.fromfile(args.config)\nif args.resume == 'auto':\n    cfg.resume = True\n",
        ["--", "c.py", "--work-dir", "out"],
        ("out", ["*.pth", "last_checkpoint"], ["--resume", "{newest:[ei][pt]*_*.pth}"], "state that was written last"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_it_writes(name: str, initialized) -> None:
    script, argv, (folder, include, resume, words) = CASES[name]
    code, found, said = initialized({"train.py": script}, *argv)
    assert code == 0, said
    kept = found["checkpoint"]
    assert (kept["path"], kept.get("include"), kept.get("resume_args")) == (folder, include, resume), said
    assert words in said


REFUSED = {
    "a folder and what goes on, by their names alone": (
        "import sys, engine\nengine.train(sys.argv[1:])\n",
        ["--", "c.yaml", "save_folder=kept"],
        "Where it may save, by its name: save_folder is kept\n"
        "What may make it go on, by its name: autoresume of c.yaml\n",
    ),
    "what goes on, where only the folder is to be said": (
        f"{PARSER}p.add_argument('--resume_from')\n{PARSED}{STATE}'/data/m.pt')\n",
        [],
        "What may make it go on, by its name: --resume_from (line 3)\n",
    ),
    "a switch that what is loaded does not ask for": (
        f"{PARSER}p.add_argument('--resume', action='store_true')\n{PARSED}tracker.init(args.resume)\n"
        f"if c.path:\n    torch.load(c.path)\n{STATE}os.path.join(unknown(), 'm.pt'))\n",
        [],
        'include = ["m.pt"]\nWhat may make it go on, by its name: --resume (line 3)\n',
    ),
    "the one folder that has such a name stands in the command": (
        "import sys, engine\nengine.train(sys.argv[1:])\n",
        ["--", "c.yaml", "save_folder=kept"],
        "`argosy init train.py --opaque kept --include GLOB`",
    ),
    "Ray's trainer, if a setting asks for it": (
        "import fire, torch\nfrom ray.train import RunConfig\nfrom ray.train.torch import TorchTrainer\n"
        "def main(config):\n    cfg = read(config)\n    if cfg.use_ray:\n"
        "        TorchTrainer(f, run_config=RunConfig(name='x', storage_path='kept')).fit()\n        return\n"
        "    torch.save({'optimizer': 1}, cfg.out + '/m.pt')\nfire.Fire(main)\n",
        [],
        "saves where only a run could tell (line 9)",
    ),
    "one of two saves that a flag asks for": (
        f"{PARSER}p.add_argument('--best', action='store_true')\n{PARSED}if args.best:\n"
        f"    {STATE}unknown() + '/best.pt')\n{STATE}unknown() + '/m.pt')\n",
        [],
        "saves where only a run could tell (line 6, line 7)",
    ),
    "a restore that is seen, whatever it is of": (
        f"{PARSER}{PARSED}{LOOP}    {STATE}os.path.join(unknown(), 'm.pt'))\nengine.load_checkpoint(place())\n",
        [],
        'path = "FOLDER"\n    include = ["m.pt"]\nargosy: train.py: saves where only a run could tell',
    ),
    "names of some of what it saves are not those of the checkpoint": (
        f"{PARSER}{PARSED}torch.save(x, unknown() / f'{{n}}_input.pt')\n{STATE}unknown())\n",
        [],
        'include = ["GLOB"]',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_refuses(name: str, initialized) -> None:
    script, argv, words = REFUSED[name]
    code, _, said = initialized({"train.py": script, "c.yaml": "autoresume: false\n"}, *argv)
    assert (code, words in said) == (2, True), said
