"""The last step of a training script, as far as its flags tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from argosy.workflows.script.source import last_name
from argosy.workflows.script.values import Values

_STEPS = (
    *("steps", "max_steps", "num_steps", "n_steps", "total_steps", "train_steps", "iters", "max_iters", "num_iters"),
    *("n_iters", "total_iters", "train_iters", "iterations", "num_iterations", "max_iterations"),
)
_MANY_TURNS = 100
"""Nobody watches a loop of more for its half: what is usual comes in it, too."""
_EPOCHS = ("epochs", "num_epochs", "max_epochs", "num_train_epochs", "n_epochs")


def end_of(
    values: Mapping[str, str | None], calls: Sequence[ast.Call], by_library: bool, turn: int | None, long: bool
) -> int | None:
    """From the flags' values, or the last ``turn`` of its loop, ``long`` for one over epochs; these count where no step
    is printed, as a library that trains does.
    """
    of_steps = by_library or _prints_steps(calls)
    names = _STEPS if of_steps else (*_STEPS, *_EPOCHS)
    known = next((int(value) for name in names if (value := values.get(name)) and value.isdecimal()), None)
    counts = turn is not None and turn <= _MANY_TURNS and not (by_library or (of_steps and long))
    return turn if known is None and counts else known


def last_turn(call: ast.Call, values: Values) -> int | None:
    """The last turn of a loop over ``range(...)``, where the script says it."""
    known = values.machine.seen.get(call.args[-1], []) if call.args and last_name(call.func).endswith("range") else []
    return known[0] if len(known) == 1 and isinstance(known[0], int) else None


def _prints_steps(calls: Sequence[ast.Call]) -> bool:
    """Whether a text that is handed to any function looks like ``step 10``."""
    texts = (
        node.value
        for call in calls
        for argument in call.args
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return any(re.search(r"(?i)\b(step|iter(ation)?)s?\b", text) for text in texts)
