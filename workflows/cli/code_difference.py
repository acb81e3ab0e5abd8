"""In which files the code of an interrupted run differs from the code that is here now."""

from __future__ import annotations

import hashlib
import io
import tarfile
from typing import TYPE_CHECKING

from argosy.steps.contract.errors import StepError
from argosy.steps.contract.layout import code_key

if TYPE_CHECKING:
    from argosy.workflows.cli.run_folder import RunFolder
    from argosy.workflows.cli.source import Source

_NAMED = 4


def what_differs(source: Source, folder: RunFolder) -> str:
    """``other code (train.py, a.txt is new)``, or that it is the fields or parameters; "" where nobody can tell."""
    from argosy.workflows.cli.starting import code_digests_in

    store, digests = folder.store(), code_digests_in((folder.path / "workflow.yaml").read_bytes())
    if source.archive is None or store is None or not digests:
        return ""
    if digests == [source.archive.digest]:
        return "other fields or parameters"
    try:
        before = _contents(store.get(code_key(source.run_name, digests[0])))
    except (StepError, tarfile.TarError, EOFError, OSError):
        return ""
    now = _contents(source.archive.data)
    changed = [name for name in sorted(before.keys() & now.keys()) if before[name] != now[name]]
    told = [*changed, *(f"{name} is new" for name in sorted(now.keys() - before.keys()))]
    told += [f"{name} is gone" for name in sorted(before.keys() - now.keys())]
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return f"other code: {', '.join(told[:_NAMED])}{more}; what is no code is named in .argosyignore"


def _contents(data: bytes) -> dict[str, str]:
    """Name -> what is there: the digest of a file and whether it is a program, or the target of a link."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            what = member.linkname if content is None else hashlib.sha256(content.read()).hexdigest()
            found[member.name] = f"{member.mode:o} {what}"
    return found
