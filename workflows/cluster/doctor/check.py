"""One thing that was looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from argosy.steps.cluster.api import ApiError
from argosy.steps.contract.errors import StepError


@dataclass(frozen=True)
class Check:
    """``unknown``: it cannot be asked, or we are not allowed to ask; ``remedy`` is a command, a manifest, or advice."""

    state: Literal["ok", "missing", "unknown"]
    what: str
    detail: str
    remedy: str = ""

    def record(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self)


def asked(what: str, remedy: str, look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """What ``look`` finds; a refusal is an ``unknown`` with the way to find out."""
    try:
        yield from look()
    except (StepError, ApiError) as error:
        yield Check("unknown", what, " ".join(str(error).split())[:300], remedy)
