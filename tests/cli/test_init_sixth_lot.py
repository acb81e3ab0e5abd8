"""init on habits of a sixth lot of well-known programs, one way of writing it down a test."""

from __future__ import annotations

TORCH = "import argparse, os, torch\np = argparse.ArgumentParser()\n"
STATE = 'torch.save({"epoch": 1, "optim": o}, '


def test_a_numbered_state_that_is_not_written_twice_is_no_file_that_is_made_once(initialized) -> None:
    save = "    path = os.path.join('kept', 'model_step_%d.pt' % step)\n    if not os.path.exists(path):\n"
    save += f"        {STATE}path)\n"
    script = f"{TORCH}p.add_argument('-train_from', default='')\na = p.parse_args()\nif a.train_from != '':\n"
    script += "    optimizer.load_state_dict(torch.load(a.train_from)['optim'])\n"
    _, found, said = initialized(
        {"train.py": f"{script}def save(step):\n{save}for step in range(9):\n    save(step)\n"}
    )
    assert found["checkpoint"]["include"] == ["model_step_*.pt"], said
    assert found["checkpoint"]["resume_args"] == ["-train_from", "{newest}"], said


def test_an_initial_state_that_is_made_once_is_no_checkpoint(initialized) -> None:
    once = f"if not os.path.exists('first.pt'):\n    {STATE}'first.pt')\n"
    _, found, said = initialized({"train.py": f"{TORCH}{once}for n in range(9):\n    {STATE}f'kept/{{n}}.pt')\n"})
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("kept", ["*.pt"]), said


def test_hydra_changes_the_folder_where_its_settings_say_so(initialized) -> None:
    script = "import hydra, torch\n@hydra.main(version_base='1.3', config_path='conf', config_name='main')\n"
    script += f"def main(cfg):\n    {STATE}'kept/last.pt')\nif __name__ == '__main__':\n    main()\n"
    settings = "name: x\nhydra:\n  job:\n    chdir: {}\n  run:\n    dir: ../outputs/${{now:%H}}\n"
    for says, words, moves in (("True", (), True), ("False", (), False), ("False", ("hydra.job.chdir=True",), True)):
        files = {"train.py": script, "conf/main.yaml": settings.format(says)}
        _, found, said = initialized(files, *(["--", *words] if words else []))
        assert ("hydra.run.dir=." in found.get("args", [])) == moves, said
        assert found["checkpoint"]["path"] == "kept", said


def test_of_several_trainers_of_lightning_the_one_that_fits(initialized) -> None:
    script = "import argparse, lightning as L\ndef test():\n    trainer = L.Trainer(devices=7)\n    trainer.test(m)\n"
    script += "def train():\n    trainer = L.Trainer(max_epochs=3)\n    trainer.fit(m)\n"
    script += "p = argparse.ArgumentParser()\np.add_argument('mode')\na = p.parse_args()\n"
    script += "if a.mode == 'test':\n    test()\nelif a.mode == 'train':\n    train()\n"
    for words in ((), ("--", "train")):
        code, _, said = initialized({"train.py": script}, *words)
        assert (code, "line 6: L.Trainer(max_epochs=3, callbacks=" in said, "devices=7" in said) == (2, True, False), (
            said
        )


def test_the_command_of_a_parser_with_several_is_known(initialized) -> None:
    script = (
        f"{TORCH}several = p.add_subparsers(dest='mode')\nseveral.add_parser('train')\nseveral.add_parser('mean')\n"
    )
    script += f"a = p.parse_args()\nif a.mode == 'train':\n    {STATE}'kept/last.pt')\n"
    script += f"elif a.mode == 'mean':\n    {STATE}'mean.pt')\n"
    _, found, said = initialized({"train.py": script}, "--", "train")
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("kept", ["last.pt"]), said
    assert "mean.pt" not in said


def test_what_a_value_of_pythons_own_has_is_known(initialized) -> None:
    script = "import torch, yaml\nclass Below(dict):\n    def __init__(self, table):\n"
    script += "        for key, value in table.items():\n            if hasattr(value, 'keys'):\n"
    script += "                value = Below(value)\n            self[key] = value\n"
    script += "    __getattr__ = dict.__getitem__\n"
    script += f"cfg = Below(yaml.safe_load(open('c.yaml')))\n{STATE}cfg.log.folder + '/last.pt')\n"
    _, found, said = initialized({"train.py": script, "c.yaml": "log: {folder: kept}"})
    assert (found["checkpoint"]["path"], "or elsewhere" in said) == ("kept", False), said


def test_accelerates_objects_are_what_it_was_given(initialized) -> None:
    script = "import torch\nfrom accelerate import Accelerator\nclass Net(torch.nn.Module):\n"
    script += "    def save_model(self, path):\n        torch.save(self.state_dict(), path)\n"
    script += "accelerator = Accelerator()\nnet = Net()\nnet, opt = accelerator.prepare(net, opt)\n"
    script += "for n in range(9):\n    accelerator.unwrap_model(net).save_model(f'kept/model_{n}.pkl')\n"
    _, found, said = initialized({"train.py": script})
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("kept", ["model_*.pkl"]), said


def test_a_flag_with_the_path_of_a_state_dict_names_what_a_start_begins_with(initialized) -> None:
    script = f"{TORCH}p.add_argument('--state_dict_path', default=None)\na = p.parse_args()\n"
    script += "if a.state_dict_path is not None:\n    net.load_state_dict(torch.load(a.state_dict_path))\n"
    script += "for n in range(9):\n    torch.save(net.state_dict(), f'kept/{n}.pth')\n"
    _, _, said = initialized({"train.py": script})
    assert "loads what --state_dict_path names, but no optimizer's state" in said
    assert "--resume-arg=--state_dict_path --resume-arg='{newest}'" in said


def test_what_goes_on_by_itself_with_the_model_alone_is_told_so(initialized) -> None:
    script = f"{TORCH}opt = torch.optim.Adam(net.parameters())\ntry:\n    state = torch.load('kept/last.pt')\n"
    script += "    start = state['epoch']\n    net.load_state_dict(state['model'])\nexcept Exception:\n    start = 0\n"
    script += "for epoch in range(start, 9):\n    loss.backward()\n    opt.step()\n"
    script += "    torch.save({'epoch': epoch, 'model': net.state_dict()}, 'kept/last.pt')\n"
    _, found, said = initialized({"train.py": script})
    assert "goes on by itself; but nothing seen loads an optimizer's state, which begins anew" in said
    assert "resume_args" not in found["checkpoint"]


def test_what_an_object_asks_its_table_for_by_name_is_found(initialized) -> None:
    script = "import os, torch\nfrom yacs.config import CfgNode as CN\nclass Config:\n    def __init__(self, path):\n"
    script += "        self._c = CN()\n        self._c.TRAIN = CN()\n        self._c.TRAIN.OUT = 'o'\n"
    script += "        self._c.merge_from_file(path)\n    def __getattr__(self, name):\n"
    script += f"        return self._c.__getattr__(name)\nopt = Config('c.yml')\n{STATE}opt.TRAIN.OUT + '/last.pt')\n"
    _, found, said = initialized({"train.py": script, "c.yml": "TRAIN: {OUT: ./kept}"})
    assert found["checkpoint"]["path"] == "kept", said


def test_a_trainer_of_lightnings_that_flags_make_saves_below_its_loggers_folder(initialized) -> None:
    script = "import argparse\nfrom pathlib import Path\nimport pytorch_lightning as pl\n"
    script += "from pytorch_lightning.callbacks import ModelCheckpoint\n"
    script += "from pytorch_lightning.loggers import TensorBoardLogger\np = argparse.ArgumentParser()\n"
    script += "p.add_argument('--ckpt_path', help='weights')\np = pl.Trainer.add_argparse_args(p)\na = p.parse_args()\n"
    script += "logger = TensorBoardLogger(save_dir='logs/tb', name='x')\n"
    script += "saver = ModelCheckpoint(dirpath=str(Path(logger.log_dir) / 'checkpoints'), filename='{epoch}')\n"
    script += "pl.Trainer.from_argparse_args(a, callbacks=[saver], logger=logger).fit(Net(a.ckpt_path))\n"
    _, found, said = initialized({"train.py": script}, "--", "--gpus=4")
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == (
        "logs",
        ["tb/x/version_*/checkpoints/*.ckpt"],
    ), said
    assert found["checkpoint"]["resume_args"] == ["--resume_from_checkpoint", "{newest}"], said
    assert found["gang"]["nproc_per_node"] == 4


def test_a_text_that_is_evaluated_ends_no_reading(initialized) -> None:
    script = f"{TORCH}p.add_argument('--net', default='Net()')\na = p.parse_args()\nclass Net:\n    pass\n"
    script += (
        "net = eval(a.net)\nfor n in range(9):\n    net.train()\ntorch.save({'net': net.state_dict()}, 'kept/m.pt')\n"
    )
    _, found, said = initialized({"train.py": script})
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("kept", ["m.pt"]), said


def test_strftime_of_a_text_without_a_time_is_that_text(initialized) -> None:
    script = f"import time\n{TORCH}p.add_argument('--out', default='./kept')\na = p.parse_args()\n"
    script += f"out = time.strftime(a.out, time.localtime()) + '/'\n{STATE}out + 'weights/last.pt')\n"
    _, found, said = initialized({"train.py": script})
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("kept/weights", ["last.pt"]), said
    _, _, said = initialized({"train.py": script}, "--", "--out", "kept-%H")
    assert "kept/weights" not in said


def test_a_count_that_goes_on_from_what_was_loaded_is_not_said_to_begin_anew(initialized) -> None:
    script = f"{TORCH}p.add_argument('--resume', default='')\na = p.parse_args()\nepoch = 0\nif a.resume:\n"
    script += "    state = torch.load(a.resume)\n    opt.load_state_dict(state['optim'])\n    epoch = state['epoch']\n"
    script += "for e in range(9):\n    {}loss.backward()\n    opt.step()\n    " + STATE + "'kept/last.pt')\n"
    for turn, told in (("e = epoch + e\n    ", False), ("", True)):
        _, _, said = initialized({"train.py": script.replace("{}loss", f"{turn}loss")})
        assert ("counts from 0 whatever was loaded" in said) == told, said


def test_a_restart_that_reads_what_nothing_writes_is_told(initialized) -> None:
    script = f"{TORCH}p.add_argument('--resume', default=None)\na = p.parse_args()\nif a.resume is not None:\n"
    script += "    net.load_state_dict(torch.load(os.path.join(a.resume, 'flow.npy')))\n"
    script += "    optim.load_state_dict(torch.load(os.path.join(a.resume, 'optim.npy')))\n"
    script += "for n in range(9):\n    torch.save({NET}, 'kept/net.npy')\n"
    script += "    torch.save(optim.state_dict(), 'kept/optim.npy')\n"
    ends = "reads kept/flow.npy, which nothing was seen to write"
    _, _, said = initialized({"train.py": script.replace("{NET}", "net.state_dict()")})
    assert ends in said
    _, _, said = initialized({"train.py": script.replace("{NET}", "net.state_dict()").replace("net.npy", "flow.npy")})
    assert ends not in said


def test_settings_of_a_default_that_another_file_was_given_for_are_not_told(initialized) -> None:
    script = f"{TORCH}import json\np.add_argument('-c', '--config', default='a.json')\na = p.parse_args()\n"
    script += "cfg = json.load(open(a.config))\nif cfg['path']['resume_state']:\n"
    script += "    torch.load(cfg['path']['resume_state'])\n"
    script += f"for n in range(9):\n    {STATE}cfg['path']['out'] + '/last.pt')\n"
    table = '{"path": {"resume_state": null, "out": "kept"}}'
    _, _, said = initialized({"train.py": script, "a.json": table, "b.json": table}, "--", "-c", "b.json")
    assert ("resume_state of b.json" in said, "a.json" in said) == (True, False), said


def test_what_an_object_is_set_by_its_own_setattr_is_known(initialized) -> None:
    script = "import os, torch\nfrom ruamel.yaml import YAML\nclass Params:\n    def __init__(self, path, name):\n"
    script += "        self.params = {}\n        with open(path) as file:\n"
    script += (
        "            for key, value in YAML().load(file)[name].items():\n                self.params[key] = value\n"
    )
    script += "                self.__setattr__(key, value)\n    def __setitem__(self, key, value):\n"
    script += "        self.params[key] = value\n        self.__setattr__(key, value)\n"
    script += "params = Params('c.yaml', 'small')\nparams['path'] = os.path.join(params.out, 'last.pt')\n"
    script += f"{STATE}params.path)\n"
    _, found, said = initialized({"train.py": script, "c.yaml": "large: {out: o}\nsmall: {out: kept}\n"})
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("kept", ["last.pt"]), said


def test_of_several_tables_with_one_value_the_one_that_an_argument_names_is_told(initialized) -> None:
    script = f"{TORCH}import yaml\np.add_argument('--name')\np.add_argument('--config')\na = p.parse_args()\n"
    script += f"cfg = yaml.safe_load(open(a.config))[a.name]\n{STATE}cfg['out'] + '/last.pt')\n"
    files = {"train.py": script, "c.yaml": "small: {out: /scratch/x}\nmuch_larger: {out: /scratch/x}\n"}
    _, _, said = initialized(files, "--", "--name", "small", "--config", "c.yaml")
    assert "line 8 saves where small.out of c.yaml says, which is /scratch/x" in said


def test_words_that_one_argument_takes_all_are_a_list(initialized) -> None:
    script = "import argparse, torch, yaml\np = argparse.ArgumentParser()\np.add_argument('--config')\n"
    script += "p.add_argument('opts', nargs=argparse.REMAINDER)\na = p.parse_args()\n"
    script += "cfg = yaml.safe_load(open(a.config))\nfor key, value in zip(a.opts[0::2], a.opts[1::2]):\n"
    script += f"    cfg[key] = value\n{STATE}cfg['save_path'] + '/last.pt')\n"
    _, found, said = initialized(
        {"train.py": script, "c.yaml": "save_path:\nlr: 1\n"}, "--", "--config=c.yaml", "save_path", "kept", "lr", "2"
    )
    assert (found["checkpoint"]["path"], "or elsewhere" in said) == ("kept", False), said


def test_what_stands_in_argv_is_known(initialized) -> None:
    script = "import importlib, sys, torch\nif len(sys.argv) == 2:\n"
    script += "    config = importlib.import_module('games.' + sys.argv[1]).Config()\n"
    script += f"    {STATE}config.out / 'last.pt')\n"
    files = {
        "games/go.py": "import pathlib\nclass Config:\n    def __init__(self):\n        self.out = pathlib.Path('go')\n"
    }
    files |= {"games/chess.py": files["games/go.py"].replace("'go'", "'chess'"), "games/__init__.py": ""}
    _, found, said = initialized({"train.py": script, **files}, "--", "go")
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("go", ["last.pt"]), said


def test_what_rays_actors_are_asked_is_come_to(initialized) -> None:
    script = "import ray, torch\n@ray.remote\nclass Store:\n    def __init__(self, folder):\n"
    script += "        self.folder = folder\n"
    script += f"    def save(self):\n        {STATE}self.folder + '/last.pt')\n@ray.remote\nclass Learner:\n"
    script += "    def learn(self, store):\n        store.save.remote()\nstore = Store.remote('kept')\n"
    script += "learner = Learner.options(num_cpus=0).remote()\nlearner.learn.remote(store)\n"
    script += f"def search():\n    {STATE}'search/last.pt')\n"
    _, found, said = initialized({"train.py": script})
    assert (found["checkpoint"]["path"], "search" in said) == ("kept", False), said


def test_the_scripts_own_name_in_argv_is_not_empty(initialized) -> None:
    script = (
        f"import os, sys, torch\nout = os.path.join('runs', os.path.basename(sys.argv[0]))\n{STATE}out + '/a.pt')\n"
    )
    _, found, said = initialized({"train.py": script}, "--", "--lr", "3")
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("runs", ["*/a.pt"]), said


def test_what_takes_all_words_leaves_those_behind_it_one_each(initialized) -> None:
    script = f"{TORCH}p.add_argument('data', nargs='+')\np.add_argument('out')\np.add_argument('more', nargs='?')\n"
    _, found, said = initialized(
        {"train.py": f"{script}a = p.parse_args()\n{STATE}a.out + '/a.pt')\n"}, "--", "x", "y", "kept"
    )
    assert found["checkpoint"]["path"] == "kept", said


def test_a_trainer_has_as_many_ranks_as_its_flag_says(initialized) -> None:
    """One was written; Lightning refuses a number of devices that is not torchrun's."""
    script = "import argparse, lightning as L\nfrom lightning.pytorch.callbacks import ModelCheckpoint\n"
    script += "p = argparse.ArgumentParser()\np.add_argument('--gpus', type=int, default=1)\na = p.parse_args()\n"
    script += "t = L.Trainer(devices=a.gpus, callbacks=[ModelCheckpoint('kept', save_last=True)])\n"
    script += "t.fit(m, ckpt_path='last')\n"
    for words, ranks in (((), 1), (("--", "--gpus", "4"), 4)):
        _, found, said = initialized({"train.py": script}, *words)
        assert found["gang"]["nproc_per_node"] == ranks, said


def test_a_dict_of_pairs_has_what_they_say(initialized) -> None:
    """It was empty, and its default was told as certain."""
    script = "import sys, torch\ntold = dict(word.split('=') for word in sys.argv[1:])\n"
    _, found, said = initialized(
        {"train.py": f"{script}{STATE}told.get('out', 'usual') + '/a.pt')\n"}, "--", "out=kept", "lr=1"
    )
    assert found["checkpoint"]["path"] == "kept", said
