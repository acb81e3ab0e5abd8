"""What a verdict is made from and what it says."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from argosy.steps.contract.causes import Cause

_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, kw_only=True)
class PodFact:
    """What the gang's host knows of a pod: Kubernetes' words, or the local host's in the same words.

    ``reason`` is a condition, container state or event reason: ``DisruptionTarget``, ``Evicted``, ``OOMKilled``,
    ``NodeLost``, ``ImagePullBackOff``... ``time`` in seconds since 1970, 0 when unknown.
    """

    name: str
    node: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    time: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The root cause of one ended restart, with its evidence.

    ``signal`` and ``code`` are how the culprit's process ended (None: not known), ``step`` the last step it
    reported, ``quote`` the line the verdict rests on, ``consequences`` the later errors, one line each.
    """

    cause: Cause
    exit_code: int
    rank: int | None = None
    node: str = ""
    pod: str = ""
    signal: int | None = None
    code: int | None = None
    step: int = 0
    quote: str = ""
    consequences: tuple[str, ...] = ()
    since: float = 0.0
    """Of numbers that went wrong: when they were last told right, seconds since 1970; 0: not known."""

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "cause": str(self.cause), "consequences": list(self.consequences)}

    def to_json(self) -> bytes:
        """UTF-8 JSON object: the content of ``verdict.json``."""
        return json.dumps(self.record(), ensure_ascii=False).encode()


def termination_line(verdict: Verdict) -> str:
    """One ASCII JSON line of at most 1 KiB for ``/dev/termination-log``.

    Argo substitutes it into templates, so it holds fields only: ids, numbers and names of plain characters.
    """
    fields: dict[str, Any] = {"cause": str(verdict.cause), "exit_code": verdict.exit_code}
    for name in ("rank", "signal", "code"):
        if getattr(verdict, name) is not None:
            fields[name] = getattr(verdict, name)
    fields["step"] = verdict.step
    for name in ("node", "pod"):
        if getattr(verdict, name):
            fields[name] = _PLAIN.sub("_", getattr(verdict, name))[:253]
    return json.dumps(fields, separators=(",", ":"))
