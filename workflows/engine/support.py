"""Refuse, by path and all at once, what Argo refuses and what would not run here as it runs on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.document import Document, Source, assemble, read_sources, scope_name
from argosy.workflows.engine.fields import FieldWalk, Ignored
from argosy.workflows.engine.unsupported import problems_of
from argosy.workflows.engine.validation.decoding import argo_version, undecodable
from argosy.workflows.engine.validation.workflow import refusals_of

BY_ARGO, BY_US = f"Argo {argo_version()} refuses this workflow", "the local engine cannot run this workflow"


def load_checked(data: bytes, files: Sequence[Path], parameters: Mapping[str, str]) -> tuple[Document, list[Ignored]]:
    """The document of ``data`` and ``files`` with ``parameters``, and which of its fields are ignored.

    Raises:
        InputError: not readable; or one error that lists by path everything that Argo refuses, then everything that
            is not built into the engine. WorkflowTemplates that nothing refers to are not judged.
    """
    walk, refused = FieldWalk(), []
    workflows, references, configs = read_sources(data, files)
    if workflows:
        references = _used(workflows, references)
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


def _used(workflows: list[Source], references: list[Source]) -> list[Source]:
    """Those that a workflow refers to, and those that they refer to: a library may hold what cannot run here."""
    left = {id(each): (f"{each.manifest['kind']}/{each.name}", each) for each in references}
    todo = [each.manifest for each in workflows]
    while todo:
        named = {scope_name(each) for each in _references(todo.pop())}
        found = [key for key, (scope, _) in left.items() if scope in named]
        todo += [left.pop(key)[1].manifest for key in found]
    return [each for each in references if id(each) not in left]


def _references(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("templateRef", "workflowTemplateRef") and isinstance(item, dict):
                yield item
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _refuse(by_argo: Iterable[str], by_us: Iterable[str]) -> None:
    parts = []
    for head, problems in ((BY_ARGO, by_argo), (BY_US, by_us)):
        listed = list(dict.fromkeys(problems))
        if listed:
            count = "1 reason" if len(listed) == 1 else f"{len(listed)} reasons"
            parts.append(f"{head} ({count}):\n" + "\n".join(f"  {problem}" for problem in listed))
    if parts:
        raise InputError("\n".join(parts))
