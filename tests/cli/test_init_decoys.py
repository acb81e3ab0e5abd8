"""init on what is called as if it made a script go on, and does not do so alone."""

from __future__ import annotations

import pytest

PARSER = "import argparse, imp, os, torch, yaml\np = argparse.ArgumentParser()\n"
STATE = "torch.save({'epoch': n, 'optimizer': o}, "
SWITCH = f"{PARSER}p.add_argument('--resume', action='store_true')\np.add_argument('--model_path')\n"
LOADS = "    def set(self, path):\n        self.ckpt = torch.load(path)\n    def load(self, optimizer):\n"


@pytest.fixture
def read(initialized):
    """What init says of train.py, and the run.toml that it writes."""
    return lambda script, *argv, **files: initialized(
        {"train.py": script, **{name.replace("_", "."): text for name, text in files.items()}}, *argv
    )


def resumed(found) -> list[str] | None:
    return found["checkpoint"].get("resume_args")


def test_a_switch_brings_the_path_that_is_loaded_with_it(read) -> None:
    script = f"{SWITCH}args = p.parse_args()\nclass Loader:\n    resume = False\n{LOADS}"
    script += "        optimizer.load_state_dict(self.ckpt['opt_state'])\nloader = Loader()\nif args.resume:\n"
    script += f"    loader.set(args.model_path)\nloader.load(optimizer)\n{STATE}f'w/{{n}}.tar')\n"
    _, found, said = read(script)
    assert resumed(found) == ["--resume", "--model_path", "{newest}"], said


def test_a_switch_that_loads_what_nothing_saves_makes_nothing_go_on(read) -> None:
    script = f"{PARSER}p.add_argument('--auto_resume', action='store_true')\nargs = p.parse_args()\ndef begin():\n"
    script += "    path = None\n    if args.auto_resume:\n        path = os.path.join('w', f'{newest()}.state')\n"
    script += "    return None if path is None else torch.load(path)\nbegin()\n"
    _, found, said = read(f"{script}torch.save(net.state_dict(), f'w/net_{{n}}.pth')\n")
    assert resumed(found) is None
    assert "loads w/*.state, which nothing seen saves: every restart may begin anew" in said, said
    _, found, said = read(f"{script}{STATE}f'w/{{n}}.state')\n")
    assert resumed(found) == ["--auto_resume"], said


CONFIG = "NET: {pretrained: a.pth}\nTRAIN: {pretrained: '', resume: false}\n"
SET = "    optimizer.load_state_dict(torch.load(path)['optimizer'])\n"


def test_a_setting_is_called_by_its_whole_key_and_the_switch_beside_it_is_set(read) -> None:
    script = f"{PARSER}p.add_argument('--cfg')\ncfg = EasyDict(yaml.safe_load(open(p.parse_args().cfg)))\n"
    script += f"def load_model(path, resume):\n{SET}if os.path.isfile(cfg.TRAIN.pretrained):\n"
    script += f"    load_model(cfg.TRAIN.pretrained, resume=cfg.TRAIN.resume)\n{STATE}f'w/{{n}}.pt')\n"
    _, _, said = read(f"from easydict import EasyDict\n{script}", "--", "--cfg", "c.yaml", c_yaml=CONFIG)
    assert "goes on from what TRAIN.pretrained of c.yaml names" in said, said
    assert "cfg.TRAIN.pretrained = found[-1]\n            cfg.TRAIN.resume = True\n" in said


PARTS = """import layers
cfg = imp.load_source('c', 'c.py')
if cfg.net['resume_net'] is not None:
    net.load_state_dict(torch.load(cfg.net['resume_net']))
if cfg.more['resume'] is True:
    optimizer.load_state_dict(torch.load(cfg.more['resume_optimizer']))
for epoch in range(9):
    nets[0].train()
    loss.backward()
    optimizer.step()
    nets[0].module.save(f'w/net_{epoch}.pt')
    torch.save(optimizer.state_dict(), f'w/opt_{epoch}.pt')
"""
LAYERS = "    def save(self, path):\n        torch.save(self.state_dict(), path)\n"


def test_settings_that_each_name_a_part_are_all_told(read) -> None:
    layers = "import torch\n" + "".join(f"class {name}:\n{LAYERS}" for name in "ABCDE")
    settings = "net = {'resume_net': None}\nmore = {'resume': False, 'resume_optimizer': None}\n"
    _, found, said = read(PARSER + PARTS, layers_py=layers, c_py=settings)
    assert {*found["checkpoint"]["include"]} == {"net_*.pt", "opt_*.pt"}, said
    assert "and loads what cfg.net['resume_net'] name, too: a restart begins anew unless" in said, said
    assert ("cfg.more['resume'] is True" in said, "argosy.pt" in said) == (True, False)


NAMED = """import argparse, os, torch
def main():
    folder, turns = 'kept', 9
    p = argparse.ArgumentParser()
    p.add_argument('--dir', default=folder)
    p.add_argument('--epochs', type=int, default=turns)
    p.add_argument('--resume', action='store_true')
    argv = p.parse_args()
    epochs = argv.epochs
    path = os.path.join(argv.dir, 'net.pth')
    if argv.resume:
        net.load_state_dict(torch.load(path))
    for epoch in range(epochs):
        net.train()
        loss.backward()
        optimizer.step()
        torch.save(net.state_dict(), path)
main()
"""


def test_a_default_that_a_function_names_is_what_the_parser_was_given(read) -> None:
    _, found, said = read(NAMED)
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("kept", ["net.pth"]), said
    assert "counts from 0 whatever was loaded: a restart takes all turns again" in said


MANAGER = """import json, os, torch
class Manager:
    def __init__(self, path):
        self.states, self.stats = os.path.join(path, 'states'), os.path.join(path, 'stats')
    def save(self, thing, name):
        torch.save(thing.state_dict(), os.path.join(self.states, name) + '.pt')
    def load(self, thing, name):
        thing.load_state_dict(torch.load(os.path.join(self.states, name) + '.pt'))
    def count(self, epoch):
        with open(os.path.join(self.stats, 'of_%d.json' % epoch), 'w') as file:
            json.dump({}, file)
    def counted(self, epoch):
        with open(os.path.join(self.stats, 'of_%d.json' % epoch), 'rb') as file:
            return json.load(file)
"""


def test_a_switch_that_loads_what_is_saved_makes_it_go_on_with_what_lies_beside(read) -> None:
    script = (
        f"{PARSER}import manager, misc\np.add_argument('--load_model', action='store_true')\nargs = p.parse_args()\n"
    )
    script += (
        "kept = manager.Manager('w/a')\nif args.load_model:\n    kept.counted(3)\n    kept.load(optimizer, 'opt')\n"
    )
    script += "misc.rank()\nfor epoch in range(9):\n    kept.count(epoch)\n    kept.save(optimizer, 'opt')\n"
    other = "import torch\ndef rank(): pass\ndef load_model(args, optimizer):\n    if args.resume:\n"
    other += "        optimizer.load_state_dict(torch.load(args.resume))\n"
    _, found, said = read(script, manager_py=MANAGER, misc_py=other)
    assert (found["checkpoint"]["path"], resumed(found)) == ("w/a", ["--load_model"]), said
    assert found["checkpoint"]["include"] == ["states/opt.pt", "stats/of_*.json"]


def test_a_path_that_is_there_or_not_is_no_number(read) -> None:
    script = f"{PARSER}p.add_argument('--checkpoint_path')\nargs = p.parse_args()\n"
    script += "if args.checkpoint_path is not None:\n    net.load_state_dict(torch.load(args.checkpoint_path))\n"
    _, found, said = read(f"{script}torch.save(net.state_dict(), f'w/{{n}}.pt')\n")
    assert resumed(found) is None
    assert "no optimizer's state: a restart begins anew" in said, said


def test_a_script_that_ends_where_its_folder_is_there_is_refused(read) -> None:
    script = f"{PARSER}if os.path.exists('w/a'):\n    raise Exception('already there')\nos.makedirs('w/a')\n"
    code, _, said = read(f"{script}{STATE}f'w/a/kept/{{n}}.pt')\n")
    assert (code, "line 3 ends the script where w/a is there, as it is in a restart" in said) == (2, True), said


def test_a_script_that_ends_there_only_where_it_begins_anew_is_taken(read) -> None:
    script = f"{PARSER}p.add_argument('--resume')\nargs = p.parse_args()\nif not args.resume:\n"
    script += "    if os.path.exists('w/a'):\n        raise Exception('already there')\n    os.makedirs('w/a')\n"
    script += "else:\n    kept = torch.load(args.resume)\n    opt.load_state_dict(kept['optimizer'])\n"
    _, found, said = read(f"{script}{STATE}f'w/a/{{n}}.pt')\n")
    assert resumed(found) == ["--resume", "{newest}"], said


def test_arguments_that_keep_a_resume_from_its_optimizer_are_told(read) -> None:
    script = f"{PARSER}p.add_argument('--resume')\np.add_argument('--from_begin', action='store_true')\n"
    script += "args = p.parse_args()\nif args.resume:\n    state = torch.load(args.resume)\n"
    script += "    net.load_state_dict(state['net'])\n    if not args.from_begin:\n"
    script += f"        optimizer.load_state_dict(state['optimizer'])\n{STATE}f'w/{{n}}.pt')\n"
    _, _, said = read(script, "--", "--resume", "a.pt", "--from_begin")
    assert "only if not args.from_begin: as the arguments are, a restart begins anew with that model" in said, said
    assert "begins anew" not in read(script, "--", "--resume", "a.pt")[2]


def test_a_number_that_keeps_a_script_from_its_group_of_ranks_is_compared(read) -> None:
    script = f"{PARSER}p.add_argument('--use_ddp', type=int, default=0)\nargs = p.parse_args()\n"
    script += "if torch.cuda.device_count() > 1 and args.use_ddp == 1:\n"
    script += f"    torch.distributed.init_process_group('nccl')\n{STATE}f'w/{{n}}.pt')\n"
    _, found, said = read(script)
    assert found["gang"] == {"nnodes": 1, "nproc_per_node": 1}
    assert "only if torch.cuda.device_count() > 1 and args.use_ddp == 1: one process" in said
    assert read(script, "--", "--use_ddp", "1")[1]["gang"] == {"nnodes": 2, "nproc_per_node": 2}


def test_a_flag_that_comes_before_where_it_saves_otherwise_is_named(read) -> None:
    script = f"{PARSER}import tempfile\np.add_argument('--checkpoint')\nargs = p.parse_args()\n"
    script += "def save(path):\n    torch.save(net.state_dict(), path)\n"
    script += "path = args.checkpoint or os.path.join(tempfile.gettempdir(), 'net.pt')\nsave(path)\n"
    code, _, said = read(script)
    assert (code, "argosy init train.py -- --checkpoint out/model.pt" in said) == (2, True), said
