"""Which command of a container is the one that trains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from argosy.workflows.lint.view.process import program_of

LAUNCHERS: Final = (
    *("torchrun", "torch.distributed.launch", "deepspeed", "accelerate", "mpirun", "mpiexec", "horovodrun", "orterun"),
    *("colossalai", "composer", "axolotl", "llamafactory-cli", "ft_launcher", "dlrover-run"),
)
_SCRIPT: Final = re.compile(r"[^\s=]*\.py")
_NOT_TRAINING: Final = re.compile(r"(setup|download|prepare|preprocess|convert|check|wait|test|hostfile|upload)\w*\.py")


def is_launcher(words: Sequence[str]) -> bool:
    """Whether the command starts ranks."""
    return program_of(words) in LAUNCHERS


def trains(words: Sequence[str]) -> bool:
    """Whether the command is a training: a launcher, or Python with a script that is not one of preparation."""
    program = program_of(words)
    if program in LAUNCHERS:
        return True
    if program != "python":
        return False
    script = next((word for word in words if _SCRIPT.fullmatch(word)), "")
    return bool(script) and _NOT_TRAINING.search(script) is None
