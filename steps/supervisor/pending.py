"""A decision that a supervisor wrote down and was killed before it had carried it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.supervisor.budget import Decision
from argosy.steps.supervisor.context import SupervisedGang
from argosy.steps.supervisor.ledger import Ledger
from argosy.steps.supervisor.outcome import Outcome
from argosy.steps.verdict import Verdict


@dataclass(frozen=True)
class Pending:
    """The gang of the failure, how its restart ended, and what was decided."""

    gang: SupervisedGang
    outcome: Outcome
    verdict: Verdict
    decision: Decision


def gang_of(entry: dict[str, Any]) -> SupervisedGang:
    """The gang of a ledger entry of kind ``gang``."""
    return SupervisedGang(
        name=entry["gang"],
        attempt=entry["attempt"],
        nnodes=entry["nnodes"],
        excluded=tuple(entry["excluded"]),
        on_demand=entry.get("on_demand", False),
    )


def pending(ledger: Ledger) -> Pending | None:
    """The newest decision of this workflow, if neither the next restart, the next gang nor the end came of it yet."""
    last, gang = ledger.last("gang", "restart", "failure", "ended"), ledger.last("gang")
    if last is None or gang is None or last["kind"] != "failure":
        return None
    told = last["verdict"]
    verdict = Verdict(**{**told, "cause": Cause(told["cause"]), "consequences": ()})
    outcome = Outcome(restart=last["restart"], verdict=verdict, step=last["step"], steps=last["steps"])
    return Pending(gang_of(gang), outcome, verdict, Decision(**last["decision"]))
