"""``withItems``, ``withParam`` and ``withSequence``: from one step to many, with the controller's names."""

from __future__ import annotations

import json
import re
from typing import Any

from argosy.workflows.engine import rawjson, sequence
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import json_text
from argosy.workflows.engine.substitute import EVERYTHING, Substitution
from argosy.workflows.engine.when import should_execute

LOOP_FIELDS = ("withItems", "withParam", "withSequence")


def is_loop(step: dict[str, Any]) -> bool:
    """Whether the step or task stands for several."""
    return bool(step.get("withItems")) or bool(step.get("withParam")) or step.get("withSequence") is not None


def expand(step: dict[str, Any], values: dict[str, str | None]) -> list[dict[str, Any]]:
    """The steps that a loop stands for, ``{{item}}`` replaced; the step itself if it is no loop.

    Raises:
        ExpressionError: ``withParam`` is no JSON list, a bound of the sequence no number, a tag that nothing answers.
    """
    if not is_loop(step):
        return [step]
    body = {key: value for key, value in step.items() if key not in LOOP_FIELDS}
    return [_one(body, index, item, values) for index, item in enumerate(_items(step))]


def _items(step: dict[str, Any]) -> list[str]:
    """The items, each as its JSON text."""
    if step.get("withItems"):
        return [json_text(item) for item in step["withItems"]]
    try:
        if step.get("withParam"):
            return _parameter_items(str(step["withParam"]))
        return [json_text(text) for text in sequence.texts(step["withSequence"])]
    except ExpressionError:
        # A loop whose condition is false already needs no items.
        if _may_run(step):
            raise
        return []


def _may_run(step: dict[str, Any]) -> bool:
    try:
        return should_execute(str(step.get("when") or ""))
    except ExpressionError:
        return True


def _parameter_items(text: str) -> list[str]:
    try:
        plain = rawjson.compact(text)
        if plain == "null":
            return []
        if plain[0] != "[":
            raise ExpressionError("json: cannot unmarshal into Go value of type []v1alpha1.Item")
    except ExpressionError as error:
        raise ExpressionError(f"withParam value could not be parsed as a JSON list: {text.strip()}: {error}") from None
    return rawjson.items(plain)


def _label(item: str) -> str:
    """The part after the index in ``name(0:label)``."""
    if item[:1] == "{":
        label = ",".join(sorted(f"{key}:{rawjson.shown(value)}" for key, value in rawjson.members(item).items()))
    elif item[:1] == "[":
        label = "[" + " ".join(rawjson.shown(value) for value in rawjson.items(item)) + "]"
    else:
        label = "[]" if item == "null" else rawjson.shown(item)
    return label.replace("(", "").replace(")", "")


def _names(item: str) -> dict[str, str]:
    if item[:1] == '"':
        return {"item": re.sub("[\ud800-\udfff]", "\ufffd", str(json.loads(item)))}
    if item[:1] != "{":
        return {"item": item}
    inner = rawjson.members(item)
    whole = "{" + ",".join(f"{json_text(key)}:{inner[key]}" for key in sorted(inner)) + "}"
    return {"item": whole, **{f"item.{key}": rawjson.shown(value) for key, value in inner.items()}}


def _one(body: dict[str, Any], index: int, item: str, values: dict[str, str | None]) -> dict[str, Any]:
    if _may_run(body):
        substitution = Substitution({**values, **_names(item)}, EVERYTHING)
    else:
        # It will never run, so that nothing in it needs a value.
        known = {name: value for name, value in values.items() if value is not None}
        substitution = Substitution({**known, **_names(item)})
    expanded: dict[str, Any] = substitution.tree(body)
    expanded["name"] = f"{body['name']}({index}:{_label(item)})"
    return expanded
