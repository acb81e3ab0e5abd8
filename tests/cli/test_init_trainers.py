"""init on scripts that leave saving to a library: the same files that `make prove SUITE=opaque-kills` is run with."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from argosy.workflows.spec.load import load_run

SCRIPTS = Path(__file__).resolve().parents[1] / "prove" / "unaware" / "scripts"
HF = "from transformers import Trainer, TrainingArguments\n"
LIGHTNING = "import lightning as L\nfrom lightning.pytorch.callbacks import ModelCheckpoint\n"


RAYS = """
from ray.train.torch import TorchTrainer
from transformers import HfArgumentParser
from builder import trainer_of
args, = HfArgumentParser(Arguments).parse_args_into_dataclasses()
if args.use_ray:
    TorchTrainer(trainer_of, train_loop_config=vars(args)).fit()
else:
    trainer_of(args).train()
"""


@pytest.fixture
def written(argosy, tmp_path):
    """The [checkpoint] and [gang] that init writes for a script, and what it said."""

    def call(script: str, *argv: str):
        (tmp_path / "train.py").write_text(script)
        code, out, err = argosy("init", "train.py", "-o", "run.toml", "--force", *argv)
        assert code == 0, err
        load_run(tmp_path / "run.toml")
        found = tomllib.loads((tmp_path / "run.toml").read_text())
        return found["checkpoint"], found["gang"], out

    return call


OPAQUE = {"mode": "opaque"}
LATEST = ["--resume_from_checkpoint", "{newest}"]
LIGHT = {"path": "checkpoints", "include": ["*.ckpt"], "unit": ["epoch=*.ckpt"]}
PROVED = [
    ("nanogpt", {"path": "out", "include": ["ckpt.pt"], "resume_args": ["--init_from=resume"]}),
    (
        "hf-trainer",
        {"path": "out", "expect": ["rng_state_{rank}.pth"], "marker": "trainer_state.json", "resume_args": LATEST},
    ),
    ("lightning-trainer", {**LIGHT, "resume_args": ["--ckpt_path", "{newest}"]}),
    (
        "accelerate-loop",
        {"path": "out", "include": ["step_*/**/*"], "expect": ["random_states_{rank}.pkl"], "resume_args": LATEST},
    ),
    (
        "imagenet",
        {
            "path": ".",
            "include": ["checkpoint.pth.tar", "model_best.pth.tar"],
            "resume_args": ["--resume", "checkpoint.pth.tar"],
        },
    ),
    (
        "deepspeed-zero",
        {
            "path": "checkpoints",
            "expect": ["*zero_pp_rank_{rank}_*optim_states.pt"],
            "marker": "latest",
            "resume_args": ["--resume"],
        },
    ),
]


@pytest.mark.parametrize(("style", "wanted"), PROVED)
def test_what_is_proved_is_what_init_writes(style, wanted, written) -> None:
    args = ("--", "--output_dir", "out") if style == "hf-trainer" else ()
    checkpoint, gang, _ = written((SCRIPTS / style / "train.py").read_text(), "-j", "1x2", *args)
    assert checkpoint == {**OPAQUE, **wanted}
    assert gang == {"nnodes": 1, "nproc_per_node": 2}


def test_ranks_on_several_nodes_write_to_several_disks(written) -> None:
    script = f'{HF}t = Trainer(args=TrainingArguments("o"))\nt.train(resume_from_checkpoint=x)\n'
    checkpoint, gang, _ = written(script, "-j", "2x4")
    assert (checkpoint["writers"], checkpoint["reshard"]) == ("every", "all")
    assert "marker" not in checkpoint
    assert gang == {"nnodes": 2, "nproc_per_node": 4}


def test_one_rank_leaves_no_file_with_its_number(written) -> None:
    script = f'{HF}Trainer(args=TrainingArguments(output_dir="runs/a")).train()\n'
    assert "HFCallback()]" not in written(f"from argosy.integrations import HFCallback\n{script}")[2]
    checkpoint, gang, out = written(script)
    assert "callbacks=[argosy.integrations.HFCallback()]: each step" in out
    assert (checkpoint["path"], checkpoint["marker"]) == ("runs/a", "trainer_state.json")
    assert "expect" not in checkpoint
    assert gang == {"nnodes": 1, "nproc_per_node": 1}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("t.train()", "the script never tells transformers.Trainer to go on"),
        ("t.train(resume_from_checkpoint=None)", "the script never tells"),
        (
            "t.train(resume_from_checkpoint=True)",
            "the script asks transformers.Trainer for its newest checkpoint itself",
        ),
        ("last = get_last_checkpoint('o'); t.train(resume_from_checkpoint=last)", "for its newest checkpoint itself"),
        ("t.train(resume_from_checkpoint=args.where)", "no --resume flag, and nothing"),
    ],
)
def test_no_argument_that_the_script_would_not_understand(call, said, written) -> None:
    checkpoint, _, out = written(f'{HF}t = Trainer(args=TrainingArguments(output_dir="o"))\n{call}\n')
    assert "resume_args" not in checkpoint
    assert said in out


def test_a_flag_of_the_scripts_own(written) -> None:
    script = f'{HF}p.add_argument("--resume_from_checkpoint")\nt = Trainer(args=TrainingArguments(output_dir="o"))\n'
    checkpoint, _, _ = written(f"{script}t.train(resume_from_checkpoint=a.resume_from_checkpoint)\n")
    assert checkpoint["resume_args"] == ["--resume_from_checkpoint", "{newest}"]


def test_the_folder_that_is_looked_in_is_no_state_to_go_on_from(written) -> None:
    script = f"{HF}import argparse\nfrom transformers.trainer_utils import get_last_checkpoint\n"
    script += 'p = argparse.ArgumentParser()\np.add_argument("--output_dir", default="o")\n'
    script += 'p.add_argument("--epochs", type=int, default=3)\na = p.parse_args()\n'
    script += "last = get_last_checkpoint(a.output_dir) if os.path.isdir(a.output_dir) else None\n"
    script += "t = Trainer(args=TrainingArguments(output_dir=a.output_dir, num_train_epochs=a.epochs))\n"
    checkpoint, _, out = written(f"import os\n{script}t.train(resume_from_checkpoint=last)\n")
    assert "resume_args" not in checkpoint
    assert "for its newest checkpoint itself" in out
    assert "kill:rank=0@step=50" in out  # three epochs are no three steps


@pytest.mark.parametrize(
    ("script", "left"),
    [
        (f'{HF}args = TrainingArguments(output_dir="o")\ntrainer = Trainer(args=args)\ntrainer.train()\n'
         'trainer.save_model("o/best")\ntrainer.save_model()\ntrainer.save_model("final")\n', "line 7: final"),
        (f'{LIGHTNING}trainer = L.Trainer(callbacks=[ModelCheckpoint(dirpath="o")])\ntrainer.fit(M())\n'
         'trainer.save_checkpoint("final.ckpt")\n', "line 5: final.ckpt"),
    ],
)  # fmt: skip
def test_a_final_model_beside_the_trainers_folder_is_said_to_be_lost(script, left, written) -> None:
    assert f"not kept ({left}): save it below o, as in o/final\n" in written(script)[2]


def test_a_trainer_of_the_scripts_own_saves_what_its_method_saves(written) -> None:
    script = "import torch\nclass Trainer:\n    def save_model(self, path):\n"
    script += "        torch.save({'m': 1, 'opt': 2}, path)\n"
    checkpoint, _, out = written(f"{script}trainer = Trainer()\nfor i in range(9):\n    trainer.save_model('o/m.pt')\n")
    assert (checkpoint["path"], checkpoint["include"], "not kept" in out) == ("o", ["m.pt"], False)


def test_lightning_has_as_many_ranks_as_it_was_told(written) -> None:
    script = f'{LIGHTNING}L.Trainer(devices=2, callbacks=[ModelCheckpoint("ck")]).fit(m, ckpt_path="last")\n'
    checkpoint, gang, out = written(script)
    assert gang == {"nnodes": 1, "nproc_per_node": 2}
    assert checkpoint == {"mode": "opaque", "path": "ck", "include": ["*.ckpt"], "unit": ["epoch=*.ckpt"]}
    assert "for its newest checkpoint itself" in out


def test_lightning_goes_on_by_the_lines_that_init_says_to_write(written) -> None:
    newest = "'ck/last.ckpt' if os.path.exists('ck/last.ckpt') else None"
    saves = 'callbacks=[ModelCheckpoint("ck", save_last=True)]'
    _, _, out = written(f"import os\n{LIGHTNING}L.Trainer({saves}).fit(m, ckpt_path={newest})\n")
    assert "for its newest checkpoint itself" in out


@pytest.mark.parametrize(
    ("script", "remedy"),
    [
        (
            f"{LIGHTNING}t = L.Trainer(logger=False)\nt.fit(m)\n",
            "line 3: L.Trainer(logger=False, callbacks=[ModelCheckpoint(dirpath='checkpoints', save_last=True)])",
        ),
        (f"{HF}Trainer(args=TrainingArguments(output_dir=where()))\n", "--output_dir out"),
        ("import deepspeed\nengine.save_checkpoint(where())\n", "--opaque FOLDER"),
    ],
)
def test_a_folder_that_cannot_be_read_is_not_guessed(script, remedy, argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(script)
    code, _, err = argosy("init", "train.py")
    assert code == 2
    assert remedy in err
    assert "saves where only a run could tell" in err


def test_a_folder_of_each_start_that_no_flag_names_is_written_down(initialized) -> None:
    script = "import datetime\nfrom sentence_transformers import SentenceTransformerTrainer, "
    script += "SentenceTransformerTrainingArguments\nimport transformers\nout = f'o/{datetime.datetime.now()}'\n"
    script += (
        "args = SentenceTransformerTrainingArguments(output_dir=out)\nSentenceTransformerTrainer(args=args).train()\n"
    )
    code, _, said = initialized({"train.py": script})
    assert (code, "write `out = 'out'` before line 5, and call argosy init again" in said) == (2, True), said


def test_rays_trainer_is_not_said_to_be_of_transformers(written) -> None:
    """As in axolotl, which makes the Trainer elsewhere and Ray's around it where a setting asks for it."""
    _, _, said = written(RAYS, "--", "--output_dir", "out")
    assert "transformers.Trainer saves there" in said
    assert "TorchTrainer" not in said


def test_a_line_to_write_leaves_out_what_the_script_has(initialized) -> None:
    script = (
        "import lightning as L\nk = L.pytorch.callbacks.ModelCheckpoint(dirpath='c'{})\n"
        "t = L.Trainer(callbacks=[k])\nt.fit(net, data)\n"
    )
    for own, words in (("", "ckpt_path='last') in line 4; save_last=True in its"), (", save_last=True", "line 4, and")):
        _, _, said = initialized({"train.py": script.format(own)})
        assert words in said
