"""Injected faults of one rank: the real signal or the real exit, when its step, its time or its phase has come."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Self

from argosy.steps.contract import env as names
from argosy.steps.contract.injection import NODE_FAULTS, SUPERVISOR_KILL
from argosy.steps.launch.ray_workers import workers

_SIGNALS = {
    "kill": signal.SIGKILL, "segv": signal.SIGSEGV, "hang": signal.SIGSTOP, "abort": signal.SIGABRT,
    "fpe": signal.SIGFPE, "bus": signal.SIGBUS, "term": signal.SIGTERM, "node-loss": signal.SIGSTOP,
}  # fmt: skip
"""node-loss: a rank of that node waits for it, else its script may end well before the supervisor has heard."""
_TOLD = (*NODE_FAULTS, SUPERVISOR_KILL)
"""Carried out by the supervisor, when the rank says that its phase has come."""


@dataclass(frozen=True)
class RankFault:
    """A fault meant for this rank: a signal from here, or an exit that only the rank itself can do."""

    name: str
    step: int
    signal: int | None
    code: int | None
    seconds: int = 0
    """After the rank's start; 0: it does not go by time."""
    phase: str = ""
    """See injection.PHASES; "": it does not go by them."""
    include: tuple[str, ...] = ()
    """Which files of the script's folder are its checkpoint."""

    @classmethod
    def of(cls, fault: Mapping[str, Any] | None, rank: int) -> Self | None:
        """The assignment's fault, if it is for ``rank``."""
        if fault is None or fault.get("rank") != rank or fault["fault"] not in (*_SIGNALS, *_TOLD, "exit"):
            return None
        name = str(fault["fault"])
        return cls(
            name, int(fault["step"]), _SIGNALS.get(name), fault.get("code"), int(fault.get("seconds", 0)),
            fault.get("phase", ""), tuple(fault.get("include", ())),
        )  # fmt: skip

    @property
    def needs_the_rank(self) -> bool:
        """Whether only the rank's own call of ``argosy.report`` can carry it out."""
        return self.name == "exit"

    def is_due(self, step: int) -> bool:
        """Whether the step of the fault is done."""
        return not (self.seconds or self.phase) and step >= self.step

    def is_seen(self, pid: int) -> bool:
        """Whether the rank is in the fault's phase, as its open files show: those of a script's checkpoint folder, or a
        temporary file that a library writes first.
        """
        from argosy.steps.launch.whole_files import matching, opened  # most ranks start without a fault

        if self.phase in ("", "start", "end") or not (folder := os.environ.get(names.CHECKPOINT_PATH, "")):
            return self.phase == "start"
        saves = self.phase == "save"
        found = [Path(path) for path in opened(pid, writing=saves)]
        if saves and any(path.parent == Path(gettempdir()) and path.name.startswith("tmp") for path in found):
            return True
        inside = {path.relative_to(folder).as_posix() for path in found if path.is_relative_to(folder)}
        return bool(inside) and not inside.isdisjoint(matching(Path(folder), self.include))

    @staticmethod
    def victim(pid: int) -> int:
        """Whom a signal is meant for: the rank ``pid``, or where that is a node of Ray's the first worker there."""
        return min(workers(pid), default=pid)

    def environment(self) -> dict[str, str]:
        """The variables that tell the rank of the fault."""
        if not self.needs_the_rank:
            return {}
        return {names.FAULT: json.dumps({"fault": self.name, "step": self.step, "code": self.code})}
