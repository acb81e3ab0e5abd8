"""``depends`` of a DAG task: which tasks it names, and whether their results let it run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError, parse_with

_TERM = r"\s*[A-Za-z0-9][-_A-Za-z0-9]*(?:\.(?:Succeeded|Failed|Errored|Skipped|Omitted))?\s*"
_PLAIN = re.compile(rf"{_TERM}(?:&&{_TERM})*")
DEFAULT_RESULTS = ("Succeeded", "Skipped", "Daemoned")
"""What a task's bare name stands for."""

Condition = tuple[Any, ...]
"""("either" | "both", left, right), ("negate", operand) or ("any", task, results)."""


@lru_cache(maxsize=1024)
def parse_depends(text: str) -> Condition:
    """The condition of ``text``.

    Raises:
        ExpressionError: not a ``depends`` expression.
    """
    if _PLAIN.fullmatch(text):
        # The usual case needs no grammar, and lark takes longer to import than a small workflow to run.
        terms = [term.strip().partition(".") for term in text.split("&&")]
        parts: list[Condition] = [("any", name, (result,) if result else DEFAULT_RESULTS) for name, _, result in terms]
        return _all_of(parts)
    return _condition(parse_with("depends", text))


def _condition(tree: Any) -> Condition:
    if tree.data == "task":
        return ("any", str(tree.children[0]), DEFAULT_RESULTS)
    if tree.data == "result":
        return ("any", str(tree.children[0]), (str(tree.children[1]),))
    return (str(tree.data), *(_condition(child) for child in tree.children))


def from_dependencies(names: Sequence[str], accepted: Callable[[str], Sequence[str]]) -> Condition:
    """The condition that ``dependencies: [a, b]`` stands for; ``accepted`` gives the results ``continueOn`` adds."""
    conditions: list[Condition] = [("any", name, (*DEFAULT_RESULTS, *accepted(name))) for name in names]
    if not conditions:
        raise ExpressionError("dependencies is empty")
    return _all_of(conditions)


def _all_of(conditions: list[Condition]) -> Condition:
    condition = conditions[0]
    for each in conditions[1:]:
        condition = ("both", condition, each)
    return condition


def tasks_of(condition: Condition) -> list[str]:
    """Names in the condition, in order of first mention."""
    if condition[0] == "any":
        return [condition[1]]
    found: list[str] = []
    for child in condition[1:]:
        found += [name for name in tasks_of(child) if name not in found]
    return found


def holds(condition: Condition, results: Mapping[str, frozenset[str]]) -> bool:
    """Whether the condition is met; ``results`` maps each task to the results it has."""
    kind = condition[0]
    if kind == "any":
        return not results[condition[1]].isdisjoint(condition[2])
    if kind == "negate":
        return not holds(condition[1], results)
    if kind == "either":
        return holds(condition[1], results) or holds(condition[2], results)
    return holds(condition[1], results) and holds(condition[2], results)
