"""``{{tag}}`` and ``{{=expression}}`` in the strings of a template.

Argo replaces tags in the template's JSON; replacing them in the decoded strings gives the same values. A value that
would break that JSON (control characters) is an error there, so it is one here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import breaks_json, json_text

_TAG = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
STEPS_AND_TASKS = re.compile(r"(tasks|steps)(\.|$)")
"""What has to have a value before a step or task starts."""
EVERYTHING = re.compile("")
"""What has to have a value once a loop's item is known."""
_LATE = ("item", "retries", "lastRetry.exitCode", "lastRetry.status", "lastRetry.duration", "lastRetry.message",
         "workflow.status", "workflow.failures")  # fmt: skip
"""Names that get a value late: an expression that reads one waits for it instead of seeing nil."""


class Unanswered(ExpressionError):
    """A reference to an earlier step or task has no value yet; the controller asks again until it has one."""


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
    """Replaces tags by ``values`` (dotted name -> text; None: the output of a node that was skipped).

    Names that ``required`` matches must have a value; other tags that nothing answers stay as they stand.
    """

    def __init__(self, values: Mapping[str, str | None], required: re.Pattern[str] | None = None) -> None:
        self._values, self._required = values, required
        self._env: dict[str, Any] | None = None
        self._broken = False

    def tree(self, value: Any) -> Any:
        """A copy of a JSON-like value with the tags of all its strings (keys too) replaced once.

        Raises:
            Unanswered: a name that is required has no value.
            ExpressionError: an expression fails, a value is one of a skipped node or no JSON can hold it.
        """
        self._broken = False
        found = self._walk(value)
        if self._broken:
            raise ExpressionError("cannot finish template replacement because the result was invalid JSON")
        return found

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return _TAG.sub(self._tag, value) if "{{" in value else value
        if isinstance(value, dict):
            return {self._walk(key): self._walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        return value

    def _needs(self, name: str) -> bool:
        return self._required is not None and self._required.match(name) is not None

    def _tag(self, match: re.Match[str]) -> str:
        tag = match[1]
        if tag.startswith("="):
            return self._expression(match[0], tag[1:])
        name, outer = tag.strip(), ""
        if name not in self._values and tag.rpartition("{{")[2] in self._values:
            # The innermost of tags in tags; what begins the text is none to Argo.
            start, _, inner = tag.rpartition("{{")
            name, outer = (inner, "{{" + start) if start else (name, "")
        if name not in self._values:
            # Artifacts are resolved apart from texts, and may be optional.
            if self._needs(name) and (self._required is EVERYTHING or ".outputs.artifacts." not in name):
                raise Unanswered(f"failed to resolve {{{{{tag}}}}}")
            return match[0]
        found = self._values[name]
        if found is None:
            raise ExpressionError(
                f"unable to substitute {{{{{tag}}}}}: output is an absent optional "
                "(skipped/omitted node with no default)"
            )
        self._broken = self._broken or breaks_json(found)
        return outer + found

    def _expression(self, whole: str, text: str) -> str:
        from argosy.workflows.engine.expression.evaluate import evaluate, identifiers

        if self._env is None:
            self._env = nested(self._values)
        missing = [name for name in identifiers(text) if not _known(name, self._env)]
        for name in missing:
            if self._needs(name):
                raise Unanswered(f"failed to evaluate expression: {name} is missing")
        if any(name in _LATE for name in missing):
            return whole
        lenient = bool(missing) or self._required is None
        try:
            result = evaluate(text, self._env)
            found = result if result is None or isinstance(result, str) else json_text(result)
        except ExpressionError as error:
            if lenient and not error.unsupported:
                return whole
            raise ExpressionError(f"failed to evaluate expression: {error}") from None
        except ValueError as error:
            if lenient:
                return whole
            raise ExpressionError(f"failed to marshal evaluated expression: {error}") from None
        if found is None:
            if lenient:
                return whole
            raise ExpressionError(f'failed to evaluate expression "{text}"')
        return found
