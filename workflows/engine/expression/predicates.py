"""Functions of a list and of what is asked of each of its items: ``filter(list, {# > 1})``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lark import Tree

from argosy.workflows.engine.expression.functions import NAMES
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import plain_text

Found = Iterator[Any]
"""The answers, each made when it is asked for: what has been decided asks no further."""


def _yes(answer: Any) -> bool:
    if not isinstance(answer, bool):
        raise ExpressionError(f"interface conversion: {plain_text(answer)} is not a bool")
    return answer


def _find(items: list[Any], found: Found) -> Any:
    return next((item for item, answer in zip(items, found, strict=True) if _yes(answer)), None)


PREDICATES: dict[str, Callable[[list[Any], Found], Any]] = {
    "filter": lambda items, found: [item for item, answer in zip(items, found, strict=True) if _yes(answer)],
    "map": lambda _, found: list(found),
    "all": lambda _, found: all(map(_yes, found)),
    "any": lambda _, found: any(map(_yes, found)),
    "none": lambda _, found: not any(map(_yes, found)),
    "one": lambda _, found: sum(map(_yes, found)) == 1,
    "count": lambda _, found: sum(map(_yes, found)),
    "find": _find,
    "findIndex": lambda _, found: next((index for index, answer in enumerate(found) if _yes(answer)), None),
}


def refuse_call(name: str, arguments: Sequence[Any]) -> None:
    """Raise ExpressionError unless ``name`` can be called with the trees ``arguments``."""
    given = [each for each in arguments if each is not None]
    if name in PREDICATES:
        if len(given) != 2 or _is_predicate(given[0]):
            raise ExpressionError(f"{name}: takes a list and a predicate")
        return
    if name not in NAMES:
        known = ", ".join([*NAMES, *PREDICATES])
        raise ExpressionError(f"function {name}: not supported by the local engine (it has {known})")
    if any(map(_is_predicate, given)):
        raise ExpressionError(f"{name}: takes no predicate")


def _is_predicate(tree: Any) -> bool:
    return isinstance(tree, Tree) and tree.data == "predicate"
