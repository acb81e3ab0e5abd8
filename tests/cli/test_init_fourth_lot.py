"""init on what it did not see, or was sure of and wrong about, in lots of public programs that chance chose."""

from __future__ import annotations

import pytest

PARSER = "import argparse, glob, os, torch\nfrom pathlib import Path\np = argparse.ArgumentParser()\n"
PARSED = "args = p.parse_args()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": o}, '
TURN = "for x in range(9):\n    model(x).backward()\n"
OUT = f"{PARSER}p.add_argument('--out', default='o')\n"
JAX = "import jax, os\nfrom flax import serialization\n"
STEP = f"{JAX}for step in range(9):\n    folder = f'o/checkpoint-{{step}}'\n    os.makedirs(folder)\n"
ONE, TWO, NODES = (1, 1), (2, 2), (2, 1)

CASES = {
    "a file that is renamed by its path's own method": (
        f"{OUT}p.add_argument('--resume')\n{PARSED}def save(state, path):\n    path = Path(path)\n"
        "    early = path.with_suffix('.tmp')\n    torch.save(state, early)\n    early.rename(path)\n"
        "if args.resume:\n    optimizer.load_state_dict(torch.load(args.resume)['optimizer'])\n"
        "save({'epoch': 1}, Path(args.out) / 'last.pt')\n",
        [],
        ("o", ["last.pt"], ["--resume", "o/last.pt"], ONE, "line 11 saves there"),
    ),
    "bytes of flax that the script writes itself": (
        f"{STEP}    with open(os.path.join(folder, 'state.msgpack'), 'wb') as f:\n"
        "        f.write(serialization.to_bytes(state))\n",
        [],
        ("o", ["checkpoint-*/**/*"], None, ONE, "line 7 saves there"),
    ),
    "leaves of equinox": (
        "import equinox as eqx\nfor step in range(9):\n    eqx.tree_serialise_leaves(f'o/model_{step}.eqx', model)\n",
        [],
        ("o", ["model_*.eqx"], None, ONE, "line 3 saves there"),
    ),
    "ranks that JAX brings together, and a tokenizer of transformers": (
        f"{JAX}from transformers import AutoTokenizer\njax.distributed.initialize()\n"
        "with open('o/state.msgpack', 'wb') as f:\n    f.write(serialization.to_bytes(state))\n",
        [],
        ("o", ["state.msgpack"], None, NODES, 'launcher = "plain"'),
    ),
    "the newest of which the next step is counted": (
        f"{PARSER}{PARSED}def begin():\n    found = sorted(glob.glob('o/m_*.pt'))\n    if not found:\n"
        "        return 0\n"
        "    step = int(found[-1].split('_')[-1][:-3])\n    model.load_state_dict(torch.load(found[-1]))\n"
        f"    return step + 1\nfor step in range(begin(), 9):\n    {STATE}f'o/m_{{step}}.pt')\n",
        [],
        ("o", ["m_*.pt"], None, ONE, "line 6 looks for it and goes on by itself"),
    ),
    "a group of ranks that send to each other": (
        f"{PARSER}{PARSED}torch.distributed.init_process_group('nccl')\n{TURN}torch.distributed.send(made, 1)\n"
        f"{STATE}'o/m.pt')\n",
        [],
        ("o", ["m.pt"], None, TWO, "uses init_process_group"),
    ),
    "a group of ranks whose gradients a library of theirs brings together": (
        f"{PARSER}from tools_of_ours import reduce_gradients\n{PARSED}torch.distributed.init_process_group('nccl')\n"
        f"{TURN}reduce_gradients(model)\n{STATE}'o/m.pt')\n",
        [],
        ("o", ["m.pt"], None, TWO, "uses init_process_group"),
    ),
    "losses that are pickled beside a checkpoint": (
        f"{PARSER}import pickle\n{PARSED}{STATE}'o/m.pt')\n"
        "with open('o/history.pkl', 'wb') as f:\n    pickle.dump({'epoch': 3, 'loss': losses}, f)\n",
        [],
        ("o", ["m.pt"], None, ONE, ""),
    ),
    "a group of ranks whose gradients are": (
        f"{PARSER}{PARSED}torch.distributed.init_process_group('nccl')\n{TURN}"
        f"    torch.distributed.all_reduce(model.grad)\n{STATE}'o/m.pt')\n",
        [],
        ("o", ["m.pt"], None, TWO, ""),
    ),
}  # fmt: skip


HYDRA = "import hydra, os\nfrom omegaconf import OmegaConf\n@hydra.main(version_base='1.2')\ndef main(cfg):\n"
FILES = {
    "conf/base.yaml": "name: first\nhydra:\n  run:\n    dir: .\ncheckpoint:\n  dir: kept\nscheduler:\n  name: cosine\n"
    "output:\n  dir: path/to/output\n",
    "tools.py": "import torch\ndef keep(path='kept'):\n    torch.save({'epoch': 1}, path + '/m.pt')\n"
    "def other():\n    pass\n",
}
TOLD = ["--", "--config-path", "conf", "--config-name=base"]
CASES |= {
    "settings that Hydra's own flags name, and words for keys that have a value": (
        f"{HYDRA}    import torch\n    torch.save(m.state_dict(), os.path.join(cfg.checkpoint.dir, cfg.name + '.pt'))\n"
        "main()\n",
        [*TOLD, "name=second"],
        ("kept", ["second.pt"], None, ONE, ""),
    ),
    "a folder that is listed for a name that is not taken": (
        f"{PARSER}import random\n{PARSED}class Saver:\n    def begin(self):\n        taken = set(os.listdir('o'))\n"
        "        name = str(random.random())\n        while name in taken:\n            name = str(random.random())\n"
        "        self.folder = f'o/{name}'\n        os.makedirs(self.folder)\n"
        f"    def save(self):\n        {STATE}self.folder + '/m.pt')\n    def load(self):\n        torch.load('x')\n"
        "made = Saver()\nmade.begin()\nmade.save()\n",
        [],
        ("o", ["*/m.pt"], None, ONE, "nothing that looks for the files, was seen"),
    ),
}  # fmt: skip


CASES |= {
    "a number that is written with a format, whatever it is counted from": (
        f"{PARSER}{PARSED}for n in range(9):\n    acc = right() / all()\n    {STATE}f'o/e{{n:0>3d}}_{{acc:.4f}}.pt')\n",
        [],
        ("o", ["e*_*.pt"], None, ONE, ""),
    ),
    "the best of them, which may be an old one": (
        f"{PARSER}p.add_argument('--resume', default='')\n{PARSED}def save(path):\n    {STATE}path)\n"
        "if args.resume:\n    optimizer.load_state_dict(torch.load(args.resume)['optimizer'])\n"
        "for n in range(9):\n    save('o/best.pth')\n    save(f'o/c_{n:03d}.pth')\n",
        [],
        ("o", ["best.pth", "c_*.pth"], ["--resume", "{newest:c_*.pth}"], ONE, ""),
    ),
    "a switch that a turn of the loop sets for the next": (
        f"{PARSER}{PARSED}args.refining = False\nfor n in range(args.first, 9):\n    if args.refining:\n"
        "        torch.save(m.state_dict(), 'o/refined.pt')\n"
        "    else:\n        torch.save(m.state_dict(), 'o/first.pt')\n"
        "    if loss() < 1:\n        args.refining = True\n",
        [],
        ("o", ["refined.pt", "first.pt"], None, ONE, ""),
    ),
    "a state that is pickled, and moved into its place": (
        "import os, pickle\nif os.path.exists('o/state.pkl'):\n    with open('o/state.pkl', 'rb') as f:\n"
        "        state = pickle.load(f)\nwith open('o/state.pkl.tmp', 'wb') as f:\n"
        "    pickle.dump({'params': p, 'opt_state': s}, f)\nos.replace('o/state.pkl.tmp', 'o/state.pkl')\n",
        [],
        ("o", ["state.pkl"], None, ONE, "looks for it and goes on by itself"),
    ),
    "weights of Keras with a number at the end": (
        f"{PARSER}{PARSED}for n in range(9):\n    model.save_weights('o/checkpoint_%d' % n)\n",
        [],
        ("o", ["checkpoint_*"], None, ONE, ""),
    ),
    "a folder whose name a setting makes longer": (
        f"{PARSER}{PARSED}name = pick()\nfolder = os.path.join('o', name + '_tuned' if frozen() else name)\n"
        f"{STATE}folder + '/m.pt')\n",
        [],
        ("o", ["*/m.pt"], None, ONE, ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_it_writes(name: str, initialized) -> None:
    script, argv, (folder, include, resume, ranks, words) = CASES[name]
    code, found, said = initialized({"train.py": script, **FILES}, *argv)
    assert code == 0, said
    kept, gang = found["checkpoint"], found["gang"]
    assert (kept["path"], kept.get("include"), kept.get("resume_args")) == (folder, include, resume), said
    assert (gang["nnodes"], gang["nproc_per_node"]) == ranks, said
    assert words in said


REFUSED = {
    "a flag that was seen to move what a library saves": (
        "import argparse\nfrom mmcv import Config\np = argparse.ArgumentParser()\np.add_argument('config')\n"
        f"p.add_argument('--work-dir')\np.add_argument('--resume-from')\n{PARSED}cfg = Config.fromfile(args.config)\n"
        "if args.work_dir is not None:\n    cfg.work_dir = args.work_dir\ntrain_model(cfg)\n",
        ["--", "c.py"],
        "with --work-dir out it saves below that one: `argosy init train.py -- c.py --work-dir out`",
    ),
    "a key of Hydra's file that says a placeholder": (
        f"{HYDRA}    import torch\n    torch.save(m.state_dict(), cfg.output.dir + '/m.pt')\nmain()\n",
        TOLD,
        "`argosy init train.py -- --config-path conf --config-name=base output.dir=out`",
    ),
    "a number's own bytes, at the head of its data": (
        f"{PARSER}{PARSED}with open('data/train.bin', 'wb') as f:\n    f.write(count.to_bytes(4, 'little'))\n",
        [],
        "saves no checkpoint that can be seen",
    ),
    "losses that are pickled after each epoch": (
        f"{PARSER}import pickle\n{PARSED}with open('o/history.pkl', 'wb') as f:\n"
        "    pickle.dump({'epoch': 3, 'loss': losses}, f)\n",
        [],
        "saves no checkpoint that can be seen",
    ),
    "a save of a module beside it that nobody calls": (
        f"{PARSER}from tools import other\n{PARSED}other()\n",
        [],
        "saves no checkpoint that can be seen",
    ),
    "a folder of which nothing is known, and the one below it": (
        f"{PARSER}{PARSED}def save(config, step):\n    path = os.path.join(config.run.place, f'step_{{step}}')\n"
        f"    {STATE}os.path.join(path, 'model.pt'))\nsave(read('/code/c.yaml'), 1)\n",
        [],
        'include = ["step_*/model.pt"]',
    ),
    "the same, and what its name stands for": (
        f"{PARSER}{PARSED}def save(config, step):\n    path = os.path.join(config.run.place, f'step_{{step}}')\n"
        f"    {STATE}os.path.join(path, 'model.pt'))\nsave(read('/code/c.yaml'), 1)\n",
        [],
        "os.path.join(path, 'model.pt') with path = os.path.join(config.run.place, f'step_{step}')",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_refuses(name: str, initialized) -> None:
    script, argv, words = REFUSED[name]
    code, _, said = initialized({"train.py": script, "c.py": "work_dir = '/data/work'\n", **FILES}, *argv)
    assert (code, words in said) == (2, True), said
