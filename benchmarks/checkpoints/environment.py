"""Which interpreter runs the contest: one with DeepSpeed where it can be installed, else ours, without DeepSpeed."""

from __future__ import annotations

import sys

from benchmarks.environments import frameworks_python
from benchmarks.paired import BenchError


def python_with_deepspeed() -> tuple[str, bool]:
    """(interpreter, whether it has DeepSpeed)."""
    try:
        return str(frameworks_python()), True
    except BenchError as error:
        print(f"without DeepSpeed: {error}", file=sys.stderr)
        return sys.executable, False
