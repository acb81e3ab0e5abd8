"""The options of a command and of the script that it runs: ``torchrun --nnodes=2 train.py --output-dir /out``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.workflows.manifests.process import Process

_OVERRIDE = re.compile(r"\+*([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)


def arguments(process: Process) -> Iterator[tuple[str, str]]:
    """(name, value) of every option, with ``-`` for ``_`` and ``""`` for one without a value.

    ``--out=/x``, ``--out /x`` and Hydra's ``trainer.out=/x`` (the last part of its name) are the same to a reader.
    """
    words = process.words[1:]
    for word, after in zip(words, [*words[1:], ""], strict=False):
        override = _OVERRIDE.fullmatch(word)
        if word.startswith("--"):
            name, given, value = word[2:].partition("=")
            yield name.replace("_", "-"), value if given else ("" if after.startswith("--") else after)
        elif override is not None:
            yield override[1].rpartition(".")[2].replace("_", "-"), override[2]
