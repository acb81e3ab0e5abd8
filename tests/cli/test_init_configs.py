"""init on settings that lie in files of Python, and on what a script imports before it says where."""

from __future__ import annotations

import pytest

PARSER = "import argparse, os, sys, torch\np = argparse.ArgumentParser()\n"
STATE = "torch.save({'epoch': n, 'optimizer': o}, "


@pytest.fixture
def read(initialized):
    """What init says of train.py among files, and the run.toml that it writes."""
    return initialized


def kept(found) -> tuple[str, list[str] | None]:
    return found["checkpoint"]["path"], found["checkpoint"].get("include")


def test_the_folder_of_mmengine_is_read_as_the_script_makes_it(read) -> None:
    script = f"{PARSER}from mmengine.config import Config\nfrom mmengine.runner import Runner\n"
    script += "p.add_argument('config')\np.add_argument('--work-dir')\nargs = p.parse_args()\n"
    script += "cfg = Config.fromfile(args.config)\nif args.work_dir is not None:\n    cfg.work_dir = args.work_dir\n"
    script += "elif cfg.get('work_dir', None) is None:\n    cfg.work_dir = os.path.join('./work_dirs', "
    script += "os.path.splitext(os.path.basename(args.config))[0])\nRunner.from_cfg(cfg).train()\n"
    _, found, said = read({"train.py": script, "c/a.py": "model = dict()\n"}, "--", "c/a.py")
    assert kept(found)[0] == "work_dirs/a", said
    _, found, said = read({"train.py": script, "c/a.py": "work_dir = 'here'\n"}, "--", "c/a.py")
    assert kept(found)[0] == "here", said


def test_a_file_that_is_loaded_as_a_module_is_read(read) -> None:
    script = f"{PARSER}import imp\np.add_argument('--config', default='c.py')\n"
    script += "cfg = imp.load_source('config', p.parse_args().config)\n"
    _, found, said = read(
        {"train.py": f"{script}{STATE}cfg.log['path'] + f'{{n}}.pt')\n", "c.py": "log = {'path': 'o/'}"}
    )
    assert kept(found) == ("o", ["*.pt"]), said


def test_what_is_imported_before_folders_are_added_is_looked_for(read) -> None:
    script = f"from scripts.common import ROOT\n{PARSER}sys.path.insert(0, ROOT)\nimport more\n{STATE}f'o/{{n}}.pt')\n"
    files = {"scripts/train.py": script, "scripts/common.py": "ROOT = 'src'\n", "src/more.py": ""}
    _, found, said = read(files)
    assert found.get("env") == {"PYTHONPATH": "."}, said
