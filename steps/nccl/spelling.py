"""The nearest known name."""

from __future__ import annotations

from functools import cache


def distance(one: str, other: str, most: int) -> int:
    """Edits (insert, delete, replace, swap of neighbours) between two names; ``most + 1`` when there are more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        previous, row = row, [i]
        for j, right in enumerate(other, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (left != right))
            if before and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before = previous
    return row[-1]


@cache
def nearest(name: str, known: frozenset[str]) -> str | None:
    """The known name within two edits (one for short names) or of the same words in another order."""
    words = sorted(name.upper().split("_"))
    most = 1 if len(name) < 12 else 2
    best: list[tuple[int, str]] = []
    for candidate in known:
        edits = 0 if sorted(candidate.split("_")) == words else distance(name.upper(), candidate, most)
        if edits <= most:
            best.append((edits, candidate))
    return min(best)[1] if best else None
