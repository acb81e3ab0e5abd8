"""Which interpreter runs the contest: one with DeepSpeed where it can be installed, else ours without that contender."""

from __future__ import annotations

import sys


def python_with_deepspeed() -> tuple[str, bool]:
    """(interpreter, whether it has DeepSpeed)."""
    return sys.executable, False
