"""An account as lines of text: a line per fact, what says the same together, the places aligned."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from argosy.workflows.imports.account import Account, Entry, Fate
from argosy.workflows.imports.masking import masked

HEADS: Final = {
    Fate.BY_HAND: "left to you",
    Fate.CHANGED: "changed",
    Fate.LOST: "not representable",
    Fate.KEPT: "kept",
}
_WIDEST: Final = 38
_SHOWN: Final = 3
_MARKS: Final = ("labels", "annotations", "nodeSelector", "data", "spec", "metadata")


def told(account: Account, *, everything: bool, width: int) -> Iterator[tuple[str, str]]:
    """(``head`` or ``line``, text) from the top.

    Args:
        everything: also what was kept, each value by its whole path.
        width: characters of a line.
    """
    for fate, head in HEADS.items():
        found = account.of(fate)
        if not found or (fate is Fate.KEPT and not everything):
            continue
        yield "head", head
        rows = _each(found) if everything else _grouped(found)
        column = min(_WIDEST, max(len(what) for _, what, _ in rows)) if not everything else _WIDEST
        for lines, what, why in rows:
            yield from (("line", text) for text in _row(lines, what, why, column, width))


def summary(account: Account) -> str:
    """``31 kept, 9 changed, 4 left to you, 2 not representable``."""
    order = (Fate.KEPT, Fate.CHANGED, Fate.BY_HAND, Fate.LOST)
    return ", ".join(f"{len(account.of(fate))} {HEADS[fate]}" for fate in order)


def _each(found: Sequence[Entry]) -> list[tuple[str, str, str]]:
    return [(str(entry.node.line), _path(entry), _why(entry)) for entry in found]


def _grouped(found: Sequence[Entry]) -> list[tuple[str, str, str]]:
    """One row for all values of which the same is said."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in found:
        groups.setdefault((entry.why, entry.into if entry.advice else ""), []).append(entry)
    rows = []
    for (_, _), entries in groups.items():
        names = list(dict.fromkeys(_short(entry) for entry in entries))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        rows.append((_lines(entries), ", ".join(names[:_SHOWN]) + more, _why(entries[0], single=len(entries) == 1)))
    return rows


def _lines(entries: Sequence[Entry]) -> str:
    numbers = sorted({entry.node.line for entry in entries})
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}…"


def _why(entry: Entry, *, single: bool = True) -> str:
    into = f"-> {entry.into}" if entry.into and single and not entry.advice else ""
    return masked(": ".join(text for text in (into, entry.why) if text))


def _path(entry: Entry) -> str:
    if entry.advice:
        return entry.into or "this run"
    return f"{entry.node.path}: {_one_line(entry.part)}" if entry.part else entry.node.path or "all of it"


def _short(entry: Entry) -> str:
    """The end of the path, with the name of a list's item in place of its number."""
    if entry.advice and entry.into:
        return entry.into
    if entry.part:
        return _one_line(entry.part)
    node = entry.node
    if isinstance(node.key, int):
        return _one_line(node["name"].text or node.text or f"{node.parent.key if node.parent else ''}[{node.key}]")
    above = node.parent
    if above is None:
        return node["kind"].text or "all of it"
    if above.key in _MARKS or above.key == "" or isinstance(above.key, int):
        return _one_line(str(node.key) or above.path)
    return _one_line(f"{above.key}.{node.key}")


def _one_line(text: str) -> str:
    text = " ".join(masked(text).split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _row(lines: str, what: str, why: str, column: int, width: int) -> Iterator[str]:
    """``  12  what                why``, the reason on lines of its own where the place is too long."""
    head = f"  {lines:>5}  {what}"
    indent = " " * (column + 11)
    wrapped = textwrap.wrap(why, max(width - len(indent), 30)) or [""]
    if len(what) <= column:
        yield f"{head:<{column + 11}}{wrapped[0]}".rstrip()
        wrapped = wrapped[1:]
    else:
        yield head
    for text in wrapped:
        if text:
            yield indent + text
