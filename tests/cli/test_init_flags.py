"""init on flags that are no constants in a call: made in loops, by functions, of classes, several for one state."""

from __future__ import annotations

import pytest

START = "import argparse, os, torch\n"
BODY = """
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
start = 0
if RESUME:
    state = torch.load(RESUME)
    model.load_state_dict(state['model'])
    optimizer.load_state_dict(state['optimizer'])
    start = state['epoch'] + 1
for epoch in range(start, 9):
    optimizer.step()
    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': epoch},
               os.path.join(OUT, f'ck_{epoch}.pt'))
"""
ARGS = BODY.replace("RESUME", "args.resume").replace("OUT", "args.out")
CFG = ARGS.replace("args.", "cfg.")
DEEP = ARGS.replace("args.", "cfg.save.")
PARSED = "args = p.parse_args()\n"
PARSER = f"{START}p = argparse.ArgumentParser()\n"
CLASS = (
    "from dataclasses import dataclass, field\n@dataclass\nclass Config:\n    out: str = 'o'\n    resume: str = ''\n"
)
CLASSES = CLASS.replace("Config", "Save") + (
    "@dataclass\nclass Config:\n    save: Save = field(default_factory=Save)\n    epochs: int = 3\n"
)


def _main(body: str, head: str = "cfg: Config") -> str:
    return f"def main({head}):\n" + "".join(f"    {line}\n" for line in body.splitlines())


KEPT = ("o", ["ck_*.pt"])
OUT_AND_RESUME = "out: str = 'o', resume: str = ''"
PLAIN = ["--resume", "{newest}"]
CASES = {
    "tuples in a loop": (
        f"{PARSER}for name, kind, value in [('--out', str, 'o'), ('--resume', str, '')]:\n"
        f"    p.add_argument(name, type=kind, default=value)\n{PARSED}{ARGS}",
        PLAIN,
    ),
    "dicts of keywords in a loop": (
        f"{PARSER}SPECS = {{'out': dict(type=str, default='o'), 'resume': dict(type=str)}}\n"
        f"for name, words in SPECS.items():\n    p.add_argument('--' + name, **words)\n{PARSED}{ARGS}",
        PLAIN,
    ),
    "defaults that a function puts together": (
        f"{PARSER}def defaults():\n    made = dict(lr=1)\n    made.update(dict(out='o', resume=''))\n    return made\n"
        f"def add(p, known):\n    for key, value in known.items():\n"
        f"        p.add_argument(f'--{{key}}', default=value, type=type(value))\nadd(p, defaults())\n{PARSED}{ARGS}",
        PLAIN,
    ),
    "dicts that hold the names, too": (
        f"{PARSER}for spec in [{{'flags': ['-o', '--out'], 'default': 'o'}}, {{'flags': ['--resume']}}]:\n"
        f"    p.add_argument(*spec.pop('flags'), **spec)\n{PARSED}{ARGS}",
        PLAIN,
    ),
    "a function that adds one": (
        f"{PARSER}def add(name, value):\n    p.add_argument('--' + name, default=value)\n"
        f"add('out', 'o')\nadd('resume', '')\n{PARSED}{ARGS}",
        PLAIN,
    ),
    "defaults that are set later": (
        f"{PARSER}p.add_argument('--out')\np.add_argument('--resume')\np.set_defaults(out='o')\n{PARSED}{ARGS}",
        PLAIN,
    ),
    "tyro's": (f"{START}import tyro\n{CLASSES}cfg = tyro.cli(Config)\n{DEEP}", ["--save.resume", "{newest}"]),
    "tyro's of an object with other defaults": (
        f"{START}import tyro\n{CLASS.replace('= ' + repr('o'), '= ' + repr('p'))}"
        f"cfg = tyro.cli(Config, default=Config(out='o'))\n{CFG}",
        PLAIN,
    ),
    "tyro's of a function": (f"{START}import tyro\n{CLASS}{_main(CFG)}tyro.cli(main)\n", ["--cfg.resume", "{newest}"]),
    "tyro's of parameters": (
        f"{START}import tyro\n{_main(ARGS.replace('args.', ''), OUT_AND_RESUME)}tyro.cli(main)\n",
        PLAIN,
    ),
    "draccus's": (
        f"{START}import draccus\n{CLASSES}@draccus.wrap()\n{_main(DEEP)}main()\n",
        ["--save.resume", "{newest}"],
    ),
    "pyrallis's": (
        f"{START}import pyrallis\n{CLASSES}cfg = pyrallis.parse(config_class=Config)\n{DEEP}",
        ["--save.resume", "{newest}"],
    ),
    "simple-parsing's": (
        f"{START}from simple_parsing import ArgumentParser\n{CLASS}p = ArgumentParser()\n"
        f"p.add_arguments(Config, dest='cfg')\ncfg = p.parse_args().cfg\n{CFG}",
        PLAIN,
    ),
    "jsonargparse's": (
        f"{START}from jsonargparse import ArgumentParser\n{CLASS}p = ArgumentParser()\n"
        f"p.add_class_arguments(Config, 'cfg')\ncfg = p.parse_args().cfg\n{CFG}",
        ["--cfg.resume", "{newest}"],
    ),
    "Hydra's of a class that is stored": (
        f"{START}import hydra\nfrom hydra.core.config_store import ConfigStore\n{CLASSES}"
        "ConfigStore.instance().store(name='c', node=Config)\n"
        f"@hydra.main(version_base='1.3', config_path=None, config_name='c')\n{_main(DEEP, 'cfg')}main()\n",
        ["save.resume='{newest}'"],
    ),
    "OmegaConf's of a class": (
        f"{START}from omegaconf import OmegaConf\n{CLASS}"
        f"cfg = OmegaConf.merge(OmegaConf.structured(Config), OmegaConf.from_cli())\n{CFG}",
        ["resume='{newest}'"],
    ),
    "a switch, and another flag that names a file by default": (
        f"{PARSER}p.add_argument('--out', default='o')\np.add_argument('--resume', action='store_true')\n"
        f"p.add_argument('--ckpt', default='given/net.pth')\n{PARSED}"
        f"{ARGS.replace('load(args.resume)', 'load(args.ckpt)')}",
        ["--resume", "--ckpt", "{newest}"],
    ),
    "a number that is a switch": (
        f"{PARSER}p.add_argument('--out', default='o')\np.add_argument('--resume', type=int, default=0)\n"
        f"p.add_argument('--ckpt', default='')\n{PARSED}{ARGS.replace('load(args.resume)', 'load(args.ckpt)')}",
        ["--resume", "1", "--ckpt", "{newest}"],
    ),
    "a switch, and a number that says which": (
        f"{PARSER}p.add_argument('--out', default='o')\np.add_argument('--resume', action='store_true')\n"
        f"p.add_argument('--load_epoch', type=int, default=0)\n{PARSED}"
        + ARGS.replace("load(args.resume)", "load(f'{args.out}/ck_{args.load_epoch}.pt')"),
        ["--resume", "--load_epoch", "{step}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_flag_is_found_and_given_the_newest(name: str, initialized) -> None:
    script, resume = CASES[name]
    code, found, said = initialized({"train.py": script, "c.yaml": "save:\n  out: o\n  resume: null\n"})
    assert code == 0, said
    kept = found["checkpoint"]
    assert (kept["path"], kept["include"], kept.get("resume_args")) == (*KEPT, resume), said


def test_tables_that_a_comprehension_makes_hold_what_the_file_says(initialized) -> None:
    made = f"{START}import yaml\nfrom types import SimpleNamespace as N\nread = yaml.safe_load(open('c.yaml'))\n"
    made += "cfg = {key: N(**value) for key, value in read.items()}\nmodel, args = cfg['model'], cfg['train']\n"
    settings = "model:\n  out: a\ntrain:\n  out: b\n  resume: null\n"
    _, found, said = initialized({"train.py": made + ARGS, "c.yaml": settings})
    assert found["checkpoint"]["path"] == "b", said


def test_of_two_fields_with_one_name_the_one_that_is_told_is_meant(initialized) -> None:
    other = "@dataclass\nclass Log:\n    out: str = 'l'\n"
    classes = CLASSES.replace("    save:", "    log: Log = field(default_factory=Log)\n    save:")
    script = (
        f"{START}import tyro\n{classes.replace('@dataclass', f'{other}@dataclass', 1)}cfg = tyro.cli(Config)\n{DEEP}"
    )
    _, found, said = initialized({"train.py": script}, "--", "--log.out", "x", "--save.out", "z")
    assert found["checkpoint"]["path"] == "z", said


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ("@click.option('--resume', 'go_on', is_flag=True)", "--resume"),
        ("@click.option('--continue/--no-continue', 'go_on', default=False)", "--continue"),
        ("@click.option('--continue-training/--anew', 'go_on')", "--continue-training"),
    ],
)
def test_a_flag_is_known_by_its_name_whatever_its_parameter_is_called(declared: str, name: str, initialized) -> None:
    script = (
        f"import click, os, torch\n@click.command()\n{declared}\ndef main(go_on):\n"
        "    m = torch.nn.Linear(4, 1)\n    o = torch.optim.Adam(m.parameters())\n    s = 0\n"
        "    if go_on and os.path.exists('w/m.pt'):\n        c = torch.load('w/m.pt')\n"
        "        m.load_state_dict(c['m'])\n        o.load_state_dict(c['o'])\n        s = c['s']\n"
        "    for s in range(s + 1, 40):\n        m(x).backward()\n        o.step()\n"
        "        torch.save({'m': m.state_dict(), 'o': o.state_dict(), 's': s}, 'w/m.pt')\nmain()\n"
    )
    code, found, said = initialized({"train.py": script})
    assert code == 0, said
    assert found["checkpoint"].get("resume_args") == [name], said
