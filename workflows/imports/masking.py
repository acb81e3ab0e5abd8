"""A manifest's text as it may be shown: what looks like a credential is not."""

from __future__ import annotations

import re
from typing import Final

from argosy.workflows.spec.secrets import holds_secret, looks_secret

_WORD: Final = re.compile(r"\S+")
_ASSIGNED: Final = re.compile(r"(-{0,2}([A-Za-z_][\w.-]*)=[\"']?)(.+)", re.DOTALL)


def masked(text: str) -> str:
    """The text with ``***`` for credentials."""
    return _WORD.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    word = found[0]
    assigned = _ASSIGNED.fullmatch(word)
    if assigned is not None and looks_secret(assigned[2].replace("-", "_"), assigned[3].strip("\"'")):
        return f"{assigned[1]}***"
    return "***" if holds_secret(word) else word
