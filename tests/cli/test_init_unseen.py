"""init on what a further set of public programs did otherwise: TensorFlow's Saver, docopt, settings that no flag gives,
loops of their own, and lists of files that are no word on going on.
"""

from __future__ import annotations

import tomllib

import pytest

TORCH = "import argparse, glob, os, torch\np = argparse.ArgumentParser()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": o}, '
MODEL = "torch.save(net.state_dict(), "
NOTHING = "no --resume flag, and nothing that looks for the files, was seen"
SAVER = "import tensorflow as tf, argparse, os\np = argparse.ArgumentParser()\n"
SAVER += "p.add_argument('--out', default='o')\n"
SAVED = "saver = tf.train.Saver(max_to_keep=5)\nsaver.save(sess, os.path.join(a.out, 'model'), global_step=step)\n"
OF_SAVER = ["model-*", "checkpoint"]
CASES = {
    "TensorFlow's Saver, and the folder that its newest is taken of": (
        {
            "train.py": f"{SAVER}p.add_argument('--checkpoint', default=None)\na = p.parse_args()\n{SAVED}"
            "if a.checkpoint is not None:\n    saver.restore(sess, tf.train.latest_checkpoint(a.checkpoint))\n"
        },
        ("o", OF_SAVER, ["--checkpoint", "o"], "--checkpoint, which names the folder"),
    ),
    "TensorFlow's Saver, and the number of a step": (
        {
            "train.py": f"{SAVER}p.add_argument('--restore_step', type=int)\na = p.parse_args()\n{SAVED}"
            "if a.restore_step:\n    saver.restore(sess, '%s-%d' % (os.path.join(a.out, 'model'), a.restore_step))\n"
        },
        ("o", OF_SAVER, ["--restore_step", "{step}"], "the number in the name"),
    ),
    "TensorFlow's Saver, that goes on by itself": (
        {
            "train.py": f"{SAVER}a = p.parse_args()\nfound = tf.train.latest_checkpoint(a.out)\n"
            f"if found:\n    tf.train.Saver().restore(sess, found)\n{SAVED}"
        },
        ("o", OF_SAVER, None, "line 5 looks for it and goes on by itself"),
    ),
    "a key of a file of settings": (
        {
            "train.py": f"{TORCH}import json\np.add_argument('-c', '--config')\na = p.parse_args()\n"
            "cfg = json.load(open(a.config))['train']\nif cfg['checkpoint_path'] != '':\n"
            f"    opt.load_state_dict(torch.load(cfg['checkpoint_path']))\n{STATE}cfg['out'] + '/last.pt')\n",
            "c.json": '{"train": {"out": "kept", "checkpoint_path": ""}}',
        },
        ("kept", ["last.pt"], None, "every restart may begin anew"),
    ),
    "a load that may miss, two functions below the try": (
        {
            "train.py": "import torch, store\ntry:\n    status = store.status('kept')\nexcept OSError:\n"
            "    status = {}\nstore.save({'epoch': 1}, 'kept')\n",
            "store.py": "import os, torch\ndef place(folder):\n    return os.path.join(folder, 'status.pt')\n"
            "def status(folder):\n    return torch.load(place(folder))\n"
            "def save(what, folder):\n    torch.save(what, place(folder))\n",
        },
        ("kept", ["status.pt"], None, "store.py:5 looks for it and goes on by itself"),
    ),
    "files that are listed to remove them, after they were saved": (
        {
            "train.py": f"{TORCH}data = load_data()\nfor epoch in range(9):\n    {MODEL}'{{}}.pkl'.format(epoch))\n"
            "    for each in glob.glob('*.pkl'):\n        os.remove(each)\nfor each in glob.glob('*.pkl'):\n"
            "    os.remove(each)\nnet.load_state_dict(torch.load('{}.pkl'.format(best)))\n"
        },
        (".", ["*.pkl"], None, NOTHING),
    ),
    "files of a dataset whose folder only a run could tell": (
        {
            "train.py": f"{TORCH}class Images(torch.utils.data.Dataset):\n    def __init__(self, folder):\n"
            "        self.files = sorted(glob.glob('%s/*.*' % folder))\n        self.first = load(self.files[0])\n"
            f"Images(read_options()['train'])\n{MODEL}f'kept/{{n}}.pth')\n"
        },
        ("kept", ["*.pth"], None, NOTHING),
    ),
    "a callback that comes with a star, through a module of the script's": (
        {
            "train.py": "from model import *\nModelCheckpoint('unet.hdf5', save_best_only=True)\n",
            "model.py": "from keras.callbacks import ModelCheckpoint\n",
        },
        (".", ["unet.hdf5"], None, NOTHING),
    ),
    "DeepSpeed's folder, which a flag names": (
        {
            "train.py": "import argparse, deepspeed\np = argparse.ArgumentParser()\np.add_argument('--load_dir')\n"
            "a = p.parse_args()\nif a.load_dir:\n    engine.load_checkpoint(load_dir=a.load_dir)\n"
            "engine.save_checkpoint('kept', tag)\n"
        },
        ("kept", None, ["--load_dir", "kept"], "which names the folder"),
    ),
    "a main that its library calls, and a Saver of self's": (
        {
            "train.py": "import tensorflow as tf\nflags = tf.app.flags\nflags.DEFINE_string('out', 'kept', '')\n"
            "class Model:\n    def __init__(self):\n        self.saver = tf.train.Saver()\n"
            "    def train(self, config):\n        self.saver.save(self.s, config.out + '/m', global_step=1)\n"
            "def main(_):\n    Model().train(flags.FLAGS)\nif __name__ == '__main__':\n    tf.app.run()\n"
        },
        ("kept", ["m-*", "checkpoint"], None, NOTHING),
    ),
    "functions that nobody is seen to call": (
        {
            "train.py": f"{TORCH}class Trainer:\n    def __init__(self, folder):\n        self.folder = folder\n"
            f"    def on_epoch(self):\n        {STATE}self.folder + '/m.pt')\n"
            "def build(folder='kept'):\n    register(Trainer(folder))\n"
        },
        ("kept", ["m.pt"], None, NOTHING),
    ),
    "a mean of what is counted is no folder": (
        {
            "train.py": f"{TORCH}def test(loader):\n    total, n = 0.0, 0\n    for each in loader:\n        n += 1\n"
            f"        total = loss(each)\n    return total / n\n{MODEL}f'kept/e-{{test(data)}}.pth')\n"
        },
        ("kept", ["e-*.pth"], None, NOTHING),
    ),
    "a count that stands in a dict": (
        {
            "train.py": f"{TORCH}s = {{'n': 0}}\nfor each in data:\n    s['n'] += 1\n    if s['n'] % 10 == 0:\n"
            f"        {MODEL}f'kept/{{s[\"n\"]:06d}}.pth')\n"
        },
        ("kept", ["*.pth"], None, NOTHING),
    ),
    "a model within a library's wrapper": (
        {
            "train.py": f"{TORCH}class Net(torch.nn.Module):\n    def keep(self, n):\n"
            f"        {MODEL}f'kept/{{n}}.pth')\n"
            "class Trainer:\n    def __init__(self):\n        self.net = torch.nn.DataParallel(Net())\n"
            "        self.one = self.net.module\n    def save(self, n):\n        self.one.keep(n)\nTrainer().save(1)\n"
        },
        ("kept", ["*.pth"], None, NOTHING),
    ),
    "names of a module that an object has": (
        {
            "train.py": f"{TORCH}import conf\nclass Settings:\n    def __init__(self):\n"
            f"        for each in dir(conf):\n            setattr(self, each, getattr(conf, each))\n"
            f"s = Settings()\n{MODEL}s.KEPT_IN + '/m.pt')\n",
            "conf.py": "KEPT_IN = 'kept'\n",
        },
        ("kept", ["m.pt"], None, NOTHING),
    ),
    "a setting of None that is merged into others": (
        {
            "train.py": f"{TORCH}from easydict import EasyDict\nc = EasyDict(out='x')\nc.update(EasyDict(out=None))\n"
            f"if c.out is None:\n    c.out = os.path.join('kept', 'a')\n{MODEL}os.path.join(c.out, 'm.pt'))\n"
        },
        ("kept/a", ["m.pt"], None, NOTHING),
    ),
    "a flag of which nothing is seen": (
        {
            "train.py": f"{TORCH}p.add_argument('--reload_checkpoint', default='')\na = p.parse_args()\n"
            f"path = 'kept/m.pt'\nif not os.path.isfile(path):\n    if a.reload_checkpoint == '':\n        leave()\n"
            f"    else:\n        path = a.reload_checkpoint\n{STATE}f'kept/{{n}}.pt')\n"
        },
        ("kept", ["*.pt"], None, "name it with --resume-arg"),
    ),
    "the first of a flag that may have several": (
        {
            "train.py": f"{TORCH}p.add_argument('--base', nargs='*', default='a/conf.yaml')\na = p.parse_args()\n"
            f"name = os.path.splitext(os.path.split(a.base[0])[-1])[0]\n{MODEL}f'kept/{{name}}.pt')\n"
        },
        ("kept", ["conf.pt"], None, NOTHING),
    ),
    "a parser that a file may replace, and a folder that is to be written over": (
        {
            "train.py": "import sys, os\nfrom transformers import HfArgumentParser, TrainingArguments, Trainer\n"
            "from transformers.trainer_utils import get_last_checkpoint\nq = HfArgumentParser(TrainingArguments)\n"
            "if sys.argv[1].endswith('.json'):\n    (t,) = q.parse_json_file(sys.argv[1])\n"
            "else:\n    (t,) = q.parse_args_into_dataclasses()\nlast = None\n"
            "if os.path.isdir(t.output_dir) and not t.overwrite_output_dir:\n"
            "    last = get_last_checkpoint(t.output_dir)\n"
            "Trainer(args=t).train(resume_from_checkpoint=t.resume_from_checkpoint or last)\n"
        },
        ("out", None, ["--resume_from_checkpoint", "{newest}"], "is given it by the script's parser"),
    ),
    "DeepSpeed, called by a function of the same name": (
        {
            "train.py": "import deepspeed\ndef save_checkpoint(step, model):\n    model.save_checkpoint('kept', step)\n"
            "save_checkpoint(1, engine)\n"
        },
        ("kept", None, None, "every restart begins anew"),
    ),
    "a whole model of Keras, beside weights": (
        {
            "train.py": "import argparse, keras\np = argparse.ArgumentParser()\np.add_argument('--weights')\n"
            "p.add_argument('--snapshot')\na = p.parse_args()\nif a.snapshot is not None:\n"
            "    m = keras.models.load_model(a.snapshot)\nelif a.weights:\n    m.load_weights(a.weights)\n"
            "keras.callbacks.ModelCheckpoint('kept/{epoch:02d}.h5')\n"
        },
        ("kept", ["*.h5"], ["--snapshot", "{newest}"], "line 4 declares --snapshot"),
    ),
    "a flag that is true or false, and flags that number the file": (
        {
            "train.py": f"{TORCH}p.add_argument('--r', dest='resume', type=bool, default=False)\n"
            "p.add_argument('--checkepoch', type=int, default=1)\na = p.parse_args()\nif a.resume:\n"
            "    name = os.path.join('kept', 'm_{}.pth'.format(a.checkepoch))\n    torch.load(name)\n"
            f"{STATE}'kept/m_{{}}.pth'.format(n))\n"
        },
        ("kept", ["m_*.pth"], None, "--r, which is True or False, and which file --checkepoch say"),
    ),
    "a flag that is true or false": (
        {
            "train.py": f"{TORCH}p.add_argument('--resume', type=str2bool, default=False)\na = p.parse_args()\n"
            f"if a.resume:\n    torch.load('kept/m.pth')\n{STATE}'kept/m.pth')\n"
        },
        ("kept", ["m.pth"], ["--resume", "True"], "--resume, which is True or False"),
    ),
    "settings that all flags go into": (
        {
            "train.py": f"{TORCH}import yaml\np.add_argument('--out', default='kept')\na = p.parse_args()\n"
            f"c = yaml.safe_load(open('c.yaml'))\nc.update(vars(a))\n{STATE}os.path.join(c['out'], 'm.pt'))\n",
            "c.yaml": "steps: 1\n",
        },
        ("kept", ["m.pt"], None, NOTHING),
    ),
    "a word that changes a file of settings": (
        {
            "train.py": f"{TORCH}import json\np.add_argument('-c', '--config')\np.add_argument('-p', nargs='+')\n"
            f"a = p.parse_args()\nc = json.load(open(a.config))\n{STATE}c['train']['out'] + '/m.pt')\n",
            "c.json": '{"train": {"out": "/elsewhere"}}',
        },
        ("kept", ["m.pt"], None, NOTHING),
    ),
    "settings in TOML": (
        {
            "train.py": f"{TORCH}import tomli\np.add_argument('-c')\na = p.parse_args()\n"
            f"with open('c.toml', 'rb') as f:\n    c = tomli.load(f)\n{STATE}c['out'] + '/m.pt')\n",
            "c.toml": 'out = "kept"\n',
        },
        ("kept", ["m.pt"], None, NOTHING),
    ),
}


@pytest.fixture
def read(argosy, tmp_path):
    """What init writes for these files, and what it says."""

    def call(files: dict[str, str], *argv: str) -> tuple[int, dict, str]:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        code, out, err = argosy("init", "train.py", "--force", *argv)
        return code, {} if code else tomllib.loads((tmp_path / "run.toml").read_text()), out + err

    return call


@pytest.mark.parametrize("name", CASES)
def test_what_it_writes(name: str, read) -> None:
    files, (folder, include, resume, words) = CASES[name]
    argv = ["--", "-c", "c.json", "-p", "train.out=kept"] if "c.json" in files else []
    argv += (
        ["--", "--output_dir", "out", "--overwrite_output_dir"] if "overwrite_output_dir" in files["train.py"] else []
    )
    code, found, said = read(files, *argv)
    assert code == 0, said
    kept = found["checkpoint"]
    assert (kept["path"], kept.get("include"), kept.get("resume_args")) == (folder, include, resume), said
    assert words in said
    assert "not kept" not in said


def test_a_group_of_one_is_no_count_of_ranks(read) -> None:
    script = "import torch.distributed as dist, torch, accelerate\nif not dist.is_initialized():\n"
    script += "    dist.init_process_group(world_size=1, rank=0, store=dist.HashStore())\n"
    script += f"acc = accelerate.Accelerator()\n{STATE}'kept/m.pt')\n"
    _, found, said = read({"train.py": script})
    assert found["gang"] == {"nnodes": 2, "nproc_per_node": 2}, said
    assert "line 4 uses Accelerator" in said


REFUSED = {
    "DeepSpeed in a folder of its own each time": (
        "import argparse, deepspeed, datetime\np = argparse.ArgumentParser()\np.add_argument('--load_dir')\n"
        "a = p.parse_args()\nfolder = 'exp/' + datetime.datetime.now().isoformat()\n"
        "if a.load_dir:\n    engine.load_checkpoint(load_dir=a.load_dir)\nengine.save_checkpoint(folder, tag)\n",
        "--resume-arg=--load_dir --resume-arg=FOLDER, which goes on from it",
    ),
    "a save that a setting keeps it from": (
        f"{TORCH}class Args:\n    save: bool = False\nargs = Args()\nif args.save:\n    {STATE}f'o/{{n}}.pt')\n",
        "does not come to what it saves as its flags and settings are (line 7): line 4 has `save: bool = False`; write "
        "True there, and call argosy init again",
    ),
    "what no Python of today reads": ("x.cuda(async=True)\n", "name a .py file that it can run"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_refuses(name: str, read) -> None:
    script, words = REFUSED[name]
    code, _, said = read({"train.py": script})
    assert (code, words in said) == (2, True), said


def test_a_switch_of_hydra_is_said_as_hydra_has_it(read, tmp_path) -> None:
    script = "import hydra, torch\n@hydra.main(config_path='.', config_name='c')\ndef main(cfg):\n"
    script += f"    if cfg.save_snapshot:\n        {STATE}'snapshot.pt')\nmain()\n"
    code, _, said = read({"train.py": script, "c.yaml": "save_snapshot: false\n"})
    assert (code, "`argosy init train.py -- save_snapshot=VALUE`" in said) == (2, True), said


def test_a_setting_that_the_script_fills_in_is_not_asked_for(read) -> None:
    script = "import hydra, torch\n@hydra.main(config_path='.', config_name='c')\ndef main(cfg):\n"
    script += f"    cfg.work_dir = make(cfg)\n    again = remade(cfg)\n    {STATE}again.work_dir / 'm.pt')\nmain()\n"
    code, _, said = read({"train.py": script, "c.yaml": "work_dir: ???\n"})
    assert (code, "work_dir=VALUE" in said) == (2, False), said


def test_a_rank_of_an_older_launcher_is_none_of_the_group(read) -> None:
    script = f"{TORCH}import torch.distributed as dist\np.add_argument('--local_rank', type=int, default=-1)\n"
    script += "a = p.parse_args()\ndist.init_process_group('nccl', world_size=n(), rank=a.local_rank)\n"
    _, found, said = read({"train.py": f"{script}{STATE}'kept/m.pt')\n"})
    assert (found["gang"], found["args"]) == ({"nnodes": 1, "nproc_per_node": 2}, [r"--local_rank=$\{local_rank}"])
    assert "line 6 takes the rank on its node for that in the group: one node only" in said


def test_a_variable_in_a_function_that_is_not_called_says_nothing(read) -> None:
    script = f"{TORCH}def backup():\n    return os.environ.get('TMP_OUTPUT_PATH')\n{STATE}asked()['x'])\n"
    code, _, said = read({"train.py": script})
    assert (code, "TMP_OUTPUT_PATH" in said) == (2, False), said
