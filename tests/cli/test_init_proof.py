"""init claims what it saw: what is saved, what a restart asks of it, who starts the ranks."""

from __future__ import annotations

import pytest

PARSER = "import argparse, glob, json, os, torch\np = argparse.ArgumentParser()\n"
PARSED = "args = p.parse_args()\n"
RESUME = f"{PARSER}p.add_argument('--resume')\n{PARSED}if args.resume:\n    state = torch.load(args.resume)\n"
STATE = "torch.save({'epoch': 1, 'optimizer': o}, "
LOADS = "    state = torch.load('o/1.pt')\n    o.load_state_dict(state['optimizer'])\n"
LIGHTNING = "import os\nimport pytorch_lightning as pl\nfor part in ['a', 'b']:\n    trainer = pl.Trainer()\n"

WRITTEN = {
    "a key that is asked for only if it is there": (
        f"{RESUME}    n = state['iter'] if 'iter' in state else 0\n{STATE}'o/m.pt')\n",
        [],
        (["m.pt"], ["--resume", "o/m.pt"], ""),
    ),
    "a key of a dict that gets more of them": (
        f"{RESUME}    n = state['iter']\nkept = {{'epoch': 1}}\nkept['iter'] = 2\ntorch.save(kept, 'o/m.pt')\n",
        [],
        (["m.pt"], ["--resume", "o/m.pt"], ""),
    ),
    "a key that is asked for only if another is not there": (
        f"{RESUME}    n = state['epoch'] if 'epoch' in state else state['iter']\n{STATE}'o/m.pt')\n",
        [],
        (["m.pt"], ["--resume", "o/m.pt"], ""),
    ),
    "a key that a function puts into the dict that it is given": (
        f"{RESUME}    n = state['iter']\nkept = {{'epoch': 1}}\nadd(kept)\ntorch.save(kept, 'o/m.pt')\n",
        [],
        (["m.pt"], ["--resume", "o/m.pt"], ""),
    ),
    "a state for each of what is made above": (
        f"{PARSER}p.add_argument('--resume')\n{PARSED}def main():\n    if args.resume:\n"
        "        kept = torch.load(args.resume)['optimizer']\n"
        "        [\n            m.load_state_dict(s)\n            for m, s in zip(ms, kept)\n        ]\n"
        f"    {STATE}'o/m.pt')\nmain()\n",
        [],
        (["m.pt"], ["--resume", "o/m.pt"], "declares --resume with a value\n"),
    ),
    "a state for what is imported above, and wrapped below": (
        f"{PARSER}p.add_argument('--resume')\n{PARSED}def main():\n    from nets import net\n    if args.resume:\n"
        "        net.load_state_dict(torch.load(args.resume)['optimizer'])\n    net = DataParallel(net)\n"
        f"    {STATE}'o/m.pt')\nmain()\n",
        [],
        (["m.pt"], ["--resume", "o/m.pt"], "declares --resume with a value\n"),
    ),
    "a model's weights under a name that says nothing, beside a measure": (
        f"{PARSER}sd = net.state_dict()\ntorch.save({{'sd': sd, 'best_acc': best_acc}}, 'o/m.pt')\n",
        [],
        (["m.pt"], None, ""),
    ),
    "whole models under a letter each, beside a measure": (
        f"{PARSER}opt = Adam([*G.parameters()])\ntorch.save({{'G': G, 'loss': loss}}, 'o/m.pt')\n",
        [],
        (["m.pt"], None, ""),
    ),
    "a switch that turns its resume off is not the one that makes it go on": (
        f"{PARSER}p.add_argument('--resume', action='store_true', default=True)\n"
        f"p.add_argument('--no-resume', dest='resume', action='store_false')\n{PARSED}if args.resume:\n{LOADS}"
        f"{STATE}'o/1.pt')\n",
        [],
        (["1.pt"], ["--resume"], ""),
    ),
    "what is made once, in a function of its own, is no checkpoint": (
        f"{PARSER}def keep(x, path):\n    torch.save(x, path)\n"
        f"if not os.path.exists('data/x.pt'):\n    keep(x, 'data/x.pt')\n{STATE}'o/m.pt')\n",
        [],
        (["m.pt"], None, "every restart may begin anew"),
    ),
    "the last among those that are numbered": (
        f"{RESUME}    o.load_state_dict(state['optimizer'])\nfor n in range(9):\n"
        f"    if n % 4 == 0:\n        {STATE}f'o/checkpoint-{{n}}.pth')\n    {STATE}'o/checkpoint-last.pth')\n",
        [],
        (["checkpoint-*.pth"], ["--resume", "{newest}"], ""),
    ),
    "the first letters of a flag": (
        f"{PARSER}p.add_argument('--experiment', required=True)\n{PARSED}{STATE}f'o/{{args.experiment}}.pt')\n",
        ["--", "--exp", "a"],
        (["a.pt"], None, "every restart may begin anew"),
    ),
    "a library's learn with the lines that init gave": (
        "import glob, os\nfrom stable_baselines3.common.callbacks import CheckpointCallback\n"
        "from stable_baselines3 import PPO\nm = PPO('MlpPolicy', env)\n"
        "found = sorted(glob.glob('out/*_steps.zip'), key=os.path.getmtime)\nif found:\n"
        "    m = PPO.load(found[-1], env=m.get_env())\n"
        "m.learn(9, callback=[CheckpointCallback(save_freq=10_000, save_path='out')], reset_num_timesteps=False)\n",
        [],
        (["*_steps.zip"], None, "line 5 looks for it and goes on by itself"),
    ),
    "ultralytics with the lines that init gave": (
        "import os\nfrom ultralytics import YOLO\nmodel = YOLO('n.pt')\n"
        "newest = os.path.abspath('out/train/weights/last.pt')\ngoing_on = os.path.exists(newest)\n"
        "if going_on:\n    model = YOLO(newest)\n"
        "model.train(data='d', project=os.path.abspath('out'), name='train', exist_ok=True, resume=going_on)\n",
        [],
        (["*/weights/last.pt"], None, "line 5 looks for it and goes on by itself"),
    ),
    "a Trainer for each turn of a loop": (
        "import os\nimport pytorch_lightning as pl\nfrom pytorch_lightning.callbacks import ModelCheckpoint\n"
        "for part in ['a', 'b']:\n"
        "    trainer = pl.Trainer(callbacks=[ModelCheckpoint(dirpath=f'kept/{part}', save_last=True)])\n"
        "    last = f'kept/{part}/last.ckpt'\n    trainer.fit(m, ckpt_path=last if os.path.exists(last) else None)\n",
        [],
        (["*/*.ckpt"], None, ""),
    ),
    "Lightning's last, beside a copy of the best that may be newer": (
        "import argparse, pytorch_lightning as pl\nfrom pytorch_lightning.callbacks import ModelCheckpoint\n"
        f"p = argparse.ArgumentParser()\np.add_argument('--ckpt_path')\n{PARSED}"
        "saver = ModelCheckpoint(dirpath='kept', filename='best-{epoch}', save_last=True)\n"
        "pl.Trainer(callbacks=[saver]).fit(m, ckpt_path=args.ckpt_path)\n",
        [],
        (["*.ckpt"], ["--ckpt_path", "{newest:last*.ckpt}"], ""),
    ),
    "a path that is made of several parts": (
        f"from pathlib import Path\n{PARSER}kept = Path('o', 'run')\n{STATE}Path(kept, f'm_{{n}}.pt'))\n",
        [],
        (["m_*.pt"], None, 'path = "o/run"'),
    ),
    "settings that are asked for by their keys": (
        "import hydra, torch\n@hydra.main(config_path='.', config_name='c', version_base='1.2')\ndef main(cfg):\n"
        "    torch.save({'optimizer': o}, str(cfg.get('save_dir', 'other')) + '/m.pt')\nmain()\n",
        [],
        (["m.pt"], None, 'path = "kept"'),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_what_it_writes(name: str, initialized) -> None:
    script, argv, (include, resume, words) = WRITTEN[name]
    code, found, said = initialized({"train.py": script, "c.yaml": "save_dir: kept\n"}, *argv)
    assert code == 0, said
    assert (found["checkpoint"].get("include"), found["checkpoint"].get("resume_args")) == (include, resume), said
    assert words in said
    assert "requires" not in said
    assert "no parser seen takes" not in said


REFUSED = {
    "a Trainer for each turn of a loop gets a folder for each": (
        f"{LIGHTNING}    trainer.fit(m)\n",
        "ModelCheckpoint(dirpath=f'checkpoints/{part}', save_last=True)",
    ),
    "weights of Accelerate in a folder that lies outside": (
        "from accelerate import Accelerator\naccelerator = Accelerator()\naccelerator.save_model(m, '/data/out')\n"
        "accelerator.save_model(m, '/data/out')\n",
        "(line 3: /data/out); write a folder below that one there",
    ),
    "a flag that the script sets itself": (
        f"{PARSER}p.add_argument('--out-dir', default='')\n{PARSED}args.out_dir = '/data/runs'\n"
        f"{STATE}args.out_dir + '/m.pt')\n",
        "saves outside the folder that it runs in",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_refuses(name: str, initialized) -> None:
    script, words = REFUSED[name]
    code, _, said = initialized({"train.py": script})
    assert (code, words in said) == (2, True), said


def test_programs_that_are_told_their_rank_by_the_script_are_its_own_ranks(initialized) -> None:
    script = f"{PARSER}import subprocess, sys\nenv = os.environ.copy()\nif os.environ.get('WORLD_SIZE', '1') == '1':\n"
    script += "    env['RANK'] = '0'\n    subprocess.Popen(sys.argv, env=env)\n"
    script += f"torch.distributed.init_process_group('nccl')\n{STATE}'kept/m.pt')\n"
    _, found, said = initialized({"train.py": script})
    assert found["gang"] == {"nnodes": 1, "nproc_per_node": 1}, said


def test_a_name_of_a_setting_tells_no_rank(initialized) -> None:
    script = f"{PARSER}from torch.multiprocessing.spawn import spawn\nMUTABLE = ['RANK', 'DEVICE']\n"
    script += f"def work(rank):\n    torch.distributed.init_process_group('nccl')\n    {STATE}'kept/m.pt')\n"
    _, found, said = initialized({"train.py": f"{script}spawn(work, nprocs=2)\n"})
    assert found["gang"] == {"nnodes": 1, "nproc_per_node": 1}, said


def test_a_program_that_gets_the_scripts_own_variables_is_no_rank(initialized) -> None:
    script = f"{PARSER}import subprocess\nif 'RANK' not in os.environ:\n    os.environ['RANK'] = '0'\n"
    script += "subprocess.run(['git', 'describe'], env=os.environ)\n"
    script += f"torch.distributed.init_process_group('nccl')\n{STATE}'kept/m.pt')\n"
    _, found, said = initialized({"train.py": script})
    assert found["gang"]["nproc_per_node"] > 1, said
