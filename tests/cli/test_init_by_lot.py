"""init on what it was sure of and wrong about, or knew no lines for, in three lots of public programs."""

from __future__ import annotations

import pytest

PARSER = "import argparse, glob, os, pickle, shutil, torch\np = argparse.ArgumentParser()\n"
PARSED = "args = p.parse_args()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": o}, '
RESUME = f"{PARSER}p.add_argument('--resume', default='')\n"
LOADED = "    optimizer.load_state_dict(torch.load(path)['optimizer'])\n"
LOOP = "model = Net()\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
TURN = "    model(x).backward()\n    optimizer.step()\n"
LIGHTNING = "import pytorch_lightning as pl\nfrom pytorch_lightning.callbacks import ModelCheckpoint\n"
ONE, NODE = (1, 1), (1, 2)

CASES = {
    "modules in a folder that the script adds have flags, too": (
        {
            "run/train.py": f"import _paths\nimport torch\nfrom opts import parse\nargs = parse()\n"
            f"{STATE}args.out + '/m.pt')\n",
            "run/_paths.py": "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\n",
            "run/lib/opts.py": f"{PARSER}p.add_argument('--out', default='kept')\ndef parse():\n"
            f"    return p.parse_args()\n",
        },
        [],
        ("kept", ["m.pt"], None, ONE, ""),
    ),
    "a rank of all nodes that is taken for a GPU's number": (
        {
            "train.py": f"{PARSER}torch.distributed.init_process_group('nccl')\nrank = torch.distributed.get_rank()\n"
            f"torch.cuda.set_device(rank)\n{STATE}'o/m.pt')\n"
        },
        [],
        ("o", ["m.pt"], None, NODE, "takes the rank of all nodes for a GPU's number: one node only"),
    ),
    "a folder that is removed only without a resume": (
        {
            "train.py": f"{RESUME}{PARSED}if not args.resume:\n    shutil.rmtree('o')\npath = args.resume\n"
            f"if path:\n{LOADED}"
            f"for n in range(9):\n    {STATE}'o/m.pt')\n"
        },
        [],
        ("o", ["m.pt"], ["--resume", "o/m.pt"], ONE, ""),
    ),
    "a folder that is removed only where something failed": (
        {
            "train.py": f"{RESUME}{PARSED}try:\n    clone('o')\nexcept OSError:\n    shutil.rmtree('o')\n"
            f"path = args.resume\nif path:\n{LOADED}for n in range(9):\n    {STATE}'o/m.pt')\n"
        },
        [],
        ("o", ["m.pt"], ["--resume", "o/m.pt"], ONE, ""),
    ),
    "a group that a function beside it makes, which nobody calls": (
        {
            "train.py": f"import torch\nfrom tools import collate\ncollate(1)\n{STATE}'o/m.pt')\n",
            "tools.py": "import torch\ndef collate(x):\n    return x\ndef start():\n"
            "    torch.distributed.init_process_group('nccl')\n"
            "    return torch.nn.parallel.DistributedDataParallel(1)\n",
        },
        [],
        ("o", ["m.pt"], None, ONE, "neither DDP, FSDP nor deepspeed"),
    ),
    "Fabric with one device": (
        {"train.py": f"import lightning as L, torch\nL.Fabric(devices=1).launch()\n{STATE}'o/m.pt')\n"},
        [],
        ("o", ["m.pt"], None, ONE, ""),
    ),
    "ranks that MPI tells": (
        {
            "train.py": f"import os, torch\nfrom mpi4py import MPI\nos.environ['RANK'] = str(MPI.COMM_WORLD.rank)\n"
            f"torch.distributed.init_process_group('nccl', init_method='env://')\n{STATE}'o/m.pt')\n"
        },
        [],
        ("o", ["m.pt"], None, (2, 2), 'launcher = "mpirun": line 3 asks MPI which rank it is'),
    ),
    "ranks that Horovod starts": (
        {"train.py": f"import os, torch\nimport horovod.torch as hvd\nhvd.init()\n{STATE}'o/m.pt')\n"},
        [],
        ("o", ["m.pt"], None, (2, 2), 'launcher = "mpirun": line 3 asks MPI which rank it is'),
    ),
    "a group that a function leaves before it is made": (
        {
            "train.py": f"{PARSER}p.add_argument('--distributed', action='store_true')\n{PARSED}"
            "def begin(args):\n    if not args.distributed:\n        return\n"
            "    if not torch.distributed.is_initialized():\n"
            f"        torch.distributed.init_process_group('nccl', init_method='env://')\nbegin(args)\n{STATE}'o/m.pt')\n"
        },
        [],
        ("o", ["m.pt"], None, ONE, "makes its group of ranks only if args.distributed: one process"),
    ),
    "ranks that torchrun may tell, too": (
        {
            "train.py": f"import os, torch\nfrom mpi4py import MPI\nif 'RANK' not in os.environ:\n"
            "    os.environ['RANK'] = str(MPI.COMM_WORLD.rank)\n"
            f"torch.distributed.init_process_group('gloo', init_method='env://')\n{STATE}'o/m.pt')\n"
        },
        [],
        ("o", ["m.pt"], None, (2, 2), "line 5 uses init_process_group; change it with -j NxP"),
    ),
    "a path beside a flag that is true or false": (
        {
            "train.py": f"{PARSER}p.add_argument('--resume', type=bool, default=False)\n"
            f"p.add_argument('--checkpoint', default='')\n{PARSED}"
            "if args.checkpoint:\n    state = torch.load(args.checkpoint)\n    if args.resume:\n"
            f"        optimizer.load_state_dict(state['optimizer'])\nfor n in range(9):\n    {STATE}f'o/{{n}}.pt')\n"
        },
        [],
        ("o", ["*.pt"], ["--resume", "True", "--checkpoint", "{newest}"], ONE, ""),
    ),
    "settings that a loop lays over defaults": (
        {
            "train.py": f"{PARSER}import yaml\nfrom easydict import EasyDict\n"
            f"c = EasyDict({{{', '.join(f'{key!r}: 0' for key in 'abcdefghijk')}}})\n"
            "c.OUT = ''\ndef lay(file):\n    for key, value in yaml.safe_load(open(file)).items():\n"
            "        if key in c:\n"
            "            if isinstance(value, dict):\n"
            "                print('a table', key, value, 1 + 1, [2, 3], {4: 5}, (6, 7))\n"
            "            elif key == 'SCALES':\n                c[key][0] = tuple(value)\n            else:\n"
            "                c[key] = value\n"
            "        else:\n            raise ValueError('{} is not known'.format(key))\n"
            f"p.add_argument('--cfg')\n{PARSED}lay(args.cfg)\n{STATE}os.path.join(c.OUT, 'm.pt'))\n",
            "c.yaml": "".join(f"{key}: 1\n" for key in "abcdefghijk") + "OUT: kept\n",
        },
        ["--", "--cfg", "c.yaml"],
        ("kept", ["m.pt"], None, ONE, ""),
    ),
    "settings that a function of a file makes, and a folder named like a checkpoint": (
        {
            "train.py": "import os, torch, ml_collections\nfrom absl import app, flags\n"
            "from ml_collections import config_flags\n"
            "config_flags.DEFINE_config_file('config', None, 'its settings')\nFLAGS = flags.FLAGS\ndef train(config):\n"
            "    config = ml_collections.FrozenConfigDict(config)\n    if os.path.exists(config.ckpts):\n"
            "        found = os.listdir(config.ckpts)\n"
            "        if found:\n            torch.load(os.path.join(config.ckpts, max(found), 'step.pth'))\n"
            "    for n in range(9):\n"
            "        torch.save({'step': n}, os.path.join(config.ckpts, f'{n}.ckpt', 'step.pth'))\n"
            "def main(argv):\n    config = FLAGS.config\n"
            "    config.ckpts = os.path.join(config.out, name(argv), 'ckpts')\n    train(config)\napp.run(main)\n",
            "c.py": "import ml_collections\ndef get_config():\n    c = ml_collections.ConfigDict()\n"
            "    c.out = 'work'\n    return c\n",
        },
        ["--", "--config=c.py"],
        ("work", ["*/ckpts/*.ckpt/**/*"], None, ONE, "line 9 looks for it and goes on by itself"),
    ),
    "a switch of Hugging Face's dataclasses takes a value": (
        {
            "train.py": "from dataclasses import dataclass, field\nimport transformers\n@dataclass\n"
            "class Mine(transformers.TrainingArguments):\n"
            "    resume_from_checkpoint: bool = field(default=False)\n"
            "(t,) = transformers.HfArgumentParser((Mine,)).parse_args_into_dataclasses()\n"
            "transformers.Trainer(args=t).train(resume_from_checkpoint=t.resume_from_checkpoint)\n"
        },
        ["--", "--output_dir", "o"],
        ("o", None, ["--resume_from_checkpoint", "True"], ONE, "which is True or False"),
    ),
    "one command's flags are not required by another": (
        {
            "train.py": f"{PARSER}some = p.add_subparsers()\ntrain = some.add_parser('train')\n"
            f"export = some.add_parser('export')\n"
            f"export.add_argument('--out_dir', required=True)\n{PARSED}print(args.out_dir)\n{STATE}'o/m.pt')\n"
        },
        ["--", "train"],
        ("o", ["m.pt"], None, ONE, ""),
    ),
    "flags of a parser that a module beside it has for itself": (
        {
            "train.py": f"{PARSER}from nets import Net\np.add_argument('--lr')\n{PARSED}Net()\n"
            f"for n in range(9):\n    {STATE}f'o/{{n}}.pt')\n",
            "nets.py": f"{RESUME}{PARSED}def Net():\n    return args.resume\n",
        },
        [],
        ("o", ["*.pt"], None, ONE, ""),
    ),
    "lines for a loop that makes another model for each evaluation": (
        {
            "train.py": f"{PARSER}p.add_argument('--load')\n{PARSED}{LOOP}for epoch in range(9):\n"
            f"    model.train()\n{TURN}"
            f"    copy = Net()\n    copy.load_state_dict(model.state_dict())\n"
            f"    torch.save(model.state_dict(), f'o/{{epoch}}.pth')\n"
        },
        [],
        ("o", ["*.pth"], None, ONE, "instead of line 7:\n        for epoch in range(start, 9):"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_it_writes(name: str, initialized) -> None:
    files, argv, (folder, include, resume, ranks, words) = CASES[name]
    code, found, said = initialized(files, *argv)
    assert code == 0, said
    kept, gang = found["checkpoint"], found["gang"]
    assert (kept["path"], kept.get("include"), kept.get("resume_args")) == (folder, include, resume), said
    assert (gang["nnodes"], gang["nproc_per_node"]) == ranks, said
    assert words in said
    assert "requires" not in said


REFUSED = {
    "a folder that is made anew where it is there": (
        f"{RESUME}{PARSED}try:\n    os.makedirs('o')\nexcept OSError:\n    shutil.rmtree('o')\n    os.makedirs('o')\n"
        f"for n in range(9):\n    {STATE}f'o/{{n}}.pt')\n",
        "line 8 removes o when it starts, and with it what it saved",
    ),
    "a folder that is removed at each start": (
        f"{RESUME}{PARSED}if os.path.exists('o'):\n    shutil.rmtree('o')\nfor n in range(9):\n"
        f"    {STATE}f'o/{{n}}.pt')\n",
        "line 6 removes o when it starts, and with it what it saved",
    ),
    "a save that either of two tests asks for": (
        f"{PARSER}p.add_argument('--every', type=int, default=-1)\np.add_argument('--at')\n{PARSED}"
        "def training(args):\n    if n % args.every == args.every - 1 or n in args.at:\n"
        f"        {STATE}unknown())\nbegin()['training'](args)\n",
        "saves where only a run could tell (line 8)",
    ),
    "a trainer that saves outside": (
        "from transformers import Trainer, TrainingArguments\n"
        "Trainer(args=TrainingArguments(output_dir='/tmp/o')).train()\n",
        "saves into /tmp/o, outside the folder that it runs in",
    ),
    "weights only": (
        f"{LIGHTNING}pl.Trainer(callbacks=[ModelCheckpoint(dirpath='o', save_weights_only=True)]).fit(m, "
        f"ckpt_path=found)\n",
        "saves weights only, which it cannot go on from; write the lines above",
    ),
    "an heir of ModelCheckpoint": (
        f"{LIGHTNING}class Mine(ModelCheckpoint):\n    pass\n"
        f"pl.Trainer(callbacks=[Mine(dirpath=unknown())]).fit(m, ckpt_path=found)\n",
        "saves where only a run could tell; write the lines above",
    ),
    "a saver of a library that is not known": (
        "import engine\nhooks = [engine.ModelSaver(10, conf.out + '/snap')]\n",
        'include = ["snap*", "snap*/**/*"]',
    ),
    "a word of Hydra": (
        "import hydra, torch\n@hydra.main(config_path='.', config_name='c')\ndef main(cfg):\n    if cfg.resume:\n"
        "        torch.load(cfg.resume)\n    torch.save({'epoch': 1}, unknown() / f'm-{n}.pt')\nmain()\n",
        "resume_args = [\"resume='{newest}'\"]",
    ),
    "what nothing goes on from": (
        f"{PARSER}{LOOP}for epoch in range(9):\n"
        f"{TURN}    torch.save({{'epoch': 1}}, os.path.join(unknown(), 'm.pt'))\n",
        "Nothing was seen that makes it go on: every restart may begin anew. For it to go on write:",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_refuses(name: str, initialized) -> None:
    script, words = REFUSED[name]
    code, _, said = initialized({"train.py": script, "c.yaml": "resume: false\n"})
    assert (code, words in said) == (2, True), said
