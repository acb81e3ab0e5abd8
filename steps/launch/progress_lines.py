"""Step and loss of a plain script, read from what it prints."""

from __future__ import annotations

import math
import re
from typing import Any

from argosy.steps.contract.errors import InputError

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)"
_LOSS = re.compile(rf"(?i)loss['\"]?\s*[:=|]?\s*(?P<loss>{_NUMBER})")
_STEPS = (
    # "step 10/200", "global_step=10", "iter 10:", "Epoch 1 step 10", "[step:10]", '{"step": 10'
    re.compile(
        r"(?i)\b(?:global[_ ]?)?(?:step|iter(?:ation)?)s?['\"]?\s*[:=#\[]?\s*(?P<step>\d+)(?:\s*/\s*(?P<end>\d+))?"
    ),
    # tqdm: " 10%|#    | 10/100 [00:01<00:09"
    re.compile(r"\d+%\|.*\|\s*(?P<step>\d+)/(?P<end>\d+)\s*\["),
    re.compile(r"(?i)\bepoch['\"]?\s*[:=#\[]?\s*(?P<step>\d+)(?:\s*/\s*(?P<end>\d+))?"),
)


def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """The user's ``progress_pattern``; None for the built-in ones.

    Raises:
        InputError: not a regular expression, or without a group ``step``.
    """
    if not pattern:
        return None
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"progress_pattern = {pattern!r}: not a regular expression: {error}") from error
    if "step" not in compiled.groupindex:
        raise InputError(f"progress_pattern = {pattern!r}: name the step: (?P<step>[0-9]+)")
    return compiled


class ProgressLines:
    """Reads lines in order; reports a step once, and only when it is greater than the last one.

    Of several words for a step the first kind seen is kept, so that an epoch is never taken for a step.
    """

    def __init__(self, pattern: str = "") -> None:
        """``pattern``: the user's own, with named groups ``step`` and perhaps ``loss``."""
        self._own = compile_pattern(pattern)
        self._kind: re.Pattern[str] | None = self._own
        self._last = -1

    def read(self, line: str) -> dict[str, Any] | None:
        """{"step", "loss"?, "end_step"?} of a line that tells a new step."""
        found = self._kind.search(line) if self._kind is not None else self._choose(line)
        if found is None:
            return None
        groups = found.groupdict()
        try:
            step = int(groups["step"])
        except (TypeError, ValueError):
            return None
        if step <= self._last:
            return None
        self._last = step
        return {
            "step": step,
            **self._loss(line, groups),
            **({"end_step": int(groups["end"])} if groups.get("end") else {}),
        }

    def _choose(self, line: str) -> re.Match[str] | None:
        for kind in _STEPS:
            found = kind.search(line)
            if found is not None and (kind is _STEPS[1] or _LOSS.search(line)):
                self._kind = kind
                return found
        return None

    def _loss(self, line: str, groups: dict[str, Any]) -> dict[str, float]:
        text = groups.get("loss")
        if text is None and self._own is None and (found := _LOSS.search(line)):
            text = found["loss"]
        try:
            loss = float(text) if text else math.nan
        except ValueError:
            return {}
        return {"loss": loss} if math.isfinite(loss) else {}
