"""Launchers of ranks: their options stand before the script, and they start Python themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.process import Process

_OWN: Final = {
    "torchrun": ("nnodes", "nproc-per-node", "node-rank", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "max-restarts"),
    "torch.distributed.launch": ("nnodes", "nproc-per-node", "node-rank", "rdzv-backend", "rdzv-endpoint", "rdzv-id"),
    "accelerate": ("num-processes", "num-machines", "machine-rank", "main-process-ip", "main-process-port"),
    "deepspeed": ("num-gpus", "num-nodes", "hostfile"),
}
_PYTHON: Final = re.compile(r"(.*/)?python[\d.]*")


def _script(process: Process) -> int | None:
    """Index of the word that the launcher takes for the script."""
    position = 2 if process.program == "accelerate" else 1
    for index in range(position, len(process.words)):
        word, before = process.words[index], process.words[index - 1]
        flag = process.options.get(before.lstrip("-").replace("_", "-")) == ""
        value = before.startswith("-") and "=" not in before and not flag and index > position
        if not word.startswith("-") and (word.endswith(".py") or not value):
            return index
    return None


_OF_NO_SCRIPT: Final = (
    *("nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "standalone"),
    *("num-processes", "num-machines", "machine-rank", "main-process-ip"),
)
"""Options of a launcher that a script has no use for: one may be its own for all that, two are not."""


@rule("ARGV013", Level.WARNING, on=Container)
def behind_the_script(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """An option of the launcher behind the script is the script's."""
    for process in bundle.processes(container):
        own, index = _OWN.get(process.program, ()), _script(process)
        if index is None or not process.words[index].endswith(".py"):
            continue
        behind = {word.lstrip("-").partition("=")[0].replace("_", "-") for word in process.words[index + 1 :]}
        several = len(behind & set(own) - set(process.options)) > 1
        for word in process.words[index + 1 :]:
            name = word.lstrip("-").partition("=")[0].replace("_", "-")
            if word.startswith("--") and name in own and name not in process.options:
                node, inside = _place(container, process, word)
                yield Problem(
                    node,
                    f"{word} stands behind {process.words[index]}: {process.program} does not see it",
                    f"write it before {process.words[index]}",
                    level=None if several and name in _OF_NO_SCRIPT else Level.NOTE,
                    inside=inside,
                )
                break


@rule("ARGV014", Level.ERROR, on=Container)
def starts_python(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``torchrun python train.py`` runs a script that is named python."""
    for process in bundle.processes(container):
        index = _script(process)
        if process.program not in _OWN or index is None or not _PYTHON.fullmatch(process.words[index]):
            continue
        if any(process.option(name) is not None for name in ("no-python", "m", "module")):
            continue
        node, inside = _place(container, process, process.words[index])
        yield Problem(
            node,
            f"{process.program} starts Python itself, and takes {process.words[index]} for the name of the script",
            f"leave {process.words[index]} out",
            inside=inside,
        )


def _place(container: Container, process: Process, word: str) -> tuple[Node, str]:
    if process.in_shell:
        return process.node, word
    return next((node for node in container.argv if node.text == word), process.node), ""
