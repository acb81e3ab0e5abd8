"""init on how a script goes on: what it is told, what it looks for itself, and what neither of them is."""

from __future__ import annotations

import tomllib

import pytest

PARSER = "import argparse, glob, os, time, torch\np = argparse.ArgumentParser()\n"
STATE = 'torch.save({"epoch": 1, "optimizer": optimizer.state_dict()}, '
SWITCH = 'p.add_argument("--continue_it", action="store_true")\n'
LOADS = "optimizer.load_state_dict(torch.load(args.ckpt))\n"
NEWEST = "def newest(folder):\n    return torch.load(sorted(glob.glob(os.path.join(folder, '*.pt')))[-1])\n"
COMMAND = (
    f"from jsonargparse import CLI\nimport torch\ndef fit(resume: %s = False):\n    {STATE}f'o/{{n}}.pt')\nCLI(fit)\n"
)
CASES = {
    "a switch that says how far, and a flag that says from what": (
        f'{PARSER}{SWITCH}p.add_argument("--ckpt")\n{LOADS}{STATE}"o/a.pt")\n',
        (),
        ("o", ["--continue_it", "--ckpt", "o/a.pt"]),
    ),
    "a flag with the number of what was written last": (
        f'{PARSER}p.add_argument("--restore_step", type=int, default=0)\n{STATE}f"o/{{n}}.pt")\n',
        (),
        ("o", ["--restore_step", "{step}"]),
    ),
    "the short name of a flag": (
        f'{PARSER}p.add_argument("-m", "--model", required=True)\n{STATE}os.path.join("o", args.model, "a.pt"))\n',
        ("--", "-m", "tiny"),
        ("o/tiny", None),
    ),
    "a switch of jsonargparse's wants a value": (COMMAND % "bool", (), ("o", ["--resume=true"])),
    "and one that may be a path is given it": (COMMAND % "bool | Path", (), ("o", ["--resume", "{newest}"])),
    "a move of what is not known is no save": (
        f'{PARSER}os.rename(args.somewhere, args.elsewhere)\n{STATE}"o/a.pt")\n',
        (),
        ("o", None),
    ),
}


@pytest.fixture
def said(argosy, tmp_path):
    """What init writes and says for a script."""

    def call(script: str, *argv: str):
        (tmp_path / "main.py").write_text(script)
        code, out, err = argosy("init", "main.py", *argv)
        assert code == 0, err
        return tomllib.loads((tmp_path / "run.toml").read_text()), out

    return call


@pytest.mark.parametrize("name", CASES)
def test_how_it_goes_on(name: str, said) -> None:
    script, args, (path, resume_args) = CASES[name]
    found, out = said(script, *args)
    assert found["checkpoint"]["path"] == path, out
    assert found["checkpoint"].get("resume_args") == resume_args, out
    assert "The script requires" not in out


@pytest.mark.parametrize(
    ("folder", "itself"),
    [
        ("os.path.join('runs', args.name)", True),
        ("os.path.join('runs', time.strftime('%H%M'))", False),
        ("f'runs/{int(time.time())}'", False),
    ],
)
def test_a_run_finds_its_own_files_only_where_the_folder_has_the_same_name(folder: str, itself: bool, said) -> None:
    script = f'{PARSER}p.add_argument("--name")\n{NEWEST}folder = {folder}\nnewest(folder)\n'
    _, out = said(f'{script}{STATE}os.path.join(folder, f"{{n}}.pt"))\n')
    assert ("looks for it and goes on by itself" in out) is itself, out


def test_a_search_of_the_runs_is_none_of_their_files(said) -> None:
    script = f'{PARSER}p.add_argument("--name")\nplace = len(glob.glob("runs/*"))\n'
    _, out = said(f'{script}{STATE}os.path.join("runs", args.name, "kept", f"{{n}}.pt"))\n')
    assert "every restart may begin anew" in out


def test_what_is_counted_to_go_on_from_there_is_looked_for(said) -> None:
    script = "import os, torch\nn = len(os.listdir('o'))\nif n:\n    s = torch.load(f'o/{n - 1}.pt')\n"
    script += "    m.load_state_dict(s['m'])\n    optimizer.load_state_dict(s['optimizer'])\n"
    _, out = said(f"{script}for e in range(n, 9):\n    torch.save({{'m': m, 'optimizer': o}}, f'o/{{e}}.pt')\n")
    assert "line 2 looks for it and goes on by itself" in out


def test_a_parameter_that_jsonargparse_requires_by_its_name_is_said(said) -> None:
    command = COMMAND % "bool"
    _, out = said(
        command.replace("def fit(", "def fit(data: str, ").replace("CLI(fit)", "CLI(fit, as_positional=False)")
    )
    assert "The script requires --data" in out


def test_what_returns_where_nothing_is_reads_below(said) -> None:
    script = f"{PARSER}def again(path):\n    if not os.path.isfile(path):\n        return\n    torch.load(path)\n"
    _, out = said(f'{script}again("o/a.pt")\n{STATE}"o/a.pt")\n')
    assert "looks for it and goes on by itself" in out


def test_a_wrapper_without_a_group_of_ranks_makes_none(said) -> None:
    script = f'{PARSER}if size > 1:\n    m = DistributedDataParallel(m)\n{STATE}"o/a.pt")\n'
    assert said(script)[0]["gang"] == {"nnodes": 1, "nproc_per_node": 1}
    assert said(f"{script}init_distributed_mode()\n", "--force")[0]["gang"] == {"nnodes": 2, "nproc_per_node": 2}


def test_what_torchrun_tells_is_asked_of_nobody(said) -> None:
    _, out = said(f'{PARSER}p.add_argument("--local_rank", required=True)\n{STATE}"o/a.pt")\n')
    assert "The script requires" not in out


@pytest.mark.parametrize(
    ("final", "said_of_it"),
    [
        ("o/final.pth", "keep it too with --opaque o --include 'cp/*.pt' --include final.pth"),
        ("/models/final.pth", "it lies outside the run's folder"),
    ],
)
def test_a_final_model_that_lies_elsewhere_is_not_dropped_without_a_word(final: str, said_of_it: str, said) -> None:
    _, out = said(f'{PARSER}{STATE}f"o/cp/{{n}}.pt")\ntorch.save(model, "{final}")\n')
    assert "not kept" in out
    assert said_of_it in out, out
    assert "not kept" not in said(f'{PARSER}{STATE}f"o/{{n}}.pt")\n', "--force")[1]


@pytest.mark.parametrize(
    ("script", "remedy"),
    [
        (
            f'{PARSER}p.add_argument("--out_dir")\nfor one in [args.out_dir + "/a.pt"]:\n    torch.save(m, one)\n',
            "-- --out_dir out",
        ),
        (
            f'{PARSER}p.add_argument("--a_config")\np.add_argument("--b_config")\n{STATE}where())\n',
            "-- --a_config FILE --b_config FILE",
        ),
        (
            f'{PARSER}p.add_argument("--resume")\n{STATE}where())\n',
            "--opaque FOLDER --include GLOB --resume-arg=--resume --resume-arg='{newest}'",
        ),
        (f'{PARSER}p.add_argument("--cfg")\ntorch.save(m, args.cfg)\n', "--opaque FOLDER --include GLOB"),
    ],
)
def test_a_refusal_says_the_line_to_write(script: str, remedy: str, argosy, tmp_path) -> None:
    (tmp_path / "main.py").write_text(script)
    code, _, err = argosy("init", "main.py")
    assert (code, remedy in err) == (2, True), err


def test_files_that_are_looked_for_one_by_one_in_a_folder_without_a_known_name(initialized) -> None:
    script = "import torch, kept\nfrom settings import settings\nplaces = kept.Places(settings.run)\n"
    script += "kept.restore('model', places)\nfor epoch in range(9):\n    kept.save('model', places)\n"
    module = "import torch\nfrom pathlib import Path\nclass Places:\n    def __init__(self, run):\n"
    module += "        self.state = Path('o') / f'{run}.a' / 'state.pt'\n        self.other = Path('p') / 'x.pt'\n"
    module += "def place(kind, places):\n    if kind is 'other':\n        path = places.other\n"
    module += "    elif kind is 'model':\n        path = places.state\n    else:\n        raise NotImplementedError\n"
    module += "    return {'s': path}\ndef save(kind, places):\n"
    module += "    torch.save({'optimizer': o}, place(kind, places)['s'])\ndef restore(kind, places):\n"
    module += "    paths = place(kind, places)\n    there = sum(each.exists() for each in paths.values())\n"
    module += "    if there == 1:\n        optimizer.load_state_dict(torch.load(paths['s']))\n"
    files = {"train.py": script, "kept.py": module, "settings.py": "settings = read_them()\n"}
    _, found, said = initialized(files)
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == ("o", ["*.a/state.pt"]), said
    assert "kept.py:19 looks for it and goes on by itself" in said


@pytest.mark.parametrize(("value", "said"), [("true", "goes on by itself"), ("false", "every restart may begin anew")])
def test_a_file_of_settings_says_whether_what_is_there_is_loaded(value: str, said: str, argosy, tmp_path) -> None:
    (tmp_path / "config.yaml").write_text(f"train: {{resume: {value}, out: o}}\n")
    (tmp_path / "train.py").write_text(
        "import os, torch, yaml\n"
        'cfg = yaml.safe_load(open("config.yaml"))\n'
        'last = os.path.join(cfg["train"]["out"], "last.pt")\n'
        'if cfg["train"]["resume"] and os.path.exists(last):\n'
        '    optimizer.load_state_dict(torch.load(last)["optimizer"])\n'
        'torch.save({"optimizer": optimizer.state_dict()}, last)\n'
    )
    code, out, err = argosy("init", "train.py")
    assert (code, said in out) == (0, True), out + err


@pytest.mark.parametrize(("name", "itself"), [("state.json", True), ("other.json", False)])
def test_a_script_that_reads_the_files_which_are_named_goes_on_by_itself(name: str, itself: bool, said) -> None:
    """Of a save that init does not see, it said that nothing looks for the files."""
    script = f"import json\nfrom pathlib import Path\np = Path('out/{name}')\n"
    script += "state = json.loads(p.read_text()) if p.exists() else {}\np.with_suffix('.part').rename(p)\n"
    _, out = said(script, "--opaque", "out", "--include", "state.json")
    assert ("line 4 looks for it and goes on by itself" in out) is itself, out
