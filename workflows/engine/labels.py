"""What Kubernetes takes for a label: the API server refuses an object that has another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.workflows.engine.gotext import any_string

_LONGEST = 63
_TEXT = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_RULE = f"has at most {_LONGEST} of a-z, A-Z, 0-9, '-', '_' and '.', and a letter or digit at both ends"
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def wrong_labels(labels: Mapping[str, Any] | None, path: str) -> Iterator[str]:
    """What is wrong with each of ``labels``, by path; what has tags is not judged."""
    for key, given in (labels or {}).items():
        value, (prefix, slash, name) = any_string(given), str(key).rpartition("/")
        if "{{" in value:
            continue
        if not _short(name) or (slash and not _PREFIX.fullmatch(prefix)):
            yield f"{path}: {key!r} is no label's key; Kubernetes takes [prefix/]name, of which {_RULE}"
        if value and not _short(value):
            yield f"{path}.{key}: {value!r} is no label's value; it is empty or {_RULE}"


def _short(text: str) -> bool:
    return len(text) <= _LONGEST and _TEXT.fullmatch(text) is not None
