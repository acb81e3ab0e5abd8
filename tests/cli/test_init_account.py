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


def test_what_is_loaded_is_not_what_is_written_below_under_the_same_name(read) -> None:
    script = "p.add_argument('--resume', action='store_true')\na = p.parse_args()\npath = os.path.join('w', 's.pkl')\n"
    script += "if a.resume:\n    with open(path, 'rb') as f:\n        n = pickle.load(f)\n"
    code, _, said = read(f"{script}with open(path + '.tmp', 'wb') as f:\n    pickle.dump(n, f)\n")
    assert (code, "loads path, only if a.resume (--resume is not given)" in said) == (2, True), said


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
