"""Where a path of the pod really lies.

On a cluster a path is itself. On one machine each pod has a root folder of its own, so that a node sees
only its own disk; volumes are folders mounted into it. Every path argument of a step goes through here.
"""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath

from argosy.steps.contract import env


def mounts() -> dict[str, str]:
    """Mount path -> folder on this machine; empty on a cluster."""
    raw = os.environ.get(env.MOUNTS)
    return dict(json.loads(raw)) if raw else {}


def mounted(path: str, table: dict[str, str]) -> Path | None:
    """The folder behind ``path`` if a volume of ``table`` covers it (longest prefix), else None."""
    pure = PurePosixPath(os.path.normpath(path))
    for mount in sorted(table, key=len, reverse=True):
        if pure.is_relative_to(mount):
            return Path(table[mount]) / pure.relative_to(mount)
    return None


def resolve(path: str | Path) -> Path:
    """A plain path as the pod's own disk has it; one that was resolved before stays as it is.

    Relative paths are left to the working directory.
    """
    text = str(path)
    if not text.startswith("/"):
        return Path(text)
    plain = Path(os.path.normpath(text))
    table, root = mounts(), os.environ.get(env.POD_ROOT)
    # Resolved already: a volume's folder lies outside the root, so the root alone does not tell.
    if any(plain.is_relative_to(folder) for folder in (*table.values(), root) if folder):
        return plain
    under = mounted(text, table)
    if under is not None:
        return under
    return Path(f"{root}{plain}") if root else Path(text)


def resolve_file_uri(path: str) -> Path:
    """The path of a ``file://`` uri: a volume's folder where one covers it, else the machine's own path.

    ``file://`` stands for shared storage, so it is never put under the pod's root.
    """
    under = mounted(path, mounts())
    return under if under is not None else Path(path)
