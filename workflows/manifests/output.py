"""Where a container writes what must not be lost: checkpoints and results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from argosy.workflows.manifests.arguments import arguments
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launchers import LAUNCHERS
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod

_OPTIONS: Final = re.compile(
    r"(?:.*-)?(?:output|checkpoint|checkpoints|ckpt|save|results?|snapshot)(?:-?(?:dir|directory|path|folder|root))?"
    r"|default-root-dir|dump-folder"
)
_VARIABLES: Final = re.compile(
    r"(?:.*_)?(?:OUTPUT|CHECKPOINTS?|CKPT|SAVE|RESULTS?|SNAPSHOT)_(?:DIR|DIRECTORY|PATH|FOLDER)"
)
# What is read, and what an evaluation reads under the name that a training writes it under.
_READ: Final = re.compile(r"load|resume|restore|pretrain|init|input|from|base|eval|teacher|reference")
_EITHER: Final = re.compile(r"(?:.*-)?(?:checkpoint|ckpt|snapshot)(?:-?path)?")
_OPEN: Final = re.compile(r"\$|\{\{")


@dataclass(frozen=True)
class Output:
    """A path that is written.

    Args:
        path: as far as it is known: ``/ckpt`` of ``/ckpt/$RUN``.
        named: ``--output-dir``, ``CKPT_DIR``.
        node: where it is said.
        inside: the piece of the text that says it, where the text is longer.
    """

    path: str
    named: str
    node: Node
    inside: str = ""


def outputs(container: Container, bundle: Bundle) -> Iterator[Output]:
    """The paths that options and variables of a container's commands name, each once."""
    seen: set[str] = set()
    for found in _named(container, bundle):
        if found.path and found.path not in seen:
            seen.add(found.path)
            yield found


def _named(container: Container, bundle: Bundle) -> Iterator[Output]:
    for process in bundle.processes(container):
        for name, value in arguments(process):
            ranks = process.program in LAUNCHERS
            if _OPTIONS.fullmatch(name) and not _READ.search(name) and (ranks or not _EITHER.fullmatch(name)):
                inside = value if process.in_shell else ""
                node = next((each for each in container.argv if value and value in each.text), process.node)
                yield Output(_path(value), f"--{name}", node, inside)
    for name, variable in bundle.environment(container).items():
        if _VARIABLES.fullmatch(name) and not _READ.search(name.lower()):
            yield Output(_path(variable.value or ""), name, variable.place)


def _path(value: str) -> str:
    """The absolute path up to what is filled in later; ``""`` for anything else."""
    if not value.startswith("/"):
        return ""
    known = _OPEN.split(value, maxsplit=1)[0]
    if known != value:
        known = known.rpartition("/")[0]
    return known.rstrip("/")


def writers(container: Container, bundle: Bundle) -> list[Container]:
    """The containers in which a command's ranks run: mpirun's run in the workers."""
    pod: Pod = container.pod
    if pod.role is None or not pod.role.launcher:
        return [container]
    workload = bundle.workload(pod.document)
    roles = [role for role in workload.roles if not role.launcher] if workload is not None else []
    return [role.pod.main for role in roles if role.pod.main is not None]
