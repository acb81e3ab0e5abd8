"""YAML text into composed values, within what a manifest can need: a file may be made to hurt whoever reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MOST_VALUES: Final = 50_000
"""Values of one document with all aliases followed; the largest CRD of Kueue has 22,000."""
LONGEST: Final = 1 << 20
"""Characters of one text: no object of Kubernetes can hold more (etcd takes 1.5 MiB)."""
DEEPEST: Final = 100
"""Values inside of values; the composer of PyYAML crashes at some thousands."""
_BRACKETS: Final = re.compile(r"[\[{]+|[\]}]+")
_JSON: Final = re.compile(r"\}[ \t\r]*\n+(?=\{|null\b)")
_DASHES: Final = re.compile(r"^(?:[ ]*[-?:][ ])+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TooMuch:
    """A document that is not read, and why."""

    line: int
    message: str
    remedy: str


def compose(text: str) -> Iterator[yaml.Node | TooMuch]:
    """The documents of a text, empty ones left out.

    Raises:
        yaml.YAMLError: it is not YAML, behind the documents that are; yielded before.
    """
    if may_be_deep(text) or text.count("{") > MOST_VALUES:
        found = _before_composing(text)
        if found is not None:
            yield found
            return
    # kubectl takes objects of JSON one after the other, YAML only with dashes between them.
    several = _JSON.sub(r"\g<0>--- ", text) if text.lstrip()[:1] == "{" else text
    for composed in yaml.compose_all(several, Loader=LOADER):
        if composed is not None:
            yield _too_much(composed) or composed


def may_be_deep(text: str) -> bool:
    """Whether brackets, dashes or indents could nest that deep: a bound, which reads each character once."""
    depth = deepest = 0
    if text.count("[") + text.count("{") > DEEPEST:
        for run in _BRACKETS.findall(text):
            depth = depth + len(run) if run[0] in "[{" else max(0, depth - len(run))
            deepest = max(deepest, depth)
    widest = max((len(found) for found in _DASHES.findall(text)), default=0) // 2
    indent = max((len(each) - len(each.lstrip(" ")) for each in text.split("\n")), default=0)
    return deepest + widest + indent > DEEPEST


def _before_composing(text: str) -> TooMuch | None:
    """Where values are too deep or too many; None where they are not. Parsing is a loop, composing is not."""
    depth = values = line = 0
    try:
        for event in yaml.parse(text, Loader=LOADER):
            here = int(event.start_mark.line) + 1 if event.start_mark is not None else 1
            if isinstance(event, yaml.DocumentStartEvent):
                values, line = 0, 0
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.NodeEvent):
                values, line = values + 1, line or here
                depth += isinstance(event, yaml.CollectionStartEvent)
            if depth > DEEPEST:
                return TooMuch(
                    here, f"values are nested more than {DEEPEST} deep", "flatten them; no manifest needs it"
                )
            if values > MOST_VALUES:
                return _too_many(line)
    except yaml.YAMLError:
        pass  # composing says it with its place
    return None


def _too_much(root: yaml.Node) -> TooMuch | None:
    """Why a document is too much; None when it is not."""
    sizes: dict[int, int] = {}
    open_ids: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, closing = stack.pop()
        below = children(node)
        if max(len(sizes), len(below)) > MOST_VALUES:
            return _too_many(root.start_mark.line + 1)
        if closing:
            open_ids.discard(id(node))
            sizes[id(node)] = min(1 + sum(sizes[id(each)] for each in below), MOST_VALUES + 1)
        elif id(node) in open_ids:
            return _too_many(root.start_mark.line + 1)
        elif not below:
            sizes[id(node)] = 1
            if isinstance(node, yaml.ScalarNode) and len(node.value) > LONGEST:
                message = f"a text of {len(node.value) >> 10} KiB: no object of Kubernetes can hold it"
                return TooMuch(node.start_mark.line + 1, message, "keep it outside, in an image or an object store")
        elif id(node) not in sizes:
            open_ids.add(id(node))
            stack.append((node, True))
            stack.extend((each, False) for each in below if id(each) not in sizes)
    return _too_many(root.start_mark.line + 1) if sizes[id(root)] > MOST_VALUES else None


def _too_many(line: int) -> TooMuch:
    message = f"more than {MOST_VALUES} values, aliases followed (or one that holds itself)"
    return TooMuch(line, message, "write fewer, or split the object")


def children(node: yaml.Node) -> list[yaml.Node]:
    """Keys and values of a mapping, items of a list; empty for anything else."""
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
