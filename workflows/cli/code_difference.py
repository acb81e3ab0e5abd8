"""That a run begins anew beside an interrupted one, and in which files their code differs."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.steps.contract.errors import StepError
from argosy.steps.contract.layout import code_key
from argosy.workflows.cli.run_folder import RunFolder, interrupted_runs

if TYPE_CHECKING:
    from argosy.workflows.cli.source import Source

_NAMED = 3
"""So many files of a kind are named."""


def starting_anew(source: Source, state_dir: Path) -> str:
    """The interrupted run of its name that this start does not go on with, why, and what does; "" without one."""
    for folder in interrupted_runs(state_dir, source.run_name)[:1] if source.run_name else ():
        differs = what_differs(source, folder) or "other code, fields or parameters"
        on = f"go on with it: {folder.command('run', folder.path / 'workflow.yaml')}"
        return f"starting anew: the interrupted run {folder.path.name} has {differs}; {on}"
    return ""


def what_differs(source: Source, folder: RunFolder) -> str:
    """``other code: train.py changed, a.txt and b.txt are new; …``, or that it is the fields or parameters; "" where
    nobody can tell.
    """
    from argosy.workflows.cli.starting import code_digests_in

    store, digests = folder.store(), code_digests_in((folder.path / "workflow.yaml").read_bytes())
    if source.archive is None or store is None or not digests:
        return ""
    if folder.state().get("yaml_sha256") == source.sha256:
        return f"other parameters ({', '.join(folder.given()) or 'none'})"
    if digests == [source.archive.digest]:
        return "other fields, or is another version of argosy's"
    try:
        before = _contents(store.get(code_key(source.run_name, digests[0])))
    except (StepError, tarfile.TarError, EOFError, OSError):
        return ""
    now = _contents(source.archive.data)
    changed = {name for name in before.keys() & now.keys() if before[name] != now[name]}
    told = [
        _said(changed, "changed", "changed"),
        _said(now.keys() - before.keys(), "is new", "are new"),
        _said(before.keys() - now.keys(), "is gone", "are gone"),
    ]
    return f"other code: {', '.join(filter(None, told))}; what is no code is named in .argosyignore"


def _said(names: Collection[str], one: str, several: str) -> str:
    """``a.txt, b.txt and 3 more are new``; "" for none."""
    listed = sorted(names)
    if len(listed) < 2:
        return f"{listed[0]} {one}" if listed else ""
    last = f"{len(listed) - _NAMED} more" if len(listed) > _NAMED else listed[-1]
    return f"{', '.join(listed[: min(_NAMED, len(listed) - 1)])} and {last} {several}"


def _contents(data: bytes) -> dict[str, str]:
    """Name -> what is there: the digest of a file and whether it is a program, or the target of a link."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            what = member.linkname if content is None else hashlib.sha256(content.read()).hexdigest()
            found[member.name] = f"{member.mode:o} {what}"
    return found
