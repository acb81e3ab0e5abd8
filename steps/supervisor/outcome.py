"""How one restart of a gang ended."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.steps.contract.channel import Ending
from argosy.steps.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a restart ended: ``verdict`` None means that every rank ended well."""

    restart: int
    verdict: Verdict | None
    step: int = 0
    steps: int = 0
    unread: bool = False
    """Nobody knows its steps: ``steps`` counts saves."""
    endings: tuple[Ending, ...] = ()
    corrupt: tuple[str, ...] = ()
    enough: int = 0
    """So many nodes an elastic gang is to go on with; 0: with as many as it can get."""
    uncommitted: tuple[str, ...] = ()
    """What nodes hold of the checkpoint's files that nobody commits, in words."""
    grow: bool = False
    """Nothing ended it: it could go on with ``enough`` nodes, which are more."""
