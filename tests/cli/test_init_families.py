"""init on scripts of libraries and habits beside plain torch: one way of saving or of being told a case."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

ABSL = "from absl import flags\nFLAGS = flags.FLAGS\nflags.DEFINE_string('logs', None, 'w')\n"
RESUME = 'p.add_argument("--resume")\n'
HYDRA = "import hydra, lightning\n@hydra.main({}config_path='conf', config_name='main')\ndef main(cfg):\n"
CONFIG = {"dirs": {"out": "runs/a"}, "model": "tiny"}
CASES = {
    "Keras' callback, by a class that inherits from it, and weights that are looked for": (
        {
            "main.py": """from keras.callbacks import ModelCheckpoint
class Keeper(ModelCheckpoint): pass
NAME = "best-{epoch:02d}.h5"
keeper = Keeper(filepath="weights/" + NAME)
if os.path.exists("weights/best-01.h5"):
    model.load_weights("weights/best-01.h5")
"""
        },
        (),
        ("weights", ["best-*.h5"], None, "line 5 looks for it"),
    ),
    "a look that loads nothing": (
        {
            "main.py": f"""p = argparse.ArgumentParser()
{RESUME}def fresh(path):
    if os.path.exists(path):
        raise OSError(path)
fresh("out/last.pt")
torch.save({{"step": 1}}, "out/last.pt")
"""
        },
        (),
        ("out", ["last.pt"], ["--resume", "out/last.pt"], ""),
    ),
    "a search that removes what is old": (
        {
            "main.py": """def save(epoch):
    torch.save({"epoch": epoch}, f"out/{epoch}.pt")
    for old in glob.glob("out/*.pt"):
        os.remove(old)
save(1)
"""
        },
        (),
        ("out", ["*.pt"], None, "every restart may begin anew"),
    ),
    "absl's flags, and flax that asks for the newest": (
        {
            "main.py": f"""{ABSL}from flax.training import checkpoints
def fit(folder):
    state = checkpoints.restore_checkpoint(folder, state)
    checkpoints.save_checkpoint(folder, state, step)
fit(FLAGS.logs)
"""
        },
        ("--", "--logs", "out"),
        ("out", ["checkpoint_*/**/*"], None, "line 6 looks for it and goes on by itself"),
    ),
    "orbax's manager, whose path is made where it is, and that is asked for the newest": (
        {
            "main.py": """import orbax.checkpoint as ocp
p = argparse.ArgumentParser()
p.add_argument("--out", default="runs")
args = p.parse_args()
manager = ocp.CheckpointManager(os.path.abspath(args.out))
if manager.latest_step() is not None:
    state = manager.restore(manager.latest_step())
manager.save(1, state)
"""
        },
        (),
        ("runs", ["*[0-9]/**/*"], None, "looks for it and goes on by itself"),
    ),
    "ignite, and a folder that is made longer": (
        {
            "main.py": f"""from ignite.handlers import DiskSaver
p = argparse.ArgumentParser()
p.add_argument("--out", default="runs")
{RESUME}args.out = os.path.join(args.out, args.name)
DiskSaver(args.out)
"""
        },
        ("--", "--out", "mine"),
        ("mine", ["*/*checkpoint_*.pt"], ["--resume", "{newest}"], ""),
    ),
    "a file of settings that an argument names, and folders in a tuple": (
        {
            "main.py": """def train(config, folders):
    logs, checkpoints = folders
    torch.save({"epoch": 1}, os.path.join(checkpoints, "last.pt"))
config = json.load(open(args.config))
name = config["dirs"]["out"] + "/" + config["model"]
train(config, (name + "/logs", name + "/ckpt"))
""",
            "tiny.json": json.dumps(CONFIG),
        },
        ("--", "--config", "tiny.json"),
        ("runs/a/tiny/ckpt", ["last.pt"], None, ""),
    ),
    "Hydra's groups, Lightning made of them": (
        {
            "main.py": HYDRA.format("version_base='1.3', ")
            + "    trainer = hydra.utils.instantiate(cfg.trainer)\n    trainer.fit(m, ckpt_path=cfg.ckpt_path)\n",
            "conf/main.yaml": "defaults:\n- callbacks: usual\nckpt_path: null\nwhere: ${hydra:runtime.output_dir}\n",
            "conf/callbacks/usual.yaml": "keep:\n  _target_: lightning.ModelCheckpoint\n  dirpath: ${where}/ckpt\n",
        },
        ("--", "hydra.run.dir=out"),
        ("out/ckpt", ["*.ckpt"], ["ckpt_path='{newest}'"], ""),
    ),
    "Hydra that gives each start a folder": (
        {"main.py": HYDRA.format("") + "    torch.save({'epoch': 1}, cfg.file)\n", "conf/main.yaml": "file: ck/a.pt\n"},
        (),
        ("ck", ["a.pt"], None, 'args = ["hydra.run.dir=."]'),
    ),
    "a library that saves where a setting of its own says": (
        {
            "main.py": """from mmengine.config import Config
p.add_argument("config")
p.add_argument("--work-dir")
p.add_argument("--resume", action="store_true")
cfg = Config.fromfile(args.config)
"""
        },
        ("--", "c.py", "--work-dir", "out"),
        ("out", ["*.pth", "last_checkpoint"], ["--resume"], "mmengine saves there"),
    ),
    "a flag of several programs that this one never reads": (
        {
            "main.py": "from flags import args\naccelerator.save_state(f'{args.out}/s_{step}')\n",
            "flags.py": f'p = argparse.ArgumentParser()\np.add_argument("--out", default="o")\n{RESUME}'
            "args = p.parse_args()\n",
        },
        (),
        ("o", ["s_*/**/*"], None, 'expect = ["random_states_{rank}.pkl"]'),
    ),
    "several files in a save, one of which is loaded": (
        {
            "main.py": f"""p = argparse.ArgumentParser()
{RESUME}torch.save(model, f"out/m_{{step}}.pt")
torch.save(ema, f"out/e_{{step}}.pt")
"""
        },
        (),
        ("out", ["m_*.pt", "e_*.pt"], None, "each save writes several files (m_*.pt, e_*.pt); say which"),
    ),
    "a method that bears a function's name": (
        {
            "main.py": """from keep import save
class Log:
    def save(self, state, path): ...
log.save(1, where())
save({"epoch": 1}, "out/a.pt")
""",
            "keep.py": "def save(state, path):\n    torch.save(state, path)\n",
        },
        (),
        ("out", ["a.pt"], None, ""),
    ),
}
REFUSED = {
    "a setting of a library": (
        "from mmengine import Config\nConfig.fromfile(x)\n",
        "argosy init main.py -- CONFIG --work-dir out",
    ),
    "a flag behind a tuple and a format": (
        """p.add_argument("--root")
def fit(folders):
    a, b = folders
    torch.save(m, "{}.pt".format(b + "/x"))
root = args.root
fit((1, root + "/ckpt"))
""",
        "argosy init main.py -- --root VALUE",
    ),
    "a file of settings": (
        'p.add_argument("--config")\ncfg = load(args.config)\ntorch.save(m, where(cfg))\n',
        "argosy init main.py -- --config FILE",
    ),
}


def _lay(files: dict[str, str], folder: Path) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.mark.parametrize("name", CASES)
def test_where_a_library_saves_and_how_it_goes_on(name: str, argosy, tmp_path) -> None:
    files, argv, (folder, include, resume, said) = CASES[name]
    _lay(files, tmp_path)
    code, out, err = argosy("init", "main.py", *(("-j", "1x2") if "expect" in said else ()), *argv)
    assert code == 0, err
    found = tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]
    assert (found["path"], found.get("include"), found.get("resume_args")) == (folder, include, resume)
    assert said in out


@pytest.mark.parametrize("name", REFUSED)
def test_what_to_say_is_named(name: str, argosy, tmp_path) -> None:
    script, remedy = REFUSED[name]
    _lay({"main.py": script}, tmp_path)
    code, _, err = argosy("init", "main.py")
    assert (code, remedy in err) == (2, True), err


@pytest.mark.parametrize(
    "guard", ["if accelerator.is_main_process:", "if not is_main_process():\n        return\n    if 1:"]
)
def test_what_one_rank_saves_is_expected_of_no_other(guard: str, argosy, tmp_path) -> None:
    _lay({"main.py": f"def save():\n    {guard}\n        accelerator.save_state(f'o/s_{{step}}')\nsave()\n"}, tmp_path)
    code, _, err = argosy("init", "main.py", "-j", "1x2")
    assert code == 0, err
    assert "expect" not in tomllib.loads((tmp_path / "run.toml").read_text())["checkpoint"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("x = " + "f(" * 5000 + "1" + ")" * 5000, "not Python"),
        ("x = 1" + " + 1" * 60_000, "not Python"),
        ("def (:\n", "main.py:1: not Python"),
        ("x = 1\n" * 2_000_000, "larger than 4 MiB"),
    ],
    ids=["nested calls", "a long sum", "a syntax error", "ten MB"],
)
def test_a_hostile_script_is_refused_in_a_sentence(script: str, said: str, argosy, tmp_path) -> None:
    _lay({"main.py": script}, tmp_path)
    code, _, err = argosy("init", "main.py")
    assert (code, said in err, "Traceback" in err) == (2, True, False), err[:500]
