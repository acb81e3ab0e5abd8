"""``{data}``, ``{run_id}`` … in arguments and variables: each stands for a variable that only the pod knows.

They are replaced in the pod, in one argument or value at a time; no shell sees them. A backslash before the brace
keeps the word as it is: ``\\{epoch}`` arrives as ``{epoch}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from argosy.steps.contract import env

VARIABLES: dict[str, tuple[str, str]] = {
    "data": (env.DATA_PATH, "folder with the staged dataset on this node; in evaluation with the held-out data"),
    "data_uri": (env.DATA_URI, "uri of the dataset; in evaluation of the held-out data"),
    "data_digest": (env.DATASET_DIGEST, "version of the dataset: the digest of its manifest"),
    "checkpoint": (
        env.CHECKPOINT_PATH,
        "folder that a script writes its checkpoint files to (opaque); in evaluation the verified files",
    ),
    "metrics": (env.METRICS_PATH, "evaluation: the file that the script writes its numbers to"),
    "run_name": (env.RUN_NAME, "name of the run"),
    "run_id": (env.RUN_ID, "id of the run, the same after every restart"),
    "run_uri": (env.RUN_URI, "place of the run in the store"),
    "micro_batch_size": (env.MICRO_BATCH, "samples per rank and micro step, from [batch]"),
    "accumulation_steps": (env.ACCUMULATION, "micro steps per optimizer step, from [batch]"),
    "effective_batch_size": (env.EFFECTIVE_BATCH, "samples per optimizer step over all ranks, from [batch]"),
    "learning_rate": (env.LEARNING_RATE, "learning rate after the linear rule, from [batch]"),
}
"""Name -> (variable whose value it stands for, what that is)."""
_WORD = re.compile(r"(\\?)\{((?:newest|step):[^{}]+|[a-z][a-z_]*)\}")
"""``{newest:GLOB}`` and ``{step:GLOB}`` are words too: of several files of a checkpoint they name one."""


def named(text: str) -> list[str]:
    """The words in braces that a text asks to be replaced, in order."""
    return [found[2] for found in _WORD.finditer(text) if not found[1]]


def as_it_is(text: str) -> str:
    """The text so that :func:`fill` gives it back as it is."""
    return _WORD.sub(lambda found: found[0] if found[1] else f"\\{found[0]}", text)


def fill(text: str, environ: Mapping[str, str], values: Mapping[str, str] | None = None) -> str:
    """Replace what is known, by ``values`` (word -> text) first, then by the pod's environment.

    What nothing is known of stays, so that a text that was never checked loses nothing.
    """
    known = {word: environ[variable] for word, (variable, _) in VARIABLES.items() if variable in environ}
    known.update(values or {})
    return _WORD.sub(lambda found: found[0][1:] if found[1] else known.get(found[2], found[0]), text)


def filled(environ: dict[str, str], names: Iterable[str]) -> None:
    """Replace in the values of these variables, in place."""
    for name in names:
        if name in environ:
            environ[name] = fill(environ[name], environ)
