"""Exit codes of the train step: public API, compatible with sysexits.

torchrun exits 1 for every kind of failure, so nothing above it could tell them apart; these codes can.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a step's exit code means to Argo's ``retryStrategy`` and to people."""

    OK = 0
    USAGE = 2
    USER_BUG = 70
    SUSPECT_NODE = 71
    ROLL_BACK = 72
    FENCED = 73
    NO_PROGRESS = 74
    TRANSIENT = 75
    PREEMPTED = 76
    NEEDS_HUMAN = 77
    CONFIGURATION = 78


RETRIED_BY_ARGO = (ExitCode.SUSPECT_NODE, ExitCode.ROLL_BACK, ExitCode.TRANSIENT, ExitCode.PREEMPTED)
"""The supervisor spends these itself; Argo starts it again only when it gave one up for its own loss."""
