"""What a step's termination message says, in words: pods leave a JSON object, Argo puts words of its own before it."""

from __future__ import annotations

import json
import re
from typing import Any

from argosy.steps.contract.causes import Cause

STOPPED = re.compile(r"(stopped|shutdown) with strategy", re.IGNORECASE)
"""How Argo says that somebody stopped the workflow, in its message or in that of the step that ran."""
_LEFT_OUT = ("cause", "message", "exit_code")


def read_message(text: str) -> tuple[str, str]:
    """(cause, words) of a node's or a workflow's message; what holds no object of ours is given back as it is."""
    before, brace, rest = text.partition("{")
    fields = _object(brace + rest)
    if fields is None:
        return "", text
    cause = str(fields.get("cause") or "")
    said = str(fields.get("message") or "") or ", ".join(
        f"{key} {value}" for key, value in fields.items() if key not in _LEFT_OUT and value not in ("", None)
    )
    named = cause if cause != Cause.UNKNOWN else ""  # what is said after it is known
    words = ": ".join(part for part in (named, said) if part)
    return cause, words or cause or before.rstrip(": ")


def held_up(phase: str, words: str) -> str:
    """Why a pod does not begin, out of what Argo says of a pending one; "" where it is on its way.

    ``ContainerCreating`` and its like pass; a reason with an explanation behind it waits for somebody.
    """
    return words if phase == "Pending" and ": " in words else ""


def _object(text: str) -> dict[str, Any] | None:
    """The object that the text begins with; Argo may have cut it, then it is none."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and ("cause" in found or "exit_code" in found) else None
