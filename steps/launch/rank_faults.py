"""Injected faults of one rank: the real signal or the real exit, when its step is reached."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from argosy.steps.contract import env as names

_SIGNALS = {"kill": signal.SIGKILL, "segv": signal.SIGSEGV, "hang": signal.SIGSTOP}


@dataclass(frozen=True)
class RankFault:
    """A fault meant for this rank: a signal from here, or an exit that only the rank itself can do."""

    name: str
    step: int
    signal: int | None
    code: int | None

    @classmethod
    def of(cls, fault: Mapping[str, Any] | None, rank: int) -> Self | None:
        """The assignment's fault, if it is for ``rank``."""
        if fault is None or fault.get("rank") != rank or fault["fault"] not in (*_SIGNALS, "exit"):
            return None
        name = str(fault["fault"])
        return cls(name, int(fault["step"]), _SIGNALS.get(name), fault.get("code"))

    @property
    def needs_the_rank(self) -> bool:
        """Whether only the rank's own call of ``argosy.report`` can carry it out."""
        return self.signal is None

    def is_due(self, step: int) -> bool:
        """Whether its step is done."""
        return step >= self.step

    def environment(self) -> dict[str, str]:
        """What the rank must know."""
        if not self.needs_the_rank:
            return {}
        return {names.FAULT: json.dumps({"fault": self.name, "step": self.step, "code": self.code})}
