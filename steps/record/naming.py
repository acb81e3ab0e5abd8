"""What a pod of the workflow is called in front of people, and what is said when it has ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from argosy.steps.record.reading import moment, text, whole
from argosy.steps.record.termination import held_up, read_message
from argosy.steps.record.wording import duration

_TRY = re.compile(r"(.+)\((\d+)\)")
"""Argo's name of the n-th child of a node that is retried."""


def node_name(node: Mapping[str, Any]) -> str:
    """``train``, ``train (try 2)`` for a retry, the template's name for the exit handler."""
    name = text(node, "displayName") or text(node, "name")
    found = _TRY.fullmatch(name)
    base, number = (found[1], int(found[2])) if found else (name, 0)
    if base.endswith(".onExit"):
        base = text(node, "templateName") or "onExit"
    return f"{base} (try {number + 1})" if number else base


def node_line(node: dict[str, Any]) -> str:
    """A step of the workflow that has ended or cannot begin, or ""."""
    phase, name = text(node, "phase"), node_name(node)
    if node.get("type") != "Pod" or phase not in ("Succeeded", "Failed", "Error"):
        why = held_up(phase, text(node, "message"))
        return f"step {name} waits: {why}" if why else ""
    began, ended = moment(node, "startedAt"), moment(node, "finishedAt")
    taken = "" if began is None or ended is None else f" after {duration(max(0.0, ended - began))}"
    if phase == "Succeeded":
        return f"step {name}: succeeded{taken}"
    code = whole(node, "exitCode")
    how = "" if code is None else f", exit code {code}"
    _, message = read_message(text(node, "message"))
    return f"step {name}: {phase.lower()}{taken}{how}" + (f": {message}" if message else "")
