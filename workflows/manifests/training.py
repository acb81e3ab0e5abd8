"""Which command of a container is the one that trains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from argosy.workflows.manifests.launchers import TRAINERS
from argosy.workflows.manifests.process import program_of

_SCRIPT: Final = re.compile(r"[^\s=]*\.py")
_LIKE_TRAINING: Final = re.compile(
    r"train|tun(e|ing)|sft|dpo|ppo|grpo|ddp|fsdp|distributed|mnist|cifar|imagenet|resnet|pretrain", re.IGNORECASE
)
# What prepares, what waits for callers, and what looks at the outcome.
_NOT_TRAINING: Final = re.compile(
    r"(setup|download|prepare|preprocess|convert|check|wait|test|hostfile|upload)\w*\.py"
    r"|(service|server|serve|serving|api|exporter|dashboard|monitor|consumer|producer|inference|predict)\.py"
)
_TOLD_ONLY: Final = frozenset(("--version", "-V", "--help", "-h"))


def trains(words: Sequence[str], program: str = "") -> bool:
    """Whether the command is a training: a launcher, or Python with a script that is not one of preparation.

    Args:
        program: its name, where it is known already.
    """
    program = program or program_of(words)
    if program in TRAINERS:
        return not tells_only(words)
    if program != "python":
        return False
    code = next((after for word, after in pairwise(words) if word == "-c"), "")
    if "init_process_group" in code:
        return True
    script = next((word for word in words if _SCRIPT.fullmatch(word)), "")
    module = next((after for word, after in pairwise(words) if word == "-m"), "")
    if script:
        return _NOT_TRAINING.search(script) is None
    return re.search(r"train|tune|sft|dpo|ppo", module) is not None


def tells_only(words: Sequence[str]) -> bool:
    """Whether a program is only asked what it is: ``mpirun --version``."""
    return any(word in _TOLD_ONLY for word in words[1:2])


def named_training(words: Sequence[str]) -> bool:
    """Whether the script's name says that it trains; a server or a batch of inference may run alone in several pods."""
    return any(_LIKE_TRAINING.search(word.rsplit("/", 1)[-1]) for word in words if not word.startswith("-"))
