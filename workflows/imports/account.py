"""What became of every value of a manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.word import Word

Key = tuple[int, str]
"""(document, path): aliases make one value stand at several places, each of which has a fate of its own."""


class Fate(Enum):
    """What became of a value."""

    KEPT = "kept"
    CHANGED = "changed"
    BY_HAND = "by hand"
    LOST = "not representable"


_GRAVITY = {fate: number for number, fate in enumerate(Fate)}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the account.

    Args:
        node: the value in the manifest.
        into: the field of run.toml it went into; ``""`` when it went into none.
        why: for what is not simply kept.
        part: the piece of a command line that is meant, where one value holds a whole script; else ``""``.
        advice: what the author must know; it says nothing of the value's own fate.
    """

    fate: Fate
    node: Node
    into: str
    why: str
    part: str = ""
    advice: bool = False


class Account:
    """The entries so far; each value has one fate, the gravest that was said of it.

    Args:
        roots: all YAML documents that are imported.
    """

    def __init__(self, roots: Sequence[Node]) -> None:
        self._roots = list(roots)
        self._numbers = {id(root.yaml): number for number, root in enumerate(roots)}
        self._places: dict[int, dict[Key, Node]] = {}
        for number, root in enumerate(roots):
            for node in root.walk():
                self._places.setdefault(id(node.yaml), {})[number, node.path] = node
        self._entries: dict[Key, list[Entry]] = {}
        self._advice: list[Entry] = []
        self._rest: list[tuple[Node, str]] = []

    # ---- saying

    def kept(self, what: Node | Word, into: str, why: str = "") -> None:
        """It says the same in run.toml."""
        self._say(Fate.KEPT, what, into, why)

    def number(self, node: Node, into: str) -> None:
        """A number that is kept, unless somebody fills it in later."""
        if node.open:
            self.by_hand(node, f"the number is filled in later: write {into}", into)
        self.kept(node, into)

    def changed(self, what: Node | Word, why: str, into: str = "") -> None:
        """Argosy does it in another way."""
        self._say(Fate.CHANGED, what, into, why)

    def by_hand(self, what: Node | Word, why: str, into: str = "") -> None:
        """The author has to do something."""
        self._say(Fate.BY_HAND, what, into, why)

    def take_back(self, node: Node) -> None:
        """A value was taken out of the run again: nothing in it is kept."""
        number, path = self._number(node), node.path
        for document, below in list(self._entries):
            if document == number and below.startswith((f"{path}.", f"{path}[")):
                del self._entries[document, below]

    def lost(self, what: Node | Word, why: str) -> None:
        """A run has no word for it."""
        self._say(Fate.LOST, what, "", why)

    def rest(self, what: Node, why: str) -> None:
        """What nothing is said of until the end is done in another way."""
        self._rest.append((what, why))

    def advise(self, near: Node, why: str, into: str = "") -> None:
        """The author has to do something that no value of the manifest says; ``near`` is where it belongs."""
        while not near.exists and near.parent is not None:
            near = near.parent
        entry = Entry(Fate.BY_HAND, near, into, why, advice=True)
        if near.exists and all((each.why, each.into) != (why, into) for each in self._advice):
            self._advice.append(entry)

    def _say(self, fate: Fate, what: Node | Word, into: str, why: str) -> None:
        node, part = (what.node, what.part) if isinstance(what, Word) else (what, "")
        found = self._place(node)
        if found is None:
            return
        key, place = found
        held = self._entries.get(key, [])
        if any(each.part for each in held) and not part:
            return  # its parts say more
        entry = Entry(fate, place, into, why, part)
        same = [each for each in held if each.part == part]
        if any(_GRAVITY[each.fate] > _GRAVITY[fate] for each in same) or entry in same:
            return
        rest = [each for each in held if (each.part != part and each.part) or (each in same and each.fate is fate)]
        self._entries[key] = [*rest, entry]

    # ---- reading

    def of(self, fate: Fate) -> list[Entry]:
        """The entries of one fate, in the order of the lines."""
        found = [entry for held in self._entries.values() for entry in held if entry.fate is fate]
        found += [entry for entry in self._advice if fate is Fate.BY_HAND]
        return sorted(found, key=lambda entry: (entry.node.origin.file, entry.node.line))

    def document_of(self, entry: Entry) -> int:
        """Number of the YAML document, from 0, over all files."""
        found = self._place(entry.node)
        return found[0][0] if found is not None else 0

    def close(self, later: Sequence[Node] = ()) -> None:
        """Whatever nobody looked at has no place in a run: say so by name; ``later`` is looked at afterwards."""
        for what, why in self._rest:
            found = self._place(what)
            if found is not None and found[0] not in self._entries:
                self.changed(what, why)
        spoken = {*self._entries, *((self._number(node), node.path) for node in later)}
        above: set[Key] = set()
        for held in list(self._entries.values()):
            node: Node | None = held[0].node.parent
            number = self._number(held[0].node)
            while node is not None and (number, node.path) not in above:
                above.add((number, node.path))
                node = node.parent
        for number, root in enumerate(self._roots):
            for node in _unspoken(root, number, spoken, above):
                self.lost(node, "argosy has no field for it")

    def mirror(self, one: Node, other: Node) -> None:
        """Say of a template what was said of another one, where they are the same."""
        number, start = self._number(one), _place_by_name(one)
        below = {_place_by_name(node): node for node in other.walk()}
        for (document, _), held in list(self._entries.items()):
            place = _place_by_name(held[0].node)
            if document != number or place[: len(start)] != start:
                continue
            found = below.get((*_place_by_name(other), *place[len(start) :]))
            for entry in held if found is not None else []:
                for node in _equal(entry.node, found or other):
                    if not self._spoken(node) or entry.part:
                        self._say(entry.fate, Word((), node, entry.part), entry.into, entry.why)

    def _spoken(self, node: Node) -> bool:
        found = self._place(node)
        return found is not None and found[0] in self._entries

    # ---- places

    def _place(self, node: Node) -> tuple[Key, Node] | None:
        held = self._places.get(id(node.yaml)) if node.exists else None
        if held is None:
            return None
        key = self._number(node), node.path
        if key in held:
            return key, held[key]
        return next(iter(held.items()))

    def _number(self, node: Node) -> int:
        while node.parent is not None:
            node = node.parent
        return self._numbers.get(id(node.yaml), -1)


def _unspoken(node: Node, number: int, spoken: set[Key], above: set[Key]) -> Iterator[Node]:
    """The highest values in which nothing was spoken of."""
    key = number, node.path
    if key in spoken:
        return
    if key not in above:
        if node:
            yield node
        return
    for below in [*node.entries.values(), *node.items]:
        yield from _unspoken(below, number, spoken, above)


def _place_by_name(node: Node) -> tuple[str | int, ...]:
    """The keys above a value; a variable and a volume have their names there, for their order says nothing."""
    found: list[str | int] = []
    while node.parent is not None:
        listed = node.parent.key in ("env", "volumes") and node["name"].text
        found.append(listed or node.key)
        node = node.parent
    return tuple(reversed(found))


def _equal(one: Node, other: Node) -> Iterator[Node]:
    """The highest values of the other that are as the one's."""
    if one.data == other.data:
        yield other
    elif one.is_mapping and other.is_mapping:
        for key, value in other.entries.items():
            if key in one:
                yield from _equal(one[key], value)
    elif one.is_list and len(one.items) == len(other.items):
        for left, right in zip(one.items, other.items, strict=True):
            yield from _equal(left, right)
