"""init on scripts that cannot go on, or are told of one file of several; the lines that it gives are run."""

from __future__ import annotations

import tomllib

import pytest

from tests.forked import run_script

PARSER = "import argparse, os, torch\np = argparse.ArgumentParser()\n"
LOOP = """import torch
def train(net, opt):
    net.train()
    net(torch.ones(2)).sum().backward()
    opt.step()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(1, 4):
    train(model, optimizer)
    print("epoch", epoch)
"""
SHORT = """import torch
m = torch.nn.Linear(2, 1)
o = torch.optim.AdamW(m.parameters())
for epoch in range(1, 4):
    m(torch.ones(2)).sum().backward()
    o.step()
    print("epoch", epoch)
"""
SAVED = LOOP + '    torch.save(model.state_dict(), f"kept/m_{epoch}.pt")\n'


@pytest.fixture
def read(argosy, tmp_path):
    """What init says of train.py, and the [checkpoint] that it writes."""

    def call(script: str, *argv: str):
        (tmp_path / "train.py").write_text(script)
        code, out, err = argosy("init", "train.py", "--force", *argv)
        found = tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"] if code == 0 else {}
        return code, found, out + err

    return call


def written_in(script: str, said: str) -> str:
    """The script with the lines that init said, where it said, indented as the loop that they go around."""
    lines, made = script.splitlines(), said.splitlines()
    kinds = ("at its top", "before line", "instead of line", "as the last lines")
    at = {kind: next((i for i, line in enumerate(made) if line.strip().startswith(kind)), -1) for kind in kinds}
    number = int(made[at["before line"]].strip(" :").split()[-1]) - 1
    replaced = at["instead of line"] >= 0
    end = at["instead of line" if replaced else "as the last lines"]
    before = [line[8:] for line in made[at["before line"] + 1 : end]]
    instead = made[end + 1].strip() if replaced else lines[number]
    rest = made[at["as the last lines"] + 1 :]
    last = rest[: next(i for i, line in enumerate([*rest, ""]) if not line.startswith("        "))]
    deeper = "    " if instead.startswith("with") else ""
    top = [made[at["at its top"] + 1].strip()] if at["at its top"] >= 0 else []
    last = [deeper + line[4:].replace("% 1000", "% 1") for line in last]
    return "\n".join([*top, *lines[:number], *before, instead, *lines[number + 1 :], *last]) + "\n"


def trained(tmp_path, script: str) -> str:
    (tmp_path / "run.py").write_text(script)
    return run_script(tmp_path / "run.py")


@pytest.mark.parametrize("script", [LOOP, SHORT, SAVED], ids=["saves nothing", "has short names", "saves its model"])
def test_the_lines_that_it_says_make_the_script_go_on(script: str, read, tmp_path) -> None:
    code, _, said = read(script)
    assert code == (0 if script is SAVED else 2), said
    made = written_in(script, said).replace("range(start, 4)", "range(start, END)")
    (tmp_path / "kept").mkdir(exist_ok=True)
    assert trained(tmp_path, made.replace("END", "3")) == "epoch 1\nepoch 2\n"
    assert trained(tmp_path, made.replace("END", "5")) == "epoch 3\nepoch 4\n"
    code, found, said = read(made.replace("END", "5"))
    assert (code, "looks for it and goes on by itself" in said) == (0, True), said
    assert "argosy.pt" in found["include"]


def test_the_lines_save_often_enough_for_the_scripts_own_number_of_steps(read) -> None:
    steps = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n-iters', type=int, default=80)\n"
    script = steps + "a = p.parse_args()\n" + LOOP.replace("epoch in range(1, 4)", "i in range(1, a.n_iters)")
    assert "if i % 8 == 0:  # so many steps a kill may cost" in read(script.replace('"epoch", epoch', '"step", i'))[2]


OTHER_LOOPS = {
    "a bar that a with makes": (
        "import contextlib, os, torch\nnet = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "@contextlib.contextmanager\ndef bar(turns):\n    yield turns\n"
        "def once(start):\n    net(torch.ones(2)).sum().backward()\n    opt.step()\n"
        "start = 'taken'\nwith bar(range(0, 9 - 5)) as turns:\n    for step in turns:\n        once(start)\n"
        "        print('step', step)\n",
        "9 - 5", "step 0\nstep 1\nstep 2\nstep 3\n", "9 - 3", "step 4\nstep 5\n",
    ),
    "a while with numbers of its own": (
        "import os, torch\nnet = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "n, seen = 0, 0\nwhile n < 9 - 5:\n    net(torch.ones(2)).sum().backward()\n    opt.step()\n    n += 1\n"
        "    seen = seen + 2\n    print(n, seen)\n",
        "9 - 5", "1 2\n2 4\n3 6\n4 8\n", "9 - 3", "5 10\n6 12\n",
    ),
    "an object of the script's own that is no module": (
        "import os, torch\nclass Meter:\n    def update(self, x):\n        for turn in range(2):\n            pass\n"
        "class Agent:\n    def __init__(self):\n        self.net = torch.nn.Linear(2, 1)\n"
        "        self.optim = torch.optim.SGD(self.net.parameters(), lr=0.1)\n"
        "    def train(self):\n        self.net.train()\n    def update(self, x):\n        net = self.net\n"
        "        net(x).sum().backward()\n        self.optim.step()\n"
        "agent, meter = Agent(), Meter()\nagent = Agent()\nagent.train()\nfor epoch in range(9 - 5):\n"
        "    agent.update(torch.ones(2))\n    meter.update(1)\n    print('epoch', epoch)\n",
        "9 - 5", "epoch 0\nepoch 1\nepoch 2\nepoch 3\n", "9 - 3", "epoch 4\nepoch 5\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_LOOPS)
def test_lines_go_around_whatever_counts(name: str, read, tmp_path) -> None:
    script, end, first, later, then = OTHER_LOOPS[name]
    code, _, said = read(script)
    assert (code, "What makes it save and go on" in said) == (2, True), said
    made = written_in(script, said)
    (tmp_path / "out").mkdir(exist_ok=True)
    assert trained(tmp_path, made) == first, made
    assert trained(tmp_path, made.replace(end, later)) == then, made


def test_no_lines_where_each_turn_makes_its_model_anew(read) -> None:
    folds = "import torch\nfor fold in range(5):\n    model = torch.nn.Linear(1, 1)\n    optimizer = SGD(model)\n"
    folds += "    model.train()\n    loss.backward()\n    optimizer.step()\n    torch.save(model, f'kept/{fold}.pt')\n"
    assert "before line" not in read(folds)[2]


SEVERAL = {
    "the folder of a run, whose logs stay open": (
        "p.add_argument('--resume')\nargs = p.parse_args()\nif args.resume:\n    torch.load(args.resume)\n"
        "torch.save({'epoch': 1}, f'runs/exp{n}/last.pt')\n",
        ("runs", ["exp*/last.pt"], ["--resume", "{newest}"]),
    ),
    "the folder of a checkpoint that a flag names": (
        "p.add_argument('--restart_dir', default='')\nargs = p.parse_args()\nif args.restart_dir:\n"
        "    with open(os.path.join(args.restart_dir, 'o.pt'), 'rb') as f:\n        opt = torch.load(f)\n"
        "        optimizer.load_state_dict(opt)\n"
        "for name in ('m', 'o'):\n    torch.save(net, f'w/{stamp}/{name}.pt')\n",
        ("w", ["*/**/m.pt", "*/**/o.pt"], ["--restart_dir", "{newest}"]),
    ),
    "a cache is no checkpoint": (
        "p.add_argument('--resume')\nargs = p.parse_args()\n"
        "if os.path.exists('w/data.pt'):\n    d = torch.load('w/data.pt')\n"
        "else:\n    torch.save(d, 'w/data.pt')\nif args.resume:\n    torch.load(args.resume)\n"
        "torch.save([net, optimizer], 'w/last.pt')\n",
        ("w", ["last.pt"], ["--resume", "w/last.pt"]),
    ),
    "what is renamed into place is as whole as it was": (
        "p.add_argument('--from_resume', type=int, choices=[0, 1], default=0)\nargs = p.parse_args()\n"
        "if args.from_resume == 1:\n    torch.load('w/a_resume.pt')\n"
        "torch.save({'optimizer': o}, 'w/a_resume.pt.tmp')\nos.replace('w/a_resume.pt.tmp', 'w/a_resume.pt')\n",
        ("w", ["a_resume.pt"], ["--from_resume", "1"]),
    ),
    "flags that a loop over a dict makes, a folder that a variable names": (
        "def add(p, known):\n    for key, value in known.items():\n        p.add_argument(f'--{key}', default=value)\n"
        "known = dict(lr=0.1, resume_from='')\nadd(p, known)\nargs = p.parse_args()\nif args.resume_from:\n"
        "    torch.load(args.resume_from)\nfolder = os.getenv('A_LOGDIR') or tmp()\n"
        "torch.save({'epoch': 1}, os.path.join(folder, 'last.pt'))\n",
        ("out", ["last.pt"], ["--resume_from", "out/last.pt"]),
    ),
    "a state that is filled key by key, in an object that a loop finds": (
        "class Saver:\n    def save(self, folder):\n        state = {}\n        state['optimizer'] = self.o\n"
        "        torch.save(state, folder + '/last.pt')\nkinds = {'a': None, 'b': Saver}\n"
        "for name in ('a', 'b', 'c'):\n    found = kinds.get(name)\n    if found is not None:\n        break\n"
        "found().save('w')\n",
        ("w", ["last.pt"], None),
    ),
    "a library's saver, in a folder made longer until it is free": (
        "import lib\nfrom timm.utils import CheckpointSaver\np.add_argument('--resume')\nargs = p.parse_args()\n"
        "if args.resume:\n    torch.load(args.resume)\n"
        "saver = CheckpointSaver(model=m, optimizer=o, checkpoint_dir=str(lib.increment_path('w/exp')))\n",
        ("w", ["exp*/last.pth.tar"], ["--resume", "{newest}"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_which_files_are_kept_and_told(name: str, read) -> None:
    script, (folder, include, resume) = SEVERAL[name]
    _, found, said = read(PARSER + script)
    assert (found.get("path"), found.get("include"), found.get("resume_args")) == (folder, include, resume), said


def test_a_state_outside_is_refused_though_the_model_lies_inside(read) -> None:
    script = "p.add_argument('--resume', action='store_true')\nargs = p.parse_args()\n"
    script += "if args.resume:\n    torch.load('../s/last.pt')\n"
    script += "torch.save(net.state_dict(), 'w/net.pt')\ntorch.save({'optimizer': o}, '../s/last.pt')\n"
    code, _, said = read(PARSER + script)
    assert (code, "saves what it goes on from outside the folder" in said) == (2, True), said
    assert "../s" in said


def test_a_trainer_that_is_never_told_gets_the_line(read) -> None:
    script = "from transformers import Trainer, TrainingArguments\nargs = TrainingArguments(output_dir='o')\n"
    _, _, said = read(f"{script}trainer = Trainer(model=m, args=args)\ntrainer.train()\n")
    assert "write trainer.train(resume_from_checkpoint=get_last_checkpoint('o')) in line 4" in said


def test_a_step_that_an_inner_loop_counts_is_saved_there(read) -> None:
    script = LOOP.replace("for epoch in range(1, 4):\n", "step, on = 0, True\nwhile on:\n    for batch in (1, 2, 3):\n")
    script = script.replace("    train(model, optimizer)\n", "        train(model, optimizer)\n        step += 1\n")
    script = script.replace(
        '    print("epoch", epoch)\n', "        if step > 7:\n            on = False\n            break\n"
    )
    _, _, said = read(script + "        torch.save(model.state_dict(), f'kept/m_{step}.pt')\n")
    assert "as the last lines of the `for batch in (1, 2, 3):` of line 10, in that loop:" in said, said
    assert 'step = state["step"]' in said


def test_a_counter_that_has_a_name_before_the_loop_begins_there(read) -> None:
    script = SAVED.replace("for epoch in range(1, 4):", "turns = iter_of(range(1, 4), ncols=70)\nfor epoch in turns:")
    _, _, said = read(script)
    assert "instead of line 8:\n        turns = iter_of(range(start, 4), ncols=70)\n" in said, said


def test_what_only_the_main_part_imports_is_imported_at_the_top(read) -> None:
    made = "import torch\ndef main(net, opt):\n    net.train()\n    for epoch in range(3):\n        loss.backward()\n"
    made += "        opt.step()\n        torch.save(net.state_dict(), f'kept/m_{epoch}.pt')\n"
    _, _, said = read(f"{made}if __name__ == '__main__':\n    import os\n    main(net, opt)\n")
    assert "at its top:\n        import os\n" in said, said


ACCELERATE = """import os
import torch
from accelerate import Accelerator
accelerator = Accelerator()
def main(args):
    net, optimizer, loader = accelerator.prepare(make(), torch.optim.SGD(p), data)
    steps = 0
    for epoch in range(0, 9):
        for batch in loader:
            accelerator.backward(net(batch))
            optimizer.step()
            steps += 1
            accelerator.save_state(f"out/checkpoint-{steps}")
main(0)
"""


def test_lines_around_a_loop_of_accelerates_keep_their_own_file(read) -> None:
    _, _, said = read(ACCELERATE)
    for name in ("net", "optimizer"):
        assert f'{name}.load_state_dict(state["{name}"])' in said, said
    begun = "    start = 0\n    if os.path.exists('out/argosy.pt'):\n        state = torch.load('out/argosy.pt')\n"
    begun += "        start = state['epoch'] + 1\n    for epoch in range(start, 9):"
    saved = "        torch.save({'net': net.state_dict(), 'epoch': epoch}, 'out/argosy.pt')\nmain(0)"
    script = ACCELERATE.replace("    for epoch in range(0, 9):", begun).replace("main(0)", saved)
    _, found, said = read(script)
    assert (found["path"], found["include"], "expect" in found) == ("out", ["argosy.pt"], False), said
    assert "looks for it and goes on by itself" in said


def test_a_path_of_weights_alone_is_nothing_to_go_on_from(read) -> None:
    script = ACCELERATE.replace("    steps = 0\n", "    steps = 0\n    if args.ckpt_path:\n        net.load_state_dict("
                                "torch.load(args.ckpt_path))\n")  # fmt: skip
    _, _, said = read(script)
    assert "goes on from what ckpt_path names" not in said


def test_the_lines_keep_what_is_best_and_what_counts_by_an_amount(read) -> None:
    script = LOOP.replace("for epoch", "best = float('inf')\nworst = -1\ntop = 0.0\nseen = 0\nfor epoch", 1)
    script += "    seen += args.batch\n    loss = test(model)\n    if loss < best:\n        best = loss\n"
    script += "    top = max(top, loss)\n    total = 0\n    total += loss\n    worst = loss\n"
    _, _, said = read(script)
    assert '"epoch": epoch, "seen": seen, "top": top, "best": best}' in said, said


def test_the_lines_go_around_a_loop_of_a_function_whose_model_its_module_made(read) -> None:
    script = "import torch\nfrom itertools import count\npolicy = torch.nn.Linear(2, 1)\n"
    script += "optimizer = torch.optim.Adam(policy.parameters())\ndef finish():\n    loss(policy).backward()\n"
    script += "    optimizer.step()\ndef main():\n    mean = 10\n    for i_episode in count(1):\n        finish()\n"
    script += "        mean = 0.05 * reward() + (1 - 0.05) * mean\nmain()\n"
    _, _, said = read(script)
    assert (
        '        torch.save({"policy": policy.state_dict(), "optimizer": optimizer.state_dict(), "i_episode"' in said
    ), said
    assert '"i_episode": i_episode, "mean": mean}, "out/argosy.pt")' in said, said


def test_iterations_are_no_eras(read) -> None:
    script = "import torch\nmodel = torch.nn.Linear(2, 2)\nopt = torch.optim.Adam(model.parameters())\n"
    script += "for n in range(iterations()):\n    model.train()\n    loss.backward()\n    opt.step()\n"
    assert "if n % 1000 == 0:" in read(f"{script}torch.save(model.state_dict(), 'o/1.pt')\n")[2]


def test_the_lines_save_before_a_loop_that_the_script_bounds_has_ended(read) -> None:
    script = "import torch\nmodel = torch.nn.Linear(2, 2)\nopt = torch.optim.Adam(model.parameters())\nN = 100\n"
    script += "for n in range(1, N + 1):\n    loss.backward()\n    opt.step()\n"
    assert "if n % 10 == 0:" in read(f"{script}torch.save(model.state_dict(), 'o/1.pt')\n")[2]
