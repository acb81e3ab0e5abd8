"""Refuse, by path and all at once, what Argo refuses and what would not run here as it runs on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.document import Document, assemble, read_sources
from argosy.workflows.engine.fields import FieldWalk, Ignored
from argosy.workflows.engine.unsupported import problems_of
from argosy.workflows.engine.validation.decoding import argo_version, undecodable
from argosy.workflows.engine.validation.workflow import refusals_of

BY_ARGO, BY_US = f"Argo {argo_version()} refuses this workflow", "the local engine cannot run this workflow"


def load_checked(data: bytes, files: Sequence[Path], parameters: Mapping[str, str]) -> tuple[Document, list[Ignored]]:
    """The document of ``data`` and ``files`` with ``parameters``, and which of its fields are ignored.

    Raises:
        InputError: not readable; or one error that lists by path everything that Argo refuses, then everything that
            is not built into the engine.
    """
    walk, refused = FieldWalk(), []
    workflows, references, configs = read_sources(data, files)
    for source in (*workflows, *references):
        name = source.name if source in references else ""
        refused += undecodable(source.manifest, str(source.manifest["kind"]), name)
        walk.manifest(source.manifest, name)
    if refused:
        said = {each.partition(": ")[0] for each in refused}
        _refuse(refused, [each for each in walk.problems if each.partition(": ")[0] not in said])
    document = assemble(workflows, references, configs)
    _refuse(refusals_of(document, parameters), walk.problems)
    _refuse([], problems_of(document))
    return document, walk.ignored


def _refuse(by_argo: Iterable[str], by_us: Iterable[str]) -> None:
    parts = []
    for head, problems in ((BY_ARGO, by_argo), (BY_US, by_us)):
        listed = list(dict.fromkeys(problems))
        if listed:
            count = "1 reason" if len(listed) == 1 else f"{len(listed)} reasons"
            parts.append(f"{head} ({count}):\n" + "\n".join(f"  {problem}" for problem in listed))
    if parts:
        raise InputError("\n".join(parts))
