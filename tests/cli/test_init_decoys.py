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


def test_a_path_that_is_there_or_not_is_no_number(read) -> None:
    script = f"{PARSER}p.add_argument('--checkpoint_path')\nargs = p.parse_args()\n"
    script += "if args.checkpoint_path is not None:\n    net.load_state_dict(torch.load(args.checkpoint_path))\n"
    _, found, said = read(f"{script}torch.save(net.state_dict(), f'w/{{n}}.pt')\n")
    assert resumed(found) is None
    assert "no optimizer's state: a restart begins anew" in said, said


def test_a_script_that_ends_there_only_where_it_begins_anew_is_taken(read) -> None:
    script = f"{PARSER}p.add_argument('--resume')\nargs = p.parse_args()\nif not args.resume:\n"
    script += "    if os.path.exists('w/a'):\n        raise Exception('already there')\n    os.makedirs('w/a')\n"
    script += "else:\n    kept = torch.load(args.resume)\n    opt.load_state_dict(kept['optimizer'])\n"
    _, found, said = read(f"{script}{STATE}f'w/a/{{n}}.pt')\n")
    assert resumed(found) == ["--resume", "{newest}"], said


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
