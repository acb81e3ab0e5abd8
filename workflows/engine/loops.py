"""``withItems``, ``withParam`` and ``withSequence``: from one step to many, with the controller's names."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import json_text, plain_text
from argosy.workflows.engine.substitute import Substitution
from argosy.workflows.engine.when import should_execute

LOOP_FIELDS = ("withItems", "withParam", "withSequence")


def is_loop(step: dict[str, Any]) -> bool:
    """Whether the step or task stands for several."""
    return bool(step.get("withItems")) or bool(step.get("withParam")) or step.get("withSequence") is not None


def expand(step: dict[str, Any], values: dict[str, str]) -> list[dict[str, Any]]:
    """The steps that a loop stands for, ``{{item}}`` replaced; the step itself if it is no loop.

    Raises:
        ExpressionError: ``withParam`` is no JSON list, a bound of the sequence no number, an item of no known kind.
    """
    if not is_loop(step):
        return [step]
    body = {key: value for key, value in step.items() if key not in LOOP_FIELDS}
    return [_one(body, index, item, values) for index, item in enumerate(_items(step))]


def _items(step: dict[str, Any]) -> list[Any]:
    if step.get("withItems"):
        return list(step["withItems"])
    read: Callable[[dict[str, Any]], list[Any]] = _parameter_items if step.get("withParam") else _sequence_items
    try:
        return read(step)
    except ExpressionError:
        # A loop whose condition is false already needs no items.
        if should_execute(str(step.get("when") or "")):
            raise
        return []


def _parameter_items(step: dict[str, Any]) -> list[Any]:
    text = str(step["withParam"])
    try:
        items = json.loads(text)
    except ValueError as error:
        raise ExpressionError(f"withParam value could not be parsed as a JSON list: {text.strip()}: {error}") from None
    if not isinstance(items, list):
        kind = type(items).__name__
        raise ExpressionError(f"withParam value could not be parsed as a JSON list: {text.strip()}: it is a {kind}")
    return items


def _bound(sequence: dict[str, Any], name: str) -> int:
    value = sequence.get(name, 0)
    try:
        return int(str(value))
    except ValueError:
        raise ExpressionError(f'withSequence.{name}: parsing "{value}": invalid syntax') from None


def _sequence_items(step: dict[str, Any]) -> list[Any]:
    sequence = step["withSequence"]
    start = _bound(sequence, "start")
    if sequence.get("end") is not None:
        end = _bound(sequence, "end")
    else:
        count = _bound(sequence, "count")
        if count == 0:
            return []
        end = start + count - 1
    numbers = range(start, end + 1) if start <= end else range(start, end - 1, -1)
    form = sequence.get("format")
    return [form % number if form else str(number) for number in numbers]


def item_label(item: Any) -> str:
    """The part after the index in ``name(0:label)``."""
    if isinstance(item, dict):
        label = ",".join(sorted(f"{key}:{_item_text(value)}" for key, value in item.items()))
    elif isinstance(item, list):
        label = "[" + " ".join(_item_text(value) for value in item) + "]"
    else:
        label = _item_text(item)
    return label.replace("(", "").replace(")", "")


def _item_text(value: Any) -> str:
    return json_text(value) if isinstance(value, dict | list) else plain_text(value)


def _one(body: dict[str, Any], index: int, item: Any, values: dict[str, str]) -> dict[str, Any]:
    if item is None:
        raise ExpressionError(f"withItems[{index}] expected string, number, list, or map. received: null")
    own = {"item": _item_text(item)}
    if isinstance(item, dict):
        own |= {f"item.{key}": _item_text(value) for key, value in item.items()}
    expanded: dict[str, Any] = Substitution({**values, **own}).tree(body)
    expanded["name"] = f"{body['name']}({index}:{item_label(item)})"
    return expanded
