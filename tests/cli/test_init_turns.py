"""init on which turns a restart takes: what is saved at the end only, for the best only, into a folder of each start's
own, and by what library.
"""

from __future__ import annotations

import pytest

TORCH = "import argparse, os, torch\np = argparse.ArgumentParser()\np.add_argument('--resume')\n"
TORCH += "p.add_argument('--epochs', type=int, default=9)\nargs = p.parse_args()\n"
MADE = "model = Net()\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\nfirst = 0\n"
LOADED = "    s = torch.load(args.resume)\n    model.load_state_dict(s['model'])\n"
LOADED += "    optimizer.load_state_dict(s['optimizer'])\n    first = s['epoch'] + 1\n"
RESUMED = f"{TORCH}{MADE}if args.resume:\n{LOADED}"
TURN = "    loss = model(x)\n    loss.backward()\n    optimizer.step()\n"
STATE = "{'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': epoch}"
SAVE = f"torch.save({STATE}, 'o/m.pt')\n"
GROUP = "import torch.distributed as dist\ndist.init_process_group('nccl')\n"
NEWEST = ["--resume", "{newest}"]
SAME = ["--resume", "o/m.pt"]
ANEW = "n = 0\nwhile os.path.exists(f'o/run{n}'):\n    n += 1\nout = f'o/run{n}'\nos.makedirs(out)\n"
FOUND = "if os.path.exists(out + '/m.pt'):\n" + LOADED.replace("args.resume", "out + '/m.pt'")

CASES = {
    "a state that is saved only when the loop has ended": (
        f"{RESUMED}for epoch in range(first, args.epochs):\n{TURN}{SAVE}",
        ("o", ["m.pt"], SAME, "saves only when its loop has ended: what is killed before begins anew. For it to go on"),
    ),
    "a state that a function saves which the loop calls": (
        f"{RESUMED}def keep(epoch):\n    {SAVE}for epoch in range(first, args.epochs):\n{TURN}    keep(epoch)\n",
        ("o", ["m.pt"], SAME, "--resume with a value\n"),
    ),
    "a function that saves and is handed on may be called in the loop": (
        f"{RESUMED}def keep(epoch):\n    {SAVE}def run(hook):\n    for epoch in range(first, args.epochs):\n"
        f"{TURN.replace('    ', '        ')}        hook(epoch)\nrun(keep)\n",
        ("o", ["m.pt"], SAME, "--resume with a value\n"),
    ),
    "folds of which those are left out that are done": (
        f"{TORCH}{MADE}for fold in range(5):\n    path = f'o/fold{{fold}}.pt'\n    if os.path.exists(path):\n"
        f"        continue\n    for epoch in range(9):\n{TURN.replace('    ', '        ')}"
        "    torch.save(model.state_dict(), path)\n",
        ("o", ["fold*.pt"], None, "line 11 leaves out each turn whose file is there: a restart takes only the others"),
    ),
    "turns that are left out while a file is not there": (
        f"{TORCH}{MADE}for epoch in range(9):\n{TURN}    if not os.path.exists('o/a.pt'):\n        continue\n"
        "    torch.save(model.state_dict(), 'o/a.pt')\n",
        ("o", ["a.pt"], None, "every restart may begin anew"),
    ),
    "turns of which a few are left out": (
        f"{TORCH}{MADE}for epoch in range(9):\n{TURN}    if os.path.exists('o/a.pt') and epoch < 3:\n        continue\n"
        "    torch.save(model.state_dict(), 'o/a.pt')\n",
        ("o", ["a.pt"], None, "every restart may begin anew"),
    ),
    "the best, and each": (
        f"{RESUMED}for epoch in range(first, args.epochs):\n{TURN}    {SAVE}    if loss < best:\n        {SAVE}",
        ("o", ["m.pt"], SAME, "--resume with a value\n"),
    ),
    "such a folder, and a flag that names the newest": (
        f"{ANEW.replace('n = 0', f'{RESUMED}n = 0')}for epoch in range(first, 9):\n{TURN}"
        f"    torch.save({STATE}, out + '/m.pt')\n",
        ("o", ["run*/m.pt"], NEWEST, "{newest} stands for what was written last\n"),
    ),
    "what is imported by its name, and loads a model alone": (
        f"from safetensors.torch import load_file, save_file\n{TORCH}{MADE}if args.resume:\n"
        "    model.load_state_dict(load_file(args.resume))\n"
        f"for epoch in range(9):\n{TURN}    save_file(model.state_dict(), f'o/m{{epoch}}.safetensors')\n",
        ("o", ["m*.safetensors"], NEWEST, "an optimizer's state or a step: a restart begins anew with that model. For"),
    ),
    "torch's distributed checkpoints by a writer": (
        f"from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter, load, save\n{TORCH}{GROUP}{MADE}"
        f"if args.resume:\n    load({{}}, storage_reader=FileSystemReader(args.resume))\n"
        f"for epoch in range(9):\n    save({{'epoch': epoch}}, storage_writer=FileSystemWriter(f'o/step{{epoch}}'))\n",
        ("o", ["step*/**/*"], NEWEST, "torch.distributed.checkpoint writes such a file for each rank"),
    ),
    "an object that is called takes the step": (
        f"{TORCH}class Scaler:\n    def __call__(self, loss, optimizer):\n        loss.backward()\n"
        f"        optimizer.step()\n    def state_dict(self):\n        return {{}}\nscaler = Scaler()\n{MADE}"
        f"for epoch in range(9):\n    scaler(model(x), optimizer)\n    torch.save(model.state_dict(), 'o/m.pt')\n",
        ("o", ["m.pt"], None, 'torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch"'),
    ),
    "the model that its caller made an optimizer of": (
        f"{TORCH}def fit(net, adam):\n    for epoch in range(9):\n        net(x).backward()\n        adam.step()\n"
        f"        torch.save(net, 'o/m.pt')\n{MADE}fit(model, optimizer)\n",
        ("o", ["m.pt"], None, 'net.load_state_dict(state["net"])'),
    ),
    "one loop that trains one model after another gets no lines": (
        f"{TORCH}def fit(net, adam):\n    for epoch in range(9):\n        net.train()\n        net(x).backward()\n"
        f"        adam.step()\n        torch.save(net.state_dict(), 'o/m.pt')\n{MADE}fit(model, optimizer)\n"
        "fit(model, optimizer)\n",
        ("o", ["m.pt"], None, "may make it go on, which was not seen: if it does, name it with --resume-arg\n"),
    ),
    "a trainer's train() is not its model's": (
        f"{TORCH}class Runs:\n    def __init__(self, net, adam): self.net, self.adam = net, adam\n"
        "    def train(self):\n        for epoch in range(9):\n            self.turn()\n"
        "            torch.save(self.net.state_dict(), 'o/m.pt')\n    def turn(self):\n        self.net.train()\n"
        f"        self.net(x).backward()\n        self.adam.step()\n{MADE}Runs(model, optimizer).train()\n",
        ("o", ["m.pt"], None, 'self.net.load_state_dict(state["self.net"])'),
    ),
    "a loop that is called in one way or in another": (
        f"{TORCH}def fit(net, adam):\n    for epoch in range(9):\n        net(x).backward()\n        adam.step()\n"
        f"        torch.save(net.state_dict(), 'o/m.pt')\n{MADE}if os.environ.get('TRACE'):\n"
        "    fit(model, optimizer)\n"
        "else:\n    try:\n        fit(model, optimizer)\n    except OSError:\n        fit(model, optimizer)\n",
        ("o", ["m.pt"], None, 'net.load_state_dict(state["net"])'),
    ),
    "an object that is pickled as it is": (
        "import pickle\nfor epoch in range(9):\n    agent.learn()\n"
        "    with open('o/agent.pkl', 'wb') as file:\n        pickle.dump(agent, file)\n",
        ("o", ["agent.pkl"], None, "every restart may begin anew"),
    ),
    "Keras's own loop": (
        "import keras\nmodel = keras.Sequential([])\nmodel.fit(x, y, epochs=9, callbacks=[own])\n"
        "model.save('o/m.keras')\n",
        ("o", ["m.keras"], None, 'model.fit(x, y, epochs=9, callbacks=[own, BackupAndRestore("o/backup")])'),
    ),
}  # fmt: skip

SEARCHED = (
    f"import glob\nfound = sorted(glob.glob('o/*/m.pt'))\nif found:\n{LOADED.replace('args.resume', 'found[-1]')}"
)
TO_NUMBER = "    n = len(os.listdir('o')) + 1\n    out = f'o/{n}'\n"
CASES |= {
    "a number beside the folder that is looked in": (
        f"{TORCH}p.add_argument('--seed', type=int, default=0)\nargs = p.parse_args()\n"
        f"n = 0\nwhile os.path.exists(f'logs/{{n}}'):\n    n += 1\nout = f'o/seed{{args.seed}}'\n{MADE}{FOUND}"
        f"for epoch in range(first, 9):\n{TURN}    torch.save({STATE}, out + '/m.pt')\n",
        ("o", ["seed*/m.pt"], None, "looks for it and goes on by itself\n"),
    ),
    "all folders of a number are looked in": (
        f"{TORCH}{MADE}{SEARCHED}{ANEW}for epoch in range(first, 9):\n{TURN}    torch.save({STATE}, out + '/m.pt')\n",
        ("o", ["run*/m.pt"], None, "looks for it and goes on by itself\n"),
    ),
    "each save has a number of its own": (
        f"{TORCH}{MADE}{SEARCHED}for epoch in range(first, 9):\n{TURN}{TO_NUMBER}"
        f"    torch.save({STATE}, out + '/m.pt')\n",
        ("o", ["*/m.pt"], None, "looks for it and goes on by itself\n"),
    ),
    "how many turns there are is no number to go on from": (
        f"{RESUMED}for epoch in range(first, args.epochs):\n{TURN}"
        f"    torch.save({STATE}, f'o/{{args.epochs}}_{{epoch}}.pt')\n"
        .replace("'--resume'", "'--resume', action='store_true'")
        .replace("torch.load(args.resume)", "torch.load(os.path.join('o', f'{args.epochs}_{args.epochs}.pt'))"),
        ("o", ["*_*.pt"], ["--resume"], "declares --resume"),
    ),
    "Keras's own loop without callbacks": (
        "import keras\nmodel = keras.Sequential([])\nmodel.fit(x, y, callbacks=None)\nmodel.save('o/m.keras')\n",
        ("o", ["m.keras"], None, 'model.fit(x, y, callbacks=[BackupAndRestore("o/backup")])'),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_a_restart_takes(name: str, initialized) -> None:
    script, (folder, include, resume, words) = CASES[name]
    code, found, said = initialized({"train.py": script})
    assert code == 0, said
    kept = found["checkpoint"]
    assert (kept["path"], kept.get("include"), kept.get("resume_args")) == (folder, include, resume), said
    assert words in said


LOOP = f"for epoch in range(first, args.epochs):\n{TURN}"
NO_DOUBTS = {
    "a callback of a list": f"{RESUMED}class Keeps:\n    def on_end(self, epoch):\n        {SAVE}class Runs:\n"
    "    def __init__(self, calls): self.calls = calls\n    def fit(self):\n"
    f"        for epoch in range(first, args.epochs):\n{TURN.replace('    ', '            ')}"
    "            for each in self.calls:\n                each.on_end(epoch)\nRuns([Keeps()]).fit()\n",
    "a hook that is entered in a list": f"{RESUMED}hooks = []\ndef on(hook):\n    hooks.append(hook)\n@on\n"
    f"def keep(epoch):\n    {SAVE}{LOOP}    for hook in hooks:\n        hook(epoch)\n",
    "a function without a name": f"{RESUMED}keep = lambda epoch: {SAVE}{LOOP}    keep(epoch)\n",
    "what is left to do": f"{RESUMED}n = args.epochs - first\nfor epoch in range(first, first + n):\n{TURN}    {SAVE}",
    "the number of the best": f"{RESUMED}{LOOP}    if args.best_of > 0:\n        {SAVE}".replace(
        "args =", "p.add_argument('--best_of', type=int, default=3)\nargs ="
    ),
    "an epoch is no loss": f"{RESUMED}kept = -1\n{LOOP}    if epoch > kept:\n        kept = epoch\n        {SAVE}",
    "time is no loss": f"import time\n{RESUMED}kept = 0\n{LOOP}    now = time.time()\n    if now > kept:\n"
    f"        kept = now\n        {SAVE}",
    "a start that is told": f"{TORCH}{MADE}if args.first:\n    s = torch.load(f'o/{{args.first}}.pt')\n"
    "    model.load_state_dict(s['model'])\n    optimizer.load_state_dict(s['optimizer'])\n"
    f"for epoch in range(args.first, args.epochs):\n{TURN}    torch.save({STATE}, f'o/{{epoch + 1}}.pt')\n".replace(
        "args =", "p.add_argument('--first', type=int, default=0)\nargs ="
    ).replace("first", "start_epoch").replace("p.add_argument('--resume')\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_DOUBTS)
def test_no_turn_is_doubted(name: str, initialized) -> None:
    code, found, said = initialized({"train.py": NO_DOUBTS[name]})
    assert code == 0, said
    told = found["checkpoint"]["resume_args"]
    assert told[0] == "--resume" or told == ["--start_epoch", "{step}"]
    assert "; but " not in said


def test_what_is_doubted_stands_before_the_lines_and_once(initialized) -> None:
    script = RESUMED.replace("args =", "p.add_argument('--first', type=int, default=0)\nargs =")
    script += f"for epoch in range(args.first, args.first + args.epochs):\n{TURN}{SAVE}"
    _, _, said = initialized({"train.py": script})
    why, lines = said.split(". For it to go on write")
    assert "saves only when its loop has ended" in why
    assert "; " not in lines.split("Next:")[0]


KERAS = (
    "import keras\nmodel = keras.Sequential([])\nmodel.fit(x, y, callbacks=[keras.callbacks.BackupAndRestore({})])\n"
)


@pytest.mark.parametrize(
    ("backup", "saved", "kept"),
    [
        ("'o/backup'", "o/m.keras", ("o", ["backup/**/*", "m.keras"])),
        ("'o/backup'", "m.keras", (".", ["o/backup/**/*", "m.keras"])),
        ("'o', delete_checkpoint=False", "m.keras", ("o", ["**/*"])),
    ],
)
def test_what_keras_removes_at_its_end_is_kept_with_what_it_leaves(backup, saved, kept, initialized) -> None:
    code, found, said = initialized({"train.py": f"{KERAS.format(backup)}model.save('{saved}')\n"})
    assert code == 0, said
    assert (found["checkpoint"]["path"], found["checkpoint"]["include"]) == kept, said
    assert "counts up" not in said


def test_of_a_training_that_leaves_nothing_no_description_is_written(initialized) -> None:
    code, _, said = initialized({"train.py": KERAS.format("'o/backup'")})
    assert (code, "line 3 removes o/backup when it has ended" in said) == (2, True), said
