"""Which ``{{names}}`` have a value at one place of a template."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

from argosy.workflows.engine.validation.refusal import Refused
from argosy.workflows.engine.validation.tags import simple_tags, texts_of

_JUDGED = ("item.", "steps.", "inputs.", "outputs.", "pod.", "workflow.", "tasks.")
"""Tags that begin otherwise stay as they are when nothing replaces them; Argo says nothing."""
_LATE = (
    "outputs.", "workflow.creationTimestamp", "workflow.scheduledTime", "workflow.duration", "tasks.name",
    "steps.name", "node.name",
)  # fmt: skip
_ONE_TAG = re.compile(r"\{\{[-a-zA-Z0-9]+(\.[-a-zA-Z0-9_]+)*\}\}")
ANY_ITEM, ANY_PARAMETER, ANY_ARTIFACT = "item.*", "workflow.outputs.parameters.*", "workflow.outputs.artifacts.*"
"""In a scope: every name that begins so may have a value."""


def is_parameter(text: str) -> bool:
    """Whether a text holds a plain tag, so that its value is not known yet."""
    return _ONE_TAG.search(text) is not None


def check_variables(value: Any, where: str, scope: Container[str], global_names: Container[str]) -> None:
    """Every tag in the texts of ``value`` has a value.

    Raises:
        Refused: the first that has none.
    """
    for text in texts_of(value):
        for tag in simple_tags(text):
            name = tag.strip()
            if name.startswith(_JUDGED) and not _has_value(name, scope, global_names):
                raise Refused(f"{where}: failed to resolve {{{{{tag}}}}}: {_reason(name)}")


def _has_value(name: str, scope: Container[str], global_names: Container[str]) -> bool:
    if name in scope or name in global_names or name.startswith(_LATE):
        return True
    for every in (ANY_ITEM, ANY_PARAMETER, ANY_ARTIFACT):
        if name.startswith(every[:-1]) and (every in scope or (every == ANY_ARTIFACT and every in global_names)):
            return True
    return False


def _reason(name: str) -> str:
    head, _, rest = name.partition(".")
    owner = rest.partition(".")[0]
    if head in ("steps", "tasks"):
        return f"no output or fact of this name of {owner!r} is known here; it must end before and declare it"
    if head == "inputs":
        return "the template declares no such input"
    if head == "item":
        return "the items have no such key"
    if head == "workflow":
        return "the workflow has nothing of this name"
    return "nothing of this name has a value here"
