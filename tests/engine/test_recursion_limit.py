"""Deep workflows need a higher limit of recursion, which is the process's: nothing of it stays."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from argosy.workflows.engine.scheduler import _deep_calls


def test_engines_that_overlap_leave_the_limit_as_it_was() -> None:
    before = sys.getrecursionlimit()
    first, second = ExitStack(), ExitStack()
    first.enter_context(_deep_calls())
    second.enter_context(_deep_calls())
    assert sys.getrecursionlimit() > before
    first.close()
    second.close()
    assert sys.getrecursionlimit() == before
