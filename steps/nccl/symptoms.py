"""Lines of NCCL, libfabric and torch that explain a slow, wrong or broken network: what they mean and what to do.

The causes are NCCL's own troubleshooting guide (docs/userguide/source/troubleshooting), its sources, and the issues
named at a row.
"""

from __future__ import annotations

import re
from functools import cache

from argosy.steps.nccl.failures import FAILURES
from argosy.steps.nccl.fallbacks import FALLBACKS
from argosy.steps.nccl.symptom import Symptom

SYMPTOMS: tuple[Symptom, ...] = (*FALLBACKS, *FAILURES)
KNOWN: dict[str, Symptom] = {symptom.name: symptom for symptom in SYMPTOMS}


def symptom_of(line: str) -> Symptom | None:
    """The first row that the line matches."""
    if not _any().search(line):
        return None
    return next((symptom for symptom in SYMPTOMS if _compiled(symptom.regex).search(line)), None)


@cache
def _any() -> re.Pattern[str]:
    # One look for the many lines that show nothing.
    return re.compile("|".join(f"(?:{_inline(symptom.regex)})" for symptom in SYMPTOMS))


def _inline(regex: str) -> str:
    """A leading ``(?i)`` as a group of its own: in the middle of an expression it is not allowed."""
    return f"(?i:{regex[4:]})" if regex.startswith("(?i)") else regex


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)
