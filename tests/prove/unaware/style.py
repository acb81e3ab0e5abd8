"""The styles of scripts: how each is started, and how its losses are read from what it prints."""

from __future__ import annotations

import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "deepspeed-zero3"
_PLAIN = r"^step (?P<step>\d+) loss (?P<loss>\S+)"


@dataclass(frozen=True)
class Style:
    """``line`` finds step and loss of one printed line; ``unit`` is what its step counts in, steps.

    ``ranks`` are those of one of ``nodes``. ``share``: so many styles of one kind share the kills.
    """

    name: str
    script: str
    ranks: int
    line: str = _PLAIN
    unit: float = 1.0
    args: tuple[str, ...] = ()
    share: int = 1
    nodes: int = 1

    @property
    def source(self) -> Path:
        """The folder with train.py and run.toml."""
        return SCRIPTS / self.script

    @property
    def folder(self) -> str:
        """Where the script writes its checkpoints."""
        return str(tomllib.loads((self.source / "run.toml").read_text())["checkpoint"]["path"])

    @property
    def arguments(self) -> list[str]:
        """The script's own arguments."""
        return [*tomllib.loads((self.source / "run.toml").read_text()).get("args", []), *self.args]

    def copy(self, work: Path, environ: dict[str, str]) -> None:
        """A fresh copy of the script in ``work``, whose run.toml has these arguments, ranks and variables."""
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.source, work, ignore=shutil.ignore_patterns("__pycache__", ".argosy"))
        text = (work / "run.toml").read_text()
        text = re.sub(r"(?m)^nproc_per_node = .*", f"nproc_per_node = {self.ranks}", text)
        text = re.sub(r"(?m)^args = .*\n", "", text)
        quoted = ", ".join(f'"{argument}"' for argument in self.arguments)
        text = text.replace("\n\n", f"\nargs = [{quoted}]\n\n", 1)
        text += "\n[env]\n" + "".join(f'{name} = "{value}"\n' for name, value in environ.items())
        (work / "run.toml").write_text(text)

    def losses(self, printed: str) -> list[tuple[int, str]]:
        """(step, loss as printed) of each line that tells one."""
        found = []
        for line in re.split(r"[\r\n]+", printed):
            if match := re.search(self.line, line):
                found.append((round(float(match["step"]) * self.unit), match["loss"]))
        return found

    def restarts(self, work: Path) -> list[list[tuple[int, str]]]:
        """(step, loss) as rank 0 of each restart below ``work`` printed them, oldest restart first."""
        logs = work.glob(".argosy/runs/*/nodes/*/pods/*/volumes/tmp/ranks/*-*/rank-0.log")
        ordered = sorted(logs, key=lambda log: [int(number) for number in log.parent.name.split("-")])
        return [self.losses(log.read_text(errors="replace")) for log in ordered]


_TRAINER = r"^\{'loss': '?(?P<loss>[^',]+)'?, .*'epoch': '?(?P<step>[^',}]+)"
STYLES = (
    Style("nanoGPT, 1 rank", "nanogpt", 1, r"^iter (?P<step>\d+): loss (?P<loss>\S+)", share=2),
    Style("nanoGPT, 2 ranks", "nanogpt", 2, r"^iter (?P<step>\d+): loss (?P<loss>\S+)", share=2),
    Style("HF Trainer", "hf-trainer", 2, _TRAINER, unit=256),  # an epoch has 256 steps
    Style("Lightning", "lightning-trainer", 2),
    Style("DeepSpeed ZeRO-1", "deepspeed-zero", 2, args=("--stage", "1"), share=4),
    Style("DeepSpeed ZeRO-2", "deepspeed-zero", 2, args=("--stage", "2"), share=4),
    Style("DeepSpeed ZeRO-3", "deepspeed-zero", 2, args=("--stage", "3"), share=4),
    Style("DeepSpeed example, 2 nodes", str(EXAMPLE), 1, args=("--steps", "120"), share=4, nodes=2),
)
