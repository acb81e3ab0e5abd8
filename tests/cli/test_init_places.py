"""Where init finds the checkpoints of scripts that save as public programs do: one way of writing it down a case."""

from __future__ import annotations

import tomllib

import pytest

ARGPARSE = "import argparse\np = argparse.ArgumentParser()\n"
DISTRIBUTED = "torch.nn.parallel.DistributedDataParallel(m)\n"
CASES = {
    "a default of the function that saves, and its copy": (
        {
            "main.py": f"""{ARGPARSE}p.add_argument("--resume", default="", type=str)
def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")
save_checkpoint({{"epoch": 1}}, True)
"""
        },
        (".", ["checkpoint.pth.tar", "model_best.pth.tar"], ["--resume", "checkpoint.pth.tar"], ""),
    ),
    "what self was given by a function's default, and it looks for it itself": (
        {
            "main.py": """
class Trainer:
    def __init__(self, snapshot_path):
        self.snapshot_path = snapshot_path
        if os.path.exists(snapshot_path):
            torch.load(snapshot_path)
    def save(self):
        torch.save({"EPOCHS_RUN": 1}, self.snapshot_path)
def main(snapshot_path: str = "snapshot.pt"):
    Trainer(snapshot_path)
main()
"""
        },
        (".", ["snapshot.pt"], None, "line 5 looks for it and goes on by itself"),
    ),
    "a module beside it, a wrapper with *args, a counter": (
        {
            "main.py": f"""import util.misc as misc
{ARGPARSE}p.add_argument("--output_dir", default="./out")
p.add_argument("--resume")
for epoch in range(3):
    misc.save_model(args=args, epoch=epoch)
""",
            "util/misc.py": """
def save_on_master(*args, **kwargs):
    if is_main():
        torch.save(*args, **kwargs)
def save_model(args, epoch):
    output_dir = Path(args.output_dir)
    paths = [output_dir / ("checkpoint-%s.pth" % str(epoch))]
    for path in paths:
        save_on_master({"optimizer": 1}, path)
""",
        },
        ("out", ["checkpoint-*.pth"], ["--resume", "{newest}"], ""),
    ),
    "a name that is joined to itself, folders by number, Accelerate": (
        {
            "main.py": f"""{ARGPARSE}p.add_argument("--output_dir", default="runs")
p.add_argument("--resume_from_checkpoint")
step = 0
for batch in data:
    step += 1
    output_dir = f"step_{{step}}"
    output_dir = os.path.join(args.output_dir, output_dir)
    accelerator.save_state(output_dir)
"""
        },
        ("runs", ["step_*/**/*"], ["--resume_from_checkpoint", "{newest}"], ""),
    ),
    "a file that is open, and another module's class with our name": (
        {
            "main.py": f"""from checkpoint import Checkpointer
{ARGPARSE}p.add_argument("--save", default="model.pt")
with open(args.save, "wb") as f:
    torch.save(model, f)
""",
            "checkpoint.py": "class Checkpointer: pass\n",
        },
        (".", ["model.pt"], None, "nothing that looks for the files, was seen: every restart may begin anew"),
    ),
    "parameters of a function that Fire makes a command of": (
        {
            "main.py": """import transformers
def train(output_dir: str = "./lora", resume_from_checkpoint: str = None):
    t = transformers.Trainer(args=transformers.TrainingArguments(output_dir=output_dir))
    t.train(resume_from_checkpoint=resume_from_checkpoint)
fire.Fire(train)
"""
        },
        ("lora", None, ["--resume_from_checkpoint", "{newest}"], ""),
    ),
    "Hydra's file, and a load that may miss": (
        {
            "main.py": """import hydra
class Trainer:
    def __init__(self, config):
        self.config = config
        try:
            torch.load(self.config.snapshot_path)
        except FileNotFoundError:
            pass
    def save(self):
        torch.save({"epoch": 1}, self.config.snapshot_path)
@hydra.main(version_base=None, config_path="conf", config_name="gpt")
def main(cfg): ...
""",
            "conf/gpt.yaml": "trainer_config:\n  snapshot_path: gpt_snapshot.pt\n",
        },
        (".", ["gpt_snapshot.pt"], None, "line 6 looks for it"),
    ),
    "the command line of Lightning, which writes where its logger does": (
        {"main.py": "from lightning.pytorch.cli import LightningCLI\nLightningCLI(Model)\n"},
        ("lightning_logs", ["version_*/checkpoints/*.ckpt"], ["--ckpt_path", "{newest}"], 'args = ["fit"]'),
    ),
    "a folder for each run, numbered files in it; several values of a setting": (
        {
            "main.py": f"""{ARGPARSE}p.add_argument("--out", default="")
def save(state, epoch):
    torch.save({{"epoch": epoch}}, f"{{folder}}/ckpt_{{epoch}}.pth")
folder = os.path.join(args.out if args.out else "./results", "-".join([now(), model]))
save(s, "best")
save(s, epoch=7)
"""
        },
        ("results", ["*-*/ckpt_*.pth"], None, ""),
    ),
    "a flag with one dash, and a name that a branch makes longer": (
        {
            "main.py": f"""{ARGPARSE}p.add_argument("-resume", action="store_true")
p.add_argument("--model", default="r50")
def name(opt):
    opt.folder = "save/{{}}_lr".format(opt.model)
    if torch.cuda.is_available():
        opt.folder = "{{}}_cosine".format(opt.folder)
opt = p.parse_args()
name(opt)
if opt.resume:
    torch.load(os.path.join(opt.folder, "last.pth"))
torch.save({{"epoch": 1}}, os.path.join(opt.folder, "last.pth"))
"""
        },
        ("save", ["r50_lr*/last.pth"], ["-resume"], ""),
    ),
    "a function that nobody calls, and the main part of a module": (
        {
            "main.py": "import tools\ntools.log()\ntorch.save({'step': 1}, 'out/a.pt')\n",
            "tools.py": "def log(): ...\ndef merge(): torch.save({'step': 1}, 'merged/b.pt')\n"
            "if __name__ == '__main__':\n    merge()\n",
        },
        ("out", ["a.pt"], None, ""),
    ),
    "a branch that is not taken as the flags are": (
        {
            "main.py": f"""{ARGPARSE}p.add_argument("--mode", default="best")
p.add_argument("--keep", type=bool, default=True)
if args.mode == "all":
    torch.save({{"epoch": 1}}, "all_1.pt")
elif args.mode == "best" and args.keep:
    torch.save({{"epoch": 1}}, "out/best.pt")
"""
        },
        ("out", ["best.pt"], None, ""),
    ),
    "ranks of its own, and a search for what was saved": (
        {
            "main.py": f"""import torch.multiprocessing as mp
{DISTRIBUTED}def scan(folder, prefix):
    return sorted(glob.glob(os.path.join(folder, prefix + "????")))[-1]
def train(rank):
    found = scan("out", "g_")
    torch.save({{"steps": 1}}, "out/g_{{:04d}}".format(steps))
mp.spawn(train, nprocs=4)
"""
        },
        ("out", ["g_*"], None, "line 8: the script starts and counts its ranks itself"),
    ),
    "a flag that names what is loaded": (
        {
            "main.py": f"""{ARGPARSE}p.add_argument("--checkpoint", default=None)
p.add_argument("--pretrained", default=None)
def load(path):
    state = torch.load(path)
    optimizer.load_state_dict(state["optimizer"])
def backbone(): torch.load(args.pretrained)
load(args.checkpoint)
backbone()
torch.save({{"optimizer": 1}}, "out/epoch_%d.pt" % epoch)
"""
        },
        ("out", ["epoch_*.pt"], ["--checkpoint", "{newest}"], ""),
    ),
    "numbers in a name, and ranks that are switched off": (
        {
            "main.py": """distributed = False
if distributed:
    dist.init_process_group("nccl")
torch.save({"epoch": 1}, os.path.join("logs", "ep%03d-%.3f.pth" % (epoch + 1, loss / steps)))
"""
        },
        ("logs", ["ep*-*.pth"], None, "one process"),
    ),
    "ranks by flags, but for env://; options that are unpacked": (
        {
            "main.py": f"""{ARGPARSE}p.add_argument("--dist-url", default="tcp://x:1")
class Trainer:
    def __init__(self, folder="."):
        self.folder = folder
    def save(self):
        torch.save({{"epoch": 1}}, os.path.join(self.folder, "last.pt"))
if args.dist_url == "env://":
    rank = os.environ["RANK"]
{DISTRIBUTED}options = dict(folder="gnmt")
Trainer(**options)
"""
        },
        ("gnmt", ["last.pt"], None, "line 9: the script starts and counts its ranks itself"),
    ),
    "a search that must be asked for": (
        {
            "main.py": """folder = Path("out")
def setup(resume: bool = False):
    if resume:
        found = sorted(folder.glob("*.pt"))
    torch.save({"step": 1}, folder / "a.pt")
"""
        },
        ("out", ["a.pt"], None, "no --resume flag, and nothing that looks for the files, was seen"),
    ),
    "Accelerate, whose ranks each leave a file": (
        {"main.py": "accelerator.save_state(os.path.join('out', f'step_{step}'))\n"},
        ("out", ["step_*/**/*"], None, 'expect = ["random_states_{rank}.pkl"]'),
    ),
    "the whole state before the model alone": (
        {
            "main.py": """torch.save(model.state_dict(), "final/model.pt")
torch.save({"model": m, "optimizer": o}, "ckpt/last.pt")
"""
        },
        ("ckpt", ["last.pt"], None, ""),
    ),
}
REFUSED = {
    "a flag without which nothing is saved": (
        f'{ARGPARSE}p.add_argument("--output_dir", default="")\nif args.output_dir:\n    torch.save(m, "a/b.pt")\n',
        "saves only with --output_dir",
        "argosy init train.py -- --output_dir VALUE",
    ),
    "a flag around the callers": (
        f'{ARGPARSE}p.add_argument("--output_dir", default="")\ndef save(m):\n    torch.save(m, "a/b.pt")\n'
        "if args.output_dir and main:\n    save(m)\n",
        "saves only with --output_dir",
        "-- --output_dir VALUE",
    ),
    "a flag that names the folder": (
        f'{ARGPARSE}p.add_argument("-o", "--output", required=True)\n'
        'def save(folder):\n    torch.save(m, os.path.join(folder, "a.pt"))\nsave(args.output)\n',
        "line 5 saves where --output says, which has no value",
        "argosy init train.py -- --output VALUE",
    ),
    "a flag that names a folder elsewhere": (
        f'{ARGPARSE}p.add_argument("--results", default="/results")\ntorch.save(m, join(args.results, "a.pt"))\n',
        "line 4 saves where --results says, which is /results",
        "argosy init train.py -- --results out",
    ),
    "a text of which nothing is known": ("torch.save(m, path + '.bpe')\n", "line 1", "--opaque FOLDER"),
    "the same, in another's attribute": ('torch.save(m, f"{self.path}_{it}.pth")\n', "line 1", "--opaque FOLDER"),
    "a folder of a run, which a flag may name": (
        f'{ARGPARSE}p.add_argument("--out", default=ROOT / "runs")\ntorch.save(m, os.path.join(args.out, "a.pt"))\n',
        "line 4",
        "--opaque FOLDER",
    ),
    "a folder of the user's own": (
        'torch.save(m, os.path.join(os.path.expanduser("~"), "a.pt"))\n',
        "line 1: ~",
        "write a folder below that one there",
    ),
    "a switch": (
        f'{ARGPARSE}p.add_argument("--save-model", action="store_true")\n'
        'if args.save_model:\n    torch.save(m, "m.pt")\n',
        "saves only with --save-model",
        "argosy init train.py -- --save-model`",
    ),
    "Lightning that never goes on": (
        "import lightning as L\nL.Trainer(max_epochs=2).fit(m)\n",
        "lightning.Trainer saves where only a run could tell",
        "ModelCheckpoint(dirpath='checkpoints', save_last=True)",
    ),
    "names that stand for themselves": ("a = b\nb = a\ntorch.save(m, a)\n", "line 3", "--opaque FOLDER"),
    "functions that call themselves": ("def f(x): return f(x)\ntorch.save(m, f(f))\n", "line 2", "--opaque FOLDER"),
}


@pytest.mark.parametrize("name", CASES)
def test_where_it_saves_and_how_it_goes_on(name: str, argosy, tmp_path) -> None:
    files, (folder, include, resume, said) = CASES[name]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    code, out, err = argosy("init", "main.py")
    assert code == 0, err
    found = tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]
    assert (found["path"], found.get("include"), found.get("resume_args")) == (folder, include, resume)
    assert said in out


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_guessed_is_refused_with_what_to_write(name: str, argosy, tmp_path) -> None:
    script, why, remedy = REFUSED[name]
    (tmp_path / "train.py").write_text(script)
    code, _, err = argosy("init", "train.py")
    assert code == 2
    assert why in err
    assert remedy in err
    assert not (tmp_path / "run.toml").exists()


def test_a_flag_that_is_given_is_believed(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(REFUSED["a switch"][0])
    code, _, err = argosy("init", "train.py", "--", "--save-model")
    assert code == 0, err
    assert tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]["include"] == ["m.pt"]


def test_modules_that_import_each_other_and_one_that_is_broken(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("import other, broken\ntorch.save({'step': 1}, other.NAME)\n")
    (tmp_path / "other.py").write_text("import train\nNAME = 'x/last.pt'\n")
    (tmp_path / "broken.py").write_text("def (:\n")
    code, _, err = argosy("init", "train.py")
    assert code == 0, err
    assert tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]["path"] == "x"


def test_callers_of_callers_of_callers_are_not_all_asked(argosy, tmp_path) -> None:
    lines = ["def save0(path):", "    torch.save({'step': 1}, path)"]
    for depth in range(1, 5):
        lines += [f"def save{depth}(path):", *[f"    save{depth - 1}(path)"] * 60]
    (tmp_path / "train.py").write_text("\n".join([*lines, *["save4('out/a.pt')"] * 60]))
    code, _, err = argosy("init", "train.py")
    assert code == 0, err
    assert tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]["path"] == "out"


@pytest.mark.parametrize(
    ("ranks", "found"),
    [("1x2", {}), ("2x1", {"expect": ["__{rank}_*.distcp"], "writers": "every", "reshard": "all"})],
)
def test_ranks_of_several_nodes_each_save_their_part(ranks: str, found: dict[str, object], argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("dcp.save(state, checkpoint_id=f'out/step-{step}')\n")
    code, _, err = argosy("init", "train.py", "-j", ranks)
    assert code == 0, err
    written = tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]
    assert written == {"mode": "opaque", "path": "out", "include": ["step-*/**/*"], **found}


def test_what_run_would_refuse_is_not_written(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("torch.save({'step': 1}, 'out/a.pt')\n")
    code, _, err = argosy("init", "train.py", "--resume-arg", "{foo}")
    assert (code, "{foo}" in err) == (2, True)
    assert not (tmp_path / "run.toml").exists()


def test_too_many_nodes_are_told_how_many_there_may_be(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("torch.save({'step': 1}, 'out/a.pt')\n")
    code, _, err = argosy("init", "train.py", "-j", "2000000x1")
    assert (code, "more than 100000 nodes" in err) == (2, True)


def test_an_event_that_is_not_there_is_no_missing_run(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text("torch.save({'step': 1}, 'out/a.pt')\n")
    assert argosy("init", "train.py")[0] == 0
    code, _, err = argosy("run", "run.toml", "--event", "nope.json")
    assert (code, "--event nope.json: no such file" in err, "init" in err) == (2, True, False)


@pytest.mark.parametrize(
    ("begins", "flag"),
    [
        ("@click.command()\n@click.option('--out-dir', 'out', default='kept')\ndef main(out):", "--out-dir"),
        ("def main(out: str = typer.Option('kept')):", "--out"),
        ("def main(out: str = typer.Option('kept', '--out-dir', '-o', help='where')):", "--out-dir"),
        ("@app.command()\ndef main(out: str = typer.Option('kept', '--out-dir')):", "--out-dir"),
        ("@app.command()\ndef main(*, out: str = typer.Option(default='kept')):", "--out"),
    ],
)
def test_an_option_of_click_and_typer_gives_its_parameter_what_it_says(
    begins: str, flag: str, argosy, tmp_path
) -> None:
    end = "typer.run(main)" if begins.startswith("def") else "main()" if "click" in begins else "app()"
    head = "import click, os, torch, typer\napp = typer.Typer()\n"
    save = "\n    os.makedirs(out, exist_ok=True)\n    torch.save({'step': 1}, os.path.join(out, 'a.pt'))\n"
    (tmp_path / "train.py").write_text(f"{head}{begins}{save}{end}\n")
    for args, path in (([], "kept"), (["--", flag, "told"], "told")):
        code, _, err = argosy("init", "train.py", "--force", *args)
        assert code == 0, err
        assert tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]["path"] == path
