"""The styles of scripts: how each is started, what it prints, and the step that its files hold."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.prove.unaware.account import CLI

SCRIPTS = Path(__file__).parent / "scripts"
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "deepspeed-zero3"
MODEL = "pytorch_model.bin"
_PLAIN = r"^step (?P<step>\d+) loss (?P<loss>\S+)"


@dataclass(frozen=True)
class Style:
    """``line`` finds step and loss of one printed line, and perhaps an epoch of ``per_epoch`` steps; ``unit`` is what
    its step counts in, steps.

    ``ranks`` are those of one of ``nodes``. ``share``: so many styles of one kind share the kills. ``saved`` reads the
    step of a checkpoint from its files; ``result`` is what the script leaves at its end, in its checkpoint folder.
    ``shuffles``: resumed, it draws its samples in another order than one that was never stopped, argosy or not, for
    nobody saves the generator that its DataLoader shuffles with.
    """

    name: str
    script: str
    nodes: int
    ranks: int
    saved: Callable[[Path], float]
    result: str
    line: str = _PLAIN
    unit: float = 1.0
    per_epoch: int = 0
    args: tuple[str, ...] = ()
    share: int = 2
    shuffles: bool = False
    launcher: str = "torchrun"

    @property
    def source(self) -> Path:
        """The folder with train.py."""
        return SCRIPTS / self.script

    @property
    def one_more(self) -> bool:
        """Whether it makes a step more when it is resumed at its last one: HF's Trainer does, argosy or not."""
        return self.script == "hf-trainer"

    def copy(self, work: Path, environ: Mapping[str, str]) -> dict[str, Any]:
        """A fresh copy of the script in ``work``; its run.toml: what ``argosy init`` writes, but for the variables and
        that each checkpoint is kept, so that all can be judged.
        """
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.source, work, ignore=shutil.ignore_patterns("__pycache__", ".argosy"))
        file = work / "run.toml"
        if not file.exists():
            init = [sys.executable, *CLI, "init", "train.py", "-j", f"{self.nodes}x{self.ranks}"]
            subprocess.run([*init, "--", *self.args], cwd=work, check=True, capture_output=True)
        text = re.sub(r"(?m)^(\[checkpoint\])$", r"\1\nkeep = 0", file.read_text())
        if self.args and "args" not in tomllib.loads(text):
            text = text.replace("\n\n", f"\nargs = {json.dumps(self.args)}\n\n", 1)
        text += "\n[env]\n" + "".join(f'{name} = "{value}"\n' for name, value in environ.items())
        file.write_text(text)
        return tomllib.loads(text)

    def losses(self, printed: str) -> list[tuple[int, str]]:
        """(step, loss as printed) of each line that tells one."""
        found = []
        for line in re.split(r"[\r\n]+", printed):
            if match := re.search(self.line, line):
                epoch = int(match["epoch"]) * self.per_epoch if self.per_epoch else 0
                found.append((epoch + round(float(match["step"]) * self.unit), match["loss"]))
        return found

    def restarts(self, work: Path) -> list[list[tuple[int, str]]]:
        """(step, loss) as rank 0 of each restart below ``work`` printed them, oldest restart first."""
        logs = work.glob(".argosy/runs/*/nodes/*/pods/*/volumes/tmp/ranks/*-*/rank-0.log")
        ordered = sorted(logs, key=lambda log: [int(number) for number in log.parent.name.split("-")])
        return [self.losses(log.read_text(errors="replace")) for log in ordered]


def _torch(folder: Path, glob: str) -> Any:
    import torch

    newest = max(folder.glob(glob), key=lambda path: torch.load(path, weights_only=True).get("global_step", 0))
    return torch.load(newest, weights_only=True)


def _nanogpt(folder: Path) -> float:
    return float(_torch(folder, "ckpt.pt")["iter_num"])


def _trainer(folder: Path) -> float:
    (state,) = folder.glob("checkpoint-*/trainer_state.json")
    return float(json.loads(state.read_text())["global_step"])


def _lightning(folder: Path) -> float:
    return float(_torch(folder, "epoch=*.ckpt")["global_step"])


def _accelerate(folder: Path) -> float:
    """The name is not asked: Adam counts its steps."""
    return float(_torch(folder, "step_*/optimizer.bin")["state"][0]["step"])


def _deepspeed(folder: Path) -> float:
    latest = folder / "latest"  # a commit without it is one that nobody can go on from
    return float(latest.read_text().removeprefix("global_step")) if latest.exists() else -1.0


def _arrays(folder: Path) -> float:
    import numpy

    with numpy.load(max(folder.glob("state_*.npz"))) as archive:
        return float(archive["step"])


def _orbax(folder: Path) -> float:
    (told,) = folder.glob("*/told/metadata")
    return float(json.loads(told.read_text())["step"])


def _imagenet(per_epoch: int) -> Callable[[Path], float]:
    return lambda folder: float(_torch(folder, "checkpoint.pth.tar")["epoch"]) * per_epoch


_NANOGPT = r"^iter (?P<step>\d+): loss (?P<loss>\S+)"
_TRAINER = r"^\{'loss': '?(?P<loss>[^',]+)'?, .*'epoch': '?(?P<step>[^',}]+)"
_ACCELERATE = r"epoch (?P<epoch>\d+) batch (?P<step>\d+)/\d+: loss (?P<loss>\S+)"
_IMAGENET = r"^Epoch: \[(?P<epoch>\d+)\]\[ *(?P<step>\d+)/\d+\].*Loss (?P<loss>\S+)"
_OUT = ("--output_dir", "out")
_EXACT = ("--steps", "400", "--save_every", "5", "--torch_adam")
"""DeepSpeedCPUAdam multiplies its bias correction on from step to step and takes a power after a resume, which rounds
otherwise: its losses go on equal to about 1e-5 only, argosy or not.
"""
STYLES = (
    Style("nanoGPT 1x1", "nanogpt", 1, 1, _nanogpt, "ckpt.pt", _NANOGPT),
    Style("nanoGPT 2x1", "nanogpt", 2, 1, _nanogpt, "ckpt.pt", _NANOGPT),
    # An epoch of 4096 rows in batches of 8.
    Style("HF Trainer 1x1", "hf-trainer", 1, 1, _trainer, "model.safetensors", _TRAINER, unit=512, args=_OUT),
    Style("HF Trainer 2x1", "hf-trainer", 2, 1, _trainer, "model.safetensors", _TRAINER, unit=256, args=_OUT),
    Style("Lightning 1x1", "lightning-trainer", 1, 1, _lightning, "model.pt", shuffles=True),
    Style("Lightning 2x1", "lightning-trainer", 2, 1, _lightning, "model.pt"),
    Style(
        "Accelerate 1x1",
        "accelerate-loop",
        1,
        1,
        _accelerate,
        "model.safetensors",
        _ACCELERATE,
        per_epoch=80,
        shuffles=True,
    ),
    Style(
        "Accelerate 2x1",
        "accelerate-loop",
        2,
        1,
        _accelerate,
        "model.safetensors",
        _ACCELERATE,
        per_epoch=40,
        shuffles=True,
    ),
    Style("ImageNet 1x1", "imagenet", 1, 1, _imagenet(10), "checkpoint.pth.tar", _IMAGENET, per_epoch=10),
    Style("ImageNet 2x1", "imagenet", 2, 1, _imagenet(5), "checkpoint.pth.tar", _IMAGENET, per_epoch=5),
    Style("DeepSpeed ZeRO-1 1x2", "deepspeed-zero", 1, 2, _deepspeed, "latest", args=("--stage", "1")),
    Style("DeepSpeed ZeRO-3 1x2", "deepspeed-zero", 1, 2, _deepspeed, "latest", args=("--stage", "3")),
    Style("JAX and Orbax 1x1", "jax-orbax", 1, 1, _orbax, "final.npy", launcher="plain"),
    Style("JAX, Orbax, one volume 2x1", "jax-sharded", 2, 1, _orbax, "300/_CHECKPOINT_METADATA", launcher="plain"),
    Style("JAX 2x1", "jax-arrays", 2, 1, _arrays, "final.npz", launcher="plain"),
    Style("DeepSpeed example 2x1", str(EXAMPLE), 2, 1, _deepspeed, MODEL, args=_EXACT, share=1),
)
