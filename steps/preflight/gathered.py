"""What the ranks of a gang found out together, and what one of them is told to look at."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Nodes are known by their number, the rank of the node in the gang."""

    names: list[str]
    software: list[str]
    """Of each node: versions of torch and NCCL, and its GPUs."""
    links: set[tuple[int, int]]
    """Pairs that were tried, the lower number first."""
    dead: set[tuple[int, int]] = field(default_factory=set)
    """Those of which one could not connect to the other."""
    pairs: dict[tuple[int, int], float] = field(default_factory=dict)
    """What two nodes exchange in each direction, GB/s over all their ranks."""
    again: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Of nodes that looked slow: what they and, in turn with them, two others exchanged while all were still, GB/s."""
    compute: list[float] = field(default_factory=list)
    """Of each node: the time of its slowest rank for the same multiplications, seconds; empty: not measured."""
    all_reduce: float = 0.0
    """Bus bandwidth of the whole gang's all_reduce, GB/s; 0: not measured."""
    size: int = 0
    """Bytes that were exchanged and reduced."""
    floor: float = 0.0
    """All_reduce bandwidth of the fabric's profile, GB/s; 0: not stated."""


def partners(node: int, nodes: int, most: int) -> list[int | None]:
    """Whom ``node`` meets in each round: everyone once, up to ``most`` rounds; None sits a round out.

    The circle method of round-robin tournaments, so the pairs of a round are disjoint and exchange at the same time.
    """
    seats = nodes + nodes % 2
    met: list[int | None] = []
    for turn in range(min(most, seats - 1)):
        if node == seats - 1:
            other = turn * (seats // 2) % (seats - 1)
        else:
            other = (turn - node) % (seats - 1)
            other = seats - 1 if other == node else other
        met.append(other if other < nodes else None)
    return met


def dialled(node: int, nodes: int, most: int) -> list[int]:
    """To whom ``node`` connects: each pair of a gang is tried once; of a large one, ``most`` for each node."""
    later = [(node + distance) % nodes for distance in range(1, nodes // 2 + 1)]
    if nodes % 2 == 0 and node >= nodes // 2:
        later = later[:-1]
    return later if len(later) <= most else later[:: -(-len(later) // most)]


def neighbours(node: int, nodes: int, most: int) -> list[int]:
    """The other ends of all links of ``node``: both connect, for what lets nobody in may well get out."""
    later = set(dialled(node, nodes, most))
    return sorted(other for other in range(nodes) if other in later or node in dialled(other, nodes, most))
