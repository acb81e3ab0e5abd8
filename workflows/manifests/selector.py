"""Label selectors with ``matchLabels`` and ``matchExpressions``.

https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

from __future__ import annotations

from argosy.workflows.manifests.node import Node


def matches(selector: Node, labels: Node) -> bool:
    """Whether a selector can select an object with these labels; what is not known counts as matching."""
    for key, value in selector["matchLabels"].entries.items():
        if not _equal(key, [value], labels):
            return False
    for each in selector["matchExpressions"]:
        key, operator = each["key"].text, each["operator"].text
        held = key in labels
        if operator == "In" and not _equal(key, each["values"].items, labels):
            return False
        if operator == "Exists" and not held:
            return False
        if operator == "DoesNotExist" and held:
            return False
        if operator == "NotIn" and held and _equal(key, each["values"].items, labels):
            return False
    return True


def _equal(key: str, values: list[Node], labels: Node) -> bool:
    held = labels[key]
    return held.exists and (held.open or any(each.open or each.text == held.text for each in values))
