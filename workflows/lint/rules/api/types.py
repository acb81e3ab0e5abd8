"""Whether a value is of the type that its field has."""

from __future__ import annotations

import re
from typing import Final

from argosy.workflows.lint.finding import Problem, SetValue
from argosy.workflows.lint.schema.fields import fields_of
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.quantity import quantity

_SCALARS: Final = {"str": "a string", "int": "a whole number", "bool": "true or false", "quantity": "a quantity"}
_LIKE_A_NUMBER: Final = re.compile(r"[+-]?\d+")


def misfit(node: Node, kind: str) -> Problem | None:
    """The problem of a value that is not of this type; None for one that is, or that is filled in later."""
    if node.open:
        return None
    if kind.startswith("[") and not node.is_list:
        return _refused(node, "a list", "write it as a list: one item per line, each after a dash")
    if (kind.startswith("{") or fields_of(kind)) and not node.is_mapping:
        return _refused(node, "a mapping", "write it as KEY: VALUE lines")
    if kind.startswith("="):
        return _word(node, kind[1:].split("|"))
    if kind not in _SCALARS:
        return None
    if not node.is_scalar:
        return _refused(node, _SCALARS[kind], f"write one value, {_SCALARS[kind]}")
    return _scalar(node, kind)


def _word(node: Node, words: list[str]) -> Problem | None:
    if not node.is_scalar or node.text in words:
        return None
    near = next((each for each in words if each.lower() == node.text.lower()), "")
    message = f"{node.path}: {node.text[:40]!r} is not taken by the API"
    remedy = f"write {near}" if near else f"write one of {', '.join(each for each in words if each)}"
    return Problem(node, message, remedy, [SetValue(node, near)] if near else [], rule="API015")


def _scalar(node: Node, kind: str) -> Problem | None:
    if kind == "quantity":  # a container's own: MEM012
        wrong = node.key == "storage" and quantity(node.text) is None
        return _refused(node, "a quantity", "write a number with Gi or Ti, or G or T") if wrong else None
    if kind == "str" and (node.is_string or _of_env(node)):
        return None
    held = node.data
    if kind == "str" and not node.is_string and isinstance(held, bool | int | float):
        return _refused(node, "a string", f'quote it: "{node.text}"', [SetValue(node, node.text)])
    if kind == "int" and (isinstance(held, bool | float) or node.is_string):
        number = _LIKE_A_NUMBER.fullmatch(node.text) is not None
        remedy = "write it without quotes" if number else "write a whole number"
        return _refused(node, "a whole number", remedy, [SetValue(node, int(node.text))] if number else [])
    if kind == "bool" and not isinstance(held, bool):
        word = node.text.lower() in ("true", "false")
        remedy = "write it without quotes" if word else "write true or false"
        return _refused(node, "true or false", remedy, [SetValue(node, node.text.lower() == "true")] if word else [])
    return None


def _of_env(node: Node) -> bool:
    """Whether it is the value of a variable, of which ARGV030 says more."""
    item = node.parent
    return node.key == "value" and item is not None and item.parent is not None and item.parent.key == "env"


def _refused(node: Node, wanted: str, remedy: str, edits: list[SetValue] | None = None) -> Problem:
    message = f"{node.path} is {_described(node)} where the API takes {wanted}, and is refused"
    return Problem(node, message, remedy, edits or [], rule="API004")


def _described(node: Node) -> str:
    if node.is_mapping:
        return "a mapping"
    if node.is_list:
        return "a list"
    if node.is_string:
        return f'the string "{node.text[:40]}"'
    return {bool: f"the boolean {node.text}", float: f"the number {node.text}"}.get(
        type(node.data), f"the number {node.text}"
    )
