"""init where it cannot be sure: what keeps a script from saving, its own calls, settings that words give."""

from __future__ import annotations

import tomllib

import pytest

PARSER = "import argparse, glob, os, pickle, torch\np = argparse.ArgumentParser()\n"


@pytest.fixture
def read(argosy, tmp_path):
    """What init says of train.py, and the [checkpoint] that it writes."""

    def call(script: str, *argv: str, name: str = "train.py"):
        (tmp_path / name).write_text(PARSER + script)
        code, out, err = argosy("init", name, "--force", *argv)
        found = tomllib.loads((tmp_path / "run.toml").read_text()) if code == 0 else {}
        return code, found.get("checkpoint", {}), out + err

    return call


NUMBERED = (
    "p.add_argument('--epoch', type=int, default=0)\np.add_argument('--every', type=int, default=-1)\n"
    "opt = p.parse_args()\nif opt.epoch != 0:\n    a.load_state_dict(torch.load('w/a_%d.pth' % opt.epoch))\n"
    "for epoch in range(opt.epoch, 9):\n    if opt.every != -1 and epoch % opt.every == 0:\n"
    "        torch.save(a.state_dict(), 'w/a_%d.pth' % epoch)\n"
    "        torch.save(b.state_dict(), 'w/b_%d.pth' % epoch)\n"
)


def test_the_flag_that_keeps_it_from_saving_is_named_and_the_number_told(read) -> None:
    code, _, said = read(NUMBERED)
    assert (code, "saves only with --every" in said, "-- --every VALUE" in said) == (2, True, True), said
    code, found, said = read(NUMBERED, "--", "--every", "1")
    assert (found["path"], found["include"]) == ("w", ["a_*.pth", "b_*.pth"]), said
    assert found["resume_args"] == ["--epoch", "{step}"]


@pytest.mark.parametrize("leaves", ["continue", "break", "return"])
def test_the_flag_without_which_it_leaves_before_it_saves_is_named(leaves: str, read) -> None:
    flags = "".join(f"p.add_argument('--{name}', action='store_true')\n" for name in ("eval", "dry", "save"))
    script = f"{flags}a = p.parse_args()\ndef main():\n    if a.eval:\n        return\n    for n in range(3):\n"
    script += f"        if a.dry:\n            continue\n        if not a.save:\n            {leaves}\n"
    code, _, said = read(f"{script}        torch.save(m.state_dict(), 'o/m.pt')\nmain()\n")
    assert (code, "saves only if a.save, and --save is not given" in said) == (2, True), said
    assert "init train.py -- --save`" in said


def test_what_would_keep_it_from_saving_if_it_were_true_is_not_to_be_written(read) -> None:
    script = "p.parse_args()\nclass C:\n    smoke: bool = False\n    every: int = 0\nc = C()\n"
    code, _, said = read(f"{script}if not c.smoke and c.every > 0:\n    torch.save(m.state_dict(), 'o/m.pt')\n")
    assert (code, "write True there" in said) == (2, False), said
    code, _, said = read(f"{script}if c.smoke:\n    torch.save(m.state_dict(), 'o/m.pt')\n")
    assert (code, "line 5 has `smoke: bool = False`; write True there" in said) == (2, True), said


def test_where_only_a_run_could_tell_its_own_calls_are_shown(read) -> None:
    script = "p.add_argument('--ckpt')\nargs = p.parse_args()\nfolder = where()\nif args.ckpt:\n"
    script += "    optimizer.load_state_dict(torch.load(args.ckpt)['o'])\n"
    script += "torch.save(net, os.path.join(folder, 'net_%04d.pt' % n))\n"
    code, _, said = read(script)
    assert code == 2
    assert "line 8 saves os.path.join(folder, 'net_%04d.pt' % n)" in said
    assert "line 7 loads args.ckpt, only if args.ckpt (--ckpt is not given)" in said
    assert 'include = ["net_*.pt"]' in said
    assert 'resume_args = ["--ckpt", "{newest}"]' in said


def test_the_setting_that_restores_the_optimizer_is_set_by_words(read, tmp_path) -> None:
    (tmp_path / "c.yml").write_text("model:\n  ckpt: ''\nrun:\n  out: w\n  resume_ckpt_path: null\n")
    script = "import yaml\nfrom omegaconf import OmegaConf\np.add_argument('--cfg', default='c.yml')\n"
    script += "p.add_argument('--options', nargs='+')\nargs = p.parse_args()\n"
    script += "def load_model(path):\n    net.load_state_dict(torch.load(path))\n"
    script += "def load_state(path):\n    optimizer.load_state_dict(torch.load(path)['optimizer'])\n"
    script += "cfg = OmegaConf.merge(yaml.safe_load(open(args.cfg)), OmegaConf.from_dotlist(args.options))\n"
    script += "if cfg.model.ckpt:\n    load_model(cfg.model.ckpt)\n"
    script += "if cfg.run.resume_ckpt_path is not None:\n    load_state(cfg.run.resume_ckpt_path)\n"
    script += "torch.save({'optimizer': o}, f'w/c_{n}.pt')\n"
    _, found, said = read(script)
    assert found.get("resume_args") == ["--options", "run.resume_ckpt_path={newest}"], said


KINDS = {
    "a pickle that is all it saves": (
        "args = p.parse_args()\nwith open(f'w/net-{n:06d}.pkl', 'wb') as f:\n    pickle.dump(net, f)\n",
        ("w", ["net-*.pkl"], None),
    ),
    "an average beside the state": (
        "p.add_argument('--ckpt')\nargs = p.parse_args()\nif args.ckpt:\n    s = torch.load(args.ckpt)\n"
        "    optimizer.load_state_dict(s['optimizer'])\n"
        "torch.save({'optimizer': o}, f'w/step{n}.pt')\ntorch.save({'optimizer': o}, f'w/step{n}_ema.pt')\n",
        ("w", ["step*[0-9].pt"], ["--ckpt", "{newest}"]),
    ),
    "a saver that nobody imports by name": (
        "from timm.utils import *\nargs = p.parse_args()\nsaver = CheckpointSaver(model=m, checkpoint_dir='w')\n",
        ("w", ["last.pth.tar"], None),
    ),
    "a number that is counted as n = n + 1": (
        "args = p.parse_args()\nn = 0\nfor epoch in range(9):\n    for b in data:\n        n = n + 1\n"
        "        if n % 2000 == 0:\n            torch.save(net.state_dict(), f'w/net_{n}.pt')\n",
        ("w", ["net_*.pt"], None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_what_is_kept_and_told(name: str, read) -> None:
    script, (folder, include, resume) = KINDS[name]
    _, found, said = read(script)
    assert (found.get("path"), found.get("include"), found.get("resume_args")) == (folder, include, resume), said


def test_a_rank_that_only_a_flag_tells_is_written_as_torchrun_gives_it(read, tmp_path) -> None:
    script = "p.add_argument('--rank', '--local_rank', type=int, default=0)\nargs = p.parse_args()\n"
    script += "if 'WORLD_SIZE' in os.environ:\n    torch.distributed.init_process_group('nccl')\n"
    _, _, said = read(f"{script}torch.cuda.set_device(args.rank)\ntorch.save(net, 'w/last.pt')\n")
    assert r'args = ["--local_rank=$\\{local_rank}"]: torchrun gives each rank its number there' in said
