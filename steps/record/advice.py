"""What a cause means in one sentence, and what a person can do about it."""

from __future__ import annotations

from argosy.steps.contract.causes import Cause


def advice_for(cause: str, quote: str = "") -> tuple[str, str]:
    """The entry of a cause id; an id from a newer version is said to be unknown here.

    A quoted line of NCCL's that is known as such has a remedy of its own, narrower than the cause's.
    """
    try:
        row = Cause(cause)
    except ValueError:
        row = Cause.UNKNOWN
    from argosy.steps.nccl.symptoms import symptom_of  # here: status and report need no such table

    symptom = symptom_of(quote) if quote else None
    return row.meaning, row.remedy if symptom is None or symptom.cause not in (None, cause) else symptom.remedy
