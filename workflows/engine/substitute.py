"""``{{tag}}`` and ``{{=expression}}`` in the strings of a template.

Argo replaces tags in the template's JSON, escaped; replacing them in the decoded strings gives the same values.
What cannot be resolved stays as it stands, as it does there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import json_text

_TAG = re.compile(r"\{\{((?:(?!\{\{).)*?)\}\}", re.DOTALL)
WHOLE_TAG = re.compile(r"\{\{[^{}]*\}\}")
_LATE = ("item", "retries", "lastRetry.exitCode", "lastRetry.status", "lastRetry.duration", "lastRetry.message",
         "workflow.status", "workflow.failures")  # fmt: skip
"""Names that get a value late: an expression that reads one waits for it instead of seeing nil."""


def nested(names: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names as nested maps, the environment of expressions. A name that is both value and prefix is a map."""
    tree: dict[str, Any] = {}
    for name in sorted(names, key=len):
        *parents, last = name.split(".")
        place = tree
        for parent in parents:
            below = place.get(parent)
            if not isinstance(below, dict):
                below = place[parent] = {}
            place = below
        place[last] = names[name]
    return tree


def _known(path: str, env: Mapping[str, Any]) -> bool:
    place: Any = env
    for part in path.split("."):
        if not isinstance(place, Mapping) or part not in place:
            return False
        place = place[part]
    return True


class Substitution:
    """Replaces tags by ``values`` (dotted name -> text)."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._env: dict[str, Any] | None = None

    def text(self, template: str) -> str:
        """``template`` with every resolvable tag replaced once."""
        if "{{" not in template:
            return template
        return _TAG.sub(self._tag, template)

    def tree(self, value: Any) -> Any:
        """A copy of a JSON-like value with the tags of all its strings (keys too) replaced."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.tree(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.tree(item) for item in value]
        return value

    def _tag(self, match: re.Match[str]) -> str:
        tag = match[1]
        if tag.startswith("="):
            return self._expression(match[0], tag[1:])
        found = self._values.get(tag.strip())
        return match[0] if found is None else found

    def _expression(self, whole: str, text: str) -> str:
        from argosy.workflows.engine.expression.evaluate import evaluate, member_paths

        if self._env is None:
            self._env = nested(self._values)
        try:
            if any(path in _LATE and not _known(path, self._env) for path in member_paths(text)):
                return whole
            result = evaluate(text, self._env)
        except ExpressionError:
            return whole
        if result is None:
            return whole
        return result if isinstance(result, str) else json_text(result)
