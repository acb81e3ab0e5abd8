"""init on what a fourth lot of well-known public programs did otherwise."""

from __future__ import annotations

import pytest

AT_ITS_FILE = """\
import os, torch
from pathlib import Path
ROOT = %s
out = os.path.join(ROOT, "code", "out")
for epoch in range(9):
    torch.save({"model": model.state_dict()}, os.path.join(out, "last.pt"))
"""


@pytest.mark.parametrize(
    "root", ["os.path.dirname(os.path.dirname(__file__))", "Path(__file__).resolve().parents[1]",
             "os.path.dirname(os.path.dirname(os.path.abspath(__file__)))", "Path(__file__).parent.parent"]
)  # fmt: skip
def test_a_folder_above_the_one_that_it_runs_in_is_outside(argosy, tmp_path, root) -> None:
    (tmp_path / "train.py").write_text(AT_ITS_FILE % root)
    code, _, err = argosy("init", "train.py")
    assert (code, "../code/out" in err, "or call argosy init in the folder above" in err) == (2, True, True), err
    (tmp_path / "code").mkdir()
    (tmp_path / "train.py").rename(tmp_path / "code" / "train.py")
    code, out, err = argosy("init", "code/train.py")
    assert (code, 'path = "code/out"' in out) == (0, True), out + err


def test_what_is_above_the_folder_of_a_start_is_above_each_folder(argosy, tmp_path) -> None:
    """It was sent to the folder above, where the same was said again, for each folder up to the root."""
    (tmp_path / "train.py").write_text("import torch\nfor epoch in range(9):\n    torch.save({}, '../out/last.pt')\n")
    code, _, err = argosy("init", "train.py")
    assert (code, "../out" in err, "in the folder above" in err) == (2, True, False), err


@pytest.mark.parametrize(
    "name", ["os.path.basename(os.getcwd())", "Path.cwd().name", "Path(__file__).resolve().parent.name",
             "os.path.basename(os.path.dirname(os.path.abspath(__file__)))"]
)  # fmt: skip
def test_what_the_folder_of_a_start_is_called_only_a_run_knows(argosy, tmp_path, name) -> None:
    """It was no folder at all: nothing was found in the one that was told."""
    (tmp_path / "train.py").write_text(AT_ITS_FILE.replace('"code", "out"', '"out", ' + name) % "''")
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "out"' in out, 'include = ["*/last.pt"]' in out) == (0, True, True), out + err


def test_a_relative_path_is_not_taken_for_an_absolute_one(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, torch\n"
        "def save(state, name):\n"
        "    if not os.path.isabs(name):\n"
        "        name = os.path.join('out', name)\n"
        "    torch.save(state, name)\n"
        "for epoch in range(9):\n"
        "    save({'model': model.state_dict()}, 'last.pt')\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "out"' in out, "not kept" in out) == (0, True, False), out + err


SAVES = """
for epoch in range(9):
    torch.save({"model": model.state_dict()}, os.path.join(%s, "last.pt"))
"""
BY_LINES = """\
import argparse, json, os, torch
from collections import OrderedDict
p = argparse.ArgumentParser()
p.add_argument("-c")
text = ""
with open(p.parse_args().c) as f:
    for line in f:
        line = line.split("//")[0] + "\\n"
        text += line
opt = json.loads(text, object_pairs_hook=OrderedDict)
class NoneDict(dict):
    def __missing__(self, key):
        return None
def to_none(opt):
    if isinstance(opt, dict):
        return NoneDict(**{key: to_none(each) for key, each in opt.items()})
    return opt
opt = to_none(opt)
"""
BY_ITSELF = """\
import argparse, os, torch, yaml
class Dotdict(dict):
    __getattr__ = dict.__getitem__
    def __init__(self, table=None):
        for key, value in (table or {}).items():
            self[key] = Dotdict(value) if hasattr(value, "keys") else value
class HParam(Dotdict):
    def __init__(self, file):
        super(Dotdict, self).__init__()
        for doc in yaml.load_all(open(file), Loader=yaml.Loader):
            for key, value in doc.items():
                setattr(self, key, Dotdict(value))
p = argparse.ArgumentParser()
p.add_argument("-c")
opt = HParam(p.parse_args().c)
"""
BY_DICT = """\
import argparse, importlib.util, os, torch
class Settings:
    def __init__(self, told):
        self.__dict__ = told
p = argparse.ArgumentParser()
p.add_argument("-c")
spec = importlib.util.spec_from_file_location("settings", p.parse_args().c)
found = importlib.util.module_from_spec(spec)
spec.loader.exec_module(found)
opt = Settings(found.cfg)
"""
JSON = """{
  "name": "x", // called so
  "path": {
    "log": {"dir": "kept"}, // where
    "resume_state": null
    // "resume_state": "old/I1"
  }
}
"""


@pytest.mark.parametrize(
    ("script", "name", "text", "said"),
    [(BY_LINES, "c.json", JSON, 'opt["path"]["log"]["dir"]'),
     (BY_ITSELF, "c.yaml", "data:\n  a: b\n---\nlog:\n  dir: kept\n", "opt.log.dir"),
     (BY_DICT, "c.py", "cfg = dict(dir='kept')\n", "opt.dir")],
    ids=["taken-apart", "several-documents", "dict-of-an-object"],
)  # fmt: skip
def test_a_file_of_settings_is_read_as_the_script_reads_it(argosy, tmp_path, script, name, text, said) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "train.py").write_text(script + SAVES % said)
    code, out, err = argosy("init", "train.py", "--", "-c", name)
    assert (code, 'path = "kept"' in out) == (0, True), out + err
    assert ("path.resume_state of c.json may make it go on" in out) == (name == "c.json"), out


@pytest.mark.parametrize(
    ("text", "said"),
    [("out: kept\nsite: 'a // b'\n", "yaml.safe_load(Path('c.yaml').read_text())"),  # no remark: YAML has none of these
     ("out: kept\n---\nout: other\n", "[*yaml.safe_load_all(open('c.yaml'))][0]")],
)  # fmt: skip
def test_what_a_text_of_settings_says_is_left_as_it_is(argosy, tmp_path, text, said) -> None:
    (tmp_path / "c.yaml").write_text(text)
    (tmp_path / "train.py").write_text(f"import yaml\nfrom pathlib import Path\nopt = {said}\n" + SAVES % "opt['out']")
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "kept"' in out) == (0, True), out + err


AT_ITS_END = """\
import torch
def prepare():
    model.train()
def train():
    prepare()
    for step, batch in enumerate(loader):
        loss(batch).backward()
        optimizer.step()
    torch.save(model.state_dict(), "out/final.pt")
def main():
    train()
main()
"""


def test_a_function_called_train_is_not_what_a_model_calls_so(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(AT_ITS_END)
    code, out, err = argosy("init", "train.py")
    assert (code, "line 9 saves only when its loop has ended" in out) == (0, True), out + err


def test_lines_leave_out_a_name_that_only_a_branch_sets(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, sys, torch\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "if '--log' in sys.argv:\n"
        "    logged = 0\n"
        "seen = 0\n"
        "for epoch in range(9):\n"
        "    model(data).sum().backward()\n"
        "    optimizer.step()\n"
        "    seen += 1\n"
        "    if '--log' in sys.argv:\n"
        "        logged += 1\n"
        "    torch.save(model.state_dict(), 'out/last.pt')\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, '"seen": seen' in out, "logged" in out) == (0, True, False), out + err


IN_PARTS = """\
import argparse, os, torch
p = argparse.ArgumentParser()
p.add_argument("--continue", dest="name")
name = p.parse_args().name
def save(folder, file, state):
    os.makedirs(os.path.join("out", folder), exist_ok=True)
    torch.save(state, os.path.join("out", folder, file))
first = 0
if name is not None:
    model.load_state_dict(torch.load(os.path.join("out", "nets", name + ".pth")))
    state = torch.load(os.path.join("out", "steps", name + ".pth"))
    optimizer.load_state_dict(state["optimizer"])
    first = state["epoch"] + 1
def both(file):
    save("nets", file, model.state_dict())
    save("steps", file, {"optimizer": optimizer.state_dict(), "epoch": epoch})
for epoch in range(first, 9):
    loss().backward()
    optimizer.step()
    save("pictures", "last.pt", picture)
    both("latest.pth")
    if epoch % 3 == 0:
        both(str(epoch) + ".pth")
"""


def test_all_folders_that_a_restart_reads_are_kept_and_the_newest_is_named(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(IN_PARTS)
    code, out, err = argosy("init", "train.py")
    assert (code, 'resume_args = ["--continue", "latest"]' in out) == (0, True), out + err
    assert 'path = "out"\n' in out, out
    assert all(f'"{each}/*.pth"' in out for each in ("nets", "steps")), out
    assert '"pictures/' not in out, out


def test_a_flag_whose_default_is_computed_is_named_where_that_lies_outside(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse, os, torch\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('--home', default=os.path.expanduser('~/runs'))\n"
        "a = p.parse_args()\n"
        "torch.save(model.state_dict(), os.path.join(a.home, 'logs', 'last.pt'))\n"
    )
    code, _, err = argosy("init", "train.py")
    assert (code, "argosy init train.py -- --home out`" in err) == (2, True), err


MADE = """\
import os, torch
from absl import app
from pathlib import Path
def mkdir(path):
    if not os.path.exists(path):
        os.makedirs(path)
def train():
    %s
    for epoch in range(9):
        model.train()
        torch.save(model.state_dict(), "out/last.pt")
def main(argv):
    train()
if __name__ == "__main__":
    app.run(main)
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [("os.makedirs(os.path.join('out', 'samples'))", True), ("Path('out/samples').mkdir(parents=True)", True),
     ("os.makedirs('out/samples', exist_ok=True)", False),
     ("os.path.exists('out/samples') or os.mkdir('out/samples')", False), ("mkdir('out/samples')", False)],
)  # fmt: skip
def test_a_folder_that_only_the_first_start_may_make_is_told_of(argosy, tmp_path, line, told) -> None:
    (tmp_path / "train.py").write_text(MADE % line)
    code, out, err = argosy("init", "train.py")
    said = "line 8 makes out/samples: a restart that finds it there ends with an error: give it exist_ok=True"
    assert (code, said in out) == (0, told), out + err


@pytest.mark.parametrize(
    "line", ["os.path.exists(out) or os.mkdir(out)", "os.mkdir(out) if not os.path.isdir(out) else None",
             "new = not os.path.isdir(out)\nif new:\n    os.mkdir(out)"]
)  # fmt: skip
def test_who_asks_in_the_same_line_or_above_makes_it_once(argosy, tmp_path, line) -> None:
    save = "for epoch in range(9):\n    torch.save({}, out + '/last.pt')\n"
    (tmp_path / "train.py").write_text(f"import os, torch\nout = 'out'\n{line}\n{save}")
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "out"' in out, "makes out" in out) == (0, True, False), out + err


@pytest.mark.parametrize(
    "path", ["os.path.abspath('out')", "os.path.join(os.getcwd(), 'out')", "Path(__file__).resolve().parent / 'out'"]
)
def test_an_absolute_path_is_not_taken_for_a_relative_one(argosy, tmp_path, path) -> None:
    """A script that looks at its folder was refused: it came to no save."""
    (tmp_path / "train.py").write_text(
        "import os, torch\n"
        "from pathlib import Path\n"
        f"out = {path}\n"
        "if not os.path.isabs(out):\n"
        "    raise ValueError(out)\n"
        "for epoch in range(9):\n"
        "    torch.save({'model': model.state_dict()}, os.path.join(out, 'last.pt'))\n"
    )
    code, out, err = argosy("init", "train.py")
    assert (code, 'path = "out"' in out) == (0, True), out + err
