"""What a cause means in one sentence, and what a person can do about it."""

from __future__ import annotations

import re

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.injection import CANNOT_EXIT
from argosy.steps.contract.layout import CODE_ARCHIVE

_STORE_AGAIN = (
    "argosy run run.toml --run-id RUN_ID packs the code and stores it again, and goes on; of a YAML that is submitted "
    "without argosy, argosy compile --push does."
)

_NARROWER: tuple[tuple[Cause, str, tuple[str, str]], ...] = (
    (
        Cause.LAUNCHER_USAGE,
        f"^{CANNOT_EXIT}",
        (
            "The fault that --inject asks for cannot happen in this script; the training itself did not fail.",
            "Inject kill instead of exit, or call argosy.report(step) in the script.",
        ),
    ),
    (
        Cause.HOST_OOM,
        "can't start new thread|pthread_create failed|Resource temporarily unavailable",
        (
            "A process asked for one more thread or process than it may have.",
            "Use fewer data loader workers and threads, or raise the limit: of processes (ulimit -u), of the pod "
            "(podPidsLimit of its node's kubelet), or gang.resources.memory.",
        ),
    ),
    (
        Cause.NATIVE_CRASH,
        r"was ended by signal 4\b",
        (
            "A rank met an instruction that its CPU does not know (SIGILL).",
            "Install a build of that library for this CPU, or ask for nodes whose CPU has what it was built for "
            "(gang.node_selector).",
        ),
    ),
)
"""Quoted lines that mean something narrower than their cause, and what to do then."""


def narrower(cause: str, quote: str) -> tuple[str, str] | None:
    """Meaning and remedy of this very line; None: they are those of the cause."""
    return next((told for row, words, told in _NARROWER if row == cause and re.search(words, quote)), None)


def advice_for(cause: str, quote: str = "") -> tuple[str, str]:
    """The entry of a cause id; an id from a newer version is said to be unknown here.

    A quoted line of NCCL's that is known as such has a remedy of its own, narrower than the cause's, and so has one
    about the run's code, or one of those above.
    """
    try:
        row = Cause(cause)
    except ValueError:
        row = Cause.UNKNOWN
    if row is Cause.S3_MISSING and quote.startswith(CODE_ARCHIVE):
        return row.meaning, _STORE_AGAIN
    if (told := narrower(cause, quote)) is not None:
        return told
    from argosy.steps.nccl.symptoms import symptom_of  # here: status and report need no such table

    symptom = symptom_of(quote) if quote else None
    return row.meaning, row.remedy if symptom is None or symptom.cause not in (None, cause) else symptom.remedy
