"""What became of every value of a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from argosy.workflows.lint.node import Node


class Fate(Enum):
    """What became of a value."""

    KEPT = "kept"
    CHANGED = "changed"
    BY_HAND = "by hand"
    LOST = "not representable"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the account.

    Args:
        node: the value in the manifest; a missing node for what concerns none.
        into: the field of run.toml it went into; ``""`` when it went into none.
        why: for what is not simply kept.
    """

    fate: Fate
    node: Node
    into: str
    why: str

    @property
    def place(self) -> str:
        """``line 12: spec.template.spec.hostIPC``."""
        return f"line {self.node.line}: {self.node.path or self.node['kind'].text}"


@dataclass(slots=True)
class Account:
    """The entries so far, and which values they cover."""

    entries: list[Entry] = field(default_factory=list)
    _covered: set[int] = field(default_factory=set)

    def kept(self, node: Node, into: str) -> None:
        """It says the same in run.toml."""
        self._add(Fate.KEPT, node, into, "")

    def changed(self, node: Node, why: str, into: str = "") -> None:
        """Argosy does it in another way."""
        self._add(Fate.CHANGED, node, into, why)

    def by_hand(self, node: Node, why: str) -> None:
        """The author has to do something."""
        self._add(Fate.BY_HAND, node, "", why)

    def lost(self, node: Node, why: str) -> None:
        """A run has no word for it."""
        self._add(Fate.LOST, node, "", why)

    def known(self, *nodes: Node) -> None:
        """It says nothing that would have to go anywhere (an apiVersion, a name that only this file uses)."""
        self._covered.update(id(node.yaml) for node in nodes if node.exists)

    def of(self, fate: Fate) -> list[Entry]:
        """The entries of one fate, in the order of the lines."""
        found = [entry for entry in self.entries if entry.fate is fate]
        return sorted(found, key=lambda entry: (entry.node.origin.file, entry.node.line))

    def close(self, roots: Iterable[Node]) -> None:
        """Whatever nobody looked at has no place in a run: say so by name."""
        for root in roots:
            for node in self._uncovered(root):
                self.lost(node, "argosy has no field for it")

    def _add(self, fate: Fate, node: Node, into: str, why: str) -> None:
        if node.exists:
            self._covered.add(id(node.yaml))
        entry = Entry(fate, node, into, why)
        if entry not in self.entries:
            self.entries.append(entry)

    def _uncovered(self, node: Node) -> Iterator[Node]:
        """The highest values in which nothing is covered."""
        if not node.exists or id(node.yaml) in self._covered:
            return
        below = [*node.entries.values(), *node.items]
        if not below or not any(self._touches(each) for each in below):
            if node:
                yield node
            return
        for each in below:
            yield from self._uncovered(each)

    def _touches(self, node: Node) -> bool:
        return any(id(each.yaml) in self._covered for each in node.walk())
