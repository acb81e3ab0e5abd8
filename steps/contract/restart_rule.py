"""When a run is started again after a cause."""

from __future__ import annotations

from enum import Enum, auto


class RestartRule(Enum):
    """What decides, beyond the exit code, whether a run is started again (carried out by supervisor/budget.py)."""

    BY_CODE = auto()
    """70, 73, 74, 77 and 78 stop, 71 excludes the node, everything else is tried again within the budgets."""
    UNCOUNTED = auto()
    """Costs no budget while the run progresses; only its rate is limited."""
    RELEASED = auto()
    """Costs no budget when what it held was given back; tried again, each time a little later."""
    SAME_EXCEPTION = auto()
    """Never before the first step; after it, the same exception at the same step stops."""
    FRAGMENTED = auto()
    """Once, and only after many good steps."""
    SAME_STEP = auto()
    """The second at the same step stops."""
    SAME_PLACE = auto()
    """Elsewhere; the same again on the same rank stops."""
    ELSEWHERE_ONCE = auto()
    """Elsewhere; the second stops."""
    NODE_TWICE = auto()
    """A node that it names twice is excluded."""
    HANG = auto()
    """A rank that hangs twice on a node costs the node; the same step thrice stops."""
    ACCESS = auto()
    """New pods, which read keys anew. What was refused before the first step is not asked again, later once."""
    ONCE = auto()
    """The second stops."""
    TWICE = auto()
    """The third stops."""
