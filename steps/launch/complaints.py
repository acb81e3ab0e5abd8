"""What is said of checkpoints that are not committed: each thing once."""

from __future__ import annotations

import sys
import time

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.launch.units import Unit

LONG_SECONDS = 300.0
"""A save of a hundred gigabytes takes minutes, and is no fault."""


class Complaints:
    """Of one node's folder, to the pod's log."""

    def __init__(self, args: LaunchArgs) -> None:
        self._args = args
        self._told: set[str] = set()
        self._busy_since = 0.0

    def tell(self, about: str, text: str) -> None:
        """Say it, unless something was said about that before."""
        if about not in self._told:
            self._told.add(about)
            print(f"argosy: {text}", file=sys.stderr, flush=True)

    def not_committed(self, unit: Unit, why: str) -> None:
        """Nobody can go on from that one."""
        self.tell(unit.name, f"checkpoint {self.called(unit)} not committed: {why}")

    def busy(self, unit: Unit, why: str) -> None:
        """It is written, as it should be. A script that never lets its files rest has nothing committed."""
        self._busy_since = self._busy_since or time.monotonic()
        if (age := time.monotonic() - self._busy_since) > LONG_SECONDS:
            advice = "close what is written, and give each save a file or folder of its own, or save less often"
            self.tell(
                "busy", f"nothing was committed for {age:.0f} s: {self.called(unit)} never rests ({why}); {advice}"
            )

    def rests(self) -> None:
        """The newest was committed, or nobody writes to it."""
        self._busy_since = 0.0

    def called(self, unit: Unit) -> str:
        """The unit's path."""
        return f"{self._args.checkpoint_path}/{unit.name}" if unit.name else self._args.checkpoint_path
