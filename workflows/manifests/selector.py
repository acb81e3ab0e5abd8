"""Label selectors with ``matchLabels`` and ``matchExpressions``.

https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

from __future__ import annotations

from argosy.workflows.manifests.node import Node


def matches(selector: Node, labels: Node, *, added: bool = False) -> bool:
    """Whether a selector can select an object with these labels; what is not known counts as matching.

    Args:
        added: controllers may add labels to the object, whose keys have a domain (``training.kubeflow.org/…``).
    """
    for key, value in selector["matchLabels"].entries.items():
        if not _equal(key, [value], labels, added):
            return False
    for each in selector["matchExpressions"]:
        key, operator = each["key"].text, each["operator"].text
        held = key in labels
        if operator == "In" and not _equal(key, each["values"].items, labels, added):
            return False
        if operator == "Exists" and not held and not (added and "/" in key):
            return False
        if operator == "DoesNotExist" and held:
            return False
        if operator == "NotIn" and held and _equal(key, each["values"].items, labels, added=False):
            return False
    return True


def _equal(key: str, values: list[Node], labels: Node, added: bool) -> bool:
    held = labels[key]
    if not held.exists:
        return added and "/" in key
    return held.open or any(each.open or each.text == held.text for each in values)
