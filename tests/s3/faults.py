"""What goes wrong with which request: plans are functions of the request alone, so a seed gives the same again."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass

KINDS = {
    "slow-down": "503 SlowDown, nothing done",
    "error-before": "500 InternalError, nothing done",
    "error-after": "500 InternalError after it was done: the answer is lost",
    "reset-before": "connection reset, nothing done",
    "reset-request": "connection reset in the middle of the request's body, nothing done",
    "reset-after": "connection reset after it was done",
    "cut": "connection reset in the middle of the answer's body (after the head of an answer without body)",
    "slow": "the answer drips",
    "expired": "403 ExpiredToken, nothing done",
    "denied": "403 AccessDenied, nothing done",
    "full": "507 InsufficientStorage, nothing done",
    "conflict": "409 ConditionalRequestConflict to a conditional write, nothing done",
    "complete-error": "200 with an error as body to CompleteMultipartUpload, nothing done",
    "truncated": "GetObject: half of the body under an honest-looking length",
    "wrong-bytes": "GetObject: one bit of the body flipped",
}
"""Kind -> what the client sees and what the store did."""

TRANSIENT = tuple(kind for kind in KINDS if kind not in ("truncated", "wrong-bytes", "expired", "denied", "full"))
"""What a repeated request gets over."""

APPLIES: dict[str, Callable[[Seen], bool]] = {
    "conflict": lambda seen: seen.conditional,
    "complete-error": lambda seen: seen.operation == "CompleteMultipartUpload",
    "truncated": lambda seen: seen.operation == "GetObject",
    "wrong-bytes": lambda seen: seen.operation == "GetObject",
    "reset-request": lambda seen: seen.sent > 0,
}


@dataclass
class Seen:
    """One request, as the log keeps it. ``status`` 0: no answer left the server; ``served``: bytes of its body."""

    number: int
    operation: str
    path: str
    conditional: bool
    sent: int
    range: str = ""
    fault: str = ""
    status: int = 0
    served: int = 0


Plan = Callable[[Seen], str]


def nothing(seen: Seen) -> str:
    """An honest network."""
    return ""


def at(number: int, kind: str, length: int = 1) -> Plan:
    """Requests ``number`` to ``number + length - 1`` (from 0) go wrong; a long length is a storm."""
    return lambda seen: kind if number <= seen.number < number + length else ""


def on(operation: str, kind: str, times: int = 1, containing: str = "") -> Plan:
    """The first ``times`` requests of an operation, those whose path contains the text."""
    left = [times]

    def plan(seen: Seen) -> str:
        if seen.operation != operation or containing not in seen.path or not left[0]:
            return ""
        left[0] -= 1
        return kind

    return plan


def at_random(seed: int, rate: float, kinds: Collection[str] = TRANSIENT) -> Plan:
    """Each request by its own number, whatever came before: ``rate`` of them, kinds that apply to it."""

    def plan(seen: Seen) -> str:
        drawn = random.Random(f"{seed}-{seen.number}")
        if drawn.random() >= rate:
            return ""
        return drawn.choice([kind for kind in kinds if applies(kind, seen)] or [""])

    return plan


def applies(kind: str, seen: Seen) -> bool:
    """Whether the fault means anything for this request."""
    return APPLIES[kind](seen) if kind in APPLIES else True
