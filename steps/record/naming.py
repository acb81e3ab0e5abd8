"""What a pod of the workflow is called in front of people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from argosy.steps.record.reading import text

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
