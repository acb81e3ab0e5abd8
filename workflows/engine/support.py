"""Refuse, by path and all at once, what would not run here as it runs on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.document import Document, assemble, read_sources
from argosy.workflows.engine.fields import FieldWalk, Ignored
from argosy.workflows.engine.semantics import problems_of


def load_checked(data: bytes, files: Sequence[Path]) -> tuple[Document, list[Ignored]]:
    """The document of ``data`` and ``files``, and which of its fields are ignored.

    Raises:
        InputError: not readable; or one error that lists every field that is unknown or not supported and every
            broken reference, by path.
    """
    walk = FieldWalk()
    workflows, references = read_sources(data, files)
    for source in (*workflows, *references):
        walk.manifest(source.manifest, source.name if source in references else "")
    _refuse(walk.problems)
    document = assemble(workflows, references)
    _refuse(problems_of(document))
    return document, walk.ignored


def _refuse(problems: Iterable[str]) -> None:
    listed = list(dict.fromkeys(problems))
    if listed:
        count = "1 reason" if len(listed) == 1 else f"{len(listed)} reasons"
        lines = "\n".join(f"  {problem}" for problem in listed)
        raise InputError(f"the workflow cannot run here ({count}):\n{lines}")
