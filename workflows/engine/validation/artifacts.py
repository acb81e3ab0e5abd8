"""Where an artifact of a template lies in the pod."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.validation.refusal import Refused


def check_path(artifact: Mapping[str, Any], is_leaf: bool, where: str) -> None:
    """A leaf's artifact has a path, below which it stays; no other artifact has one.

    Raises:
        Refused: it is otherwise.
    """
    path = str(artifact.get("path") or "")
    if not is_leaf:
        if path:
            raise Refused(f"{where}.path: only valid in container/script templates")
        return
    if not path:
        raise Refused(f"{where}.path: missing; the artifact did not specify a path")
    safe = ""
    if "/../" in path:
        safe = path[: path.index("/../")]
    elif path.endswith("/.."):
        safe = path[:-3]
    if safe:
        cleaned = posixpath.normpath(path)
        if not cleaned.startswith(f"{safe}/") or len(cleaned) <= len(safe) + 1:
            raise Refused(f"{where}.path: {path!r}: directory traversal is not permitted")
