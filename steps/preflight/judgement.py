"""What is wrong with a gang, and which node it is: pure rules over what was gathered.

A node is named only when no other node explains what was seen. Thresholds: half of the median for what crosses the
network, as DLRover's network check has it; a fifth below the median for what a node computes alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Final

from argosy.steps.contract.causes import Cause
from argosy.steps.preflight.gathered import Gathered

SLOW_LINK: Final = 0.5
SLOW_NODE: Final = 0.8
FLOOR: Final = 0.7
"""Of the bandwidth that the profile states: it is that of the largest messages on an idle fabric."""
_NAMED = 4
_LOOKED_AT: Final = 16
"""Slow nodes that get a second look, one after the other; who gets none is not named."""


@dataclass(frozen=True)
class Flaw:
    """One thing that is wrong; ``node`` is empty when nobody can be named."""

    cause: Cause
    text: str
    node: str = ""


def judge(found: Gathered) -> list[Flaw]:
    """Everything that is wrong, the worst first; empty: nothing."""
    if found.dead:
        return _dead_links(found)
    return [*_unlike(found), *_slow_links(found), *_slow_nodes(found), *_below_floor(found)]


def _dead_links(found: Gathered) -> list[Flaw]:
    """Nodes are named that fail with most of their peers, and more often than others: fewer than half of the gang."""
    links, dead = _by_name(found, found.links), _by_name(found, found.dead)
    left = dead - _by_name(found, found.links - found.dead)  # pods that share a node are one: some of its links work
    flaws = []
    while left:
        degree = Counter(name for pair in left for name in pair)
        most = max(degree.values())
        top = sorted(name for name, count in degree.items() if count == most)
        tried = {name: sum(name in pair for pair in links) for name in top}
        if most < 2 or 2 * len(top) >= len(set(found.names)) or any(2 * most <= tried[name] for name in top):
            break
        for name in top:
            text = f"{name} and {most} of the {tried[name]} nodes it tried do not reach each other"
            flaws.append(Flaw(Cause.NCCL_IB_ERROR, text, name))
        left = {pair for pair in left if not pair & set(top)}
    if left or not flaws:
        pairs = sorted(" and ".join(sorted(pair)) for pair in left or dead)
        more = f", and {len(pairs) - _NAMED} more pairs" if len(pairs) > _NAMED else ""
        text = f"these do not reach each other: {'; '.join(pairs[:_NAMED])}{more}"
        flaws.append(Flaw(Cause.RENDEZVOUS_CONNECT, text))
    return flaws


def _by_name(found: Gathered, links: set[tuple[int, int]]) -> set[frozenset[str]]:
    pairs = (frozenset((found.names[one], found.names[other])) for one, other in links)
    return {pair for pair in pairs if len(pair) == 2}


def _unlike(found: Gathered) -> list[Flaw]:
    kinds = Counter(found.software)
    if len(kinds) < 2:
        return []
    (usual, count), *_ = kinds.most_common()
    most = [f"most have {usual}"] if 2 * count > len(found.names) else []
    has = [f"{name} has {kind}" for name, kind in zip(found.names, found.software, strict=True)]
    other = [text for text, kind in zip(has, found.software, strict=True) if kind != usual or not most]
    text = f"nodes differ: {'; '.join([*most, *other[:_NAMED]])}"
    return [Flaw(Cause.NCCL_INVALID_USAGE, text)]


def _slow_links(found: Gathered) -> list[Flaw]:
    best, met = _best(found)
    return [
        Flaw(
            Cause.NCCL_IB_ERROR,
            f"{name} exchanges at most {best[name]:.3g} GB/s with any of the {len(met[name])} nodes it met; "
            f"half of the gang's nodes reach {median(best.values()):.3g} GB/s",
            name,
        )
        for name in _slow(best, met)
        if name in found.again and found.again[name][0] < SLOW_LINK * found.again[name][1]
    ]


def _best(found: Gathered) -> tuple[dict[str, float], dict[str, set[str]]]:
    """What each node reaches with another one, GB/s, and whom it met; pods that share a node cross no network."""
    best, met = dict[str, float](), dict[str, set[str]]()
    for pair, speed in found.pairs.items():
        names = {found.names[number] for number in pair}
        for name in names if len(names) == 2 else ():
            best[name] = max(best.get(name, 0.0), speed)
            met.setdefault(name, set()).update(names - {name})
    return best, met


def _slow(best: dict[str, float], met: dict[str, set[str]]) -> list[str]:
    """Nodes that are slow with everybody they met, where others are fast with at least one; the slowest first."""
    usual = median(best.values()) if best else 0.0
    slow = [name for name in best if len(met[name]) > 1 and best[name] < SLOW_LINK * usual]
    return sorted(slow, key=best.__getitem__)


def second_look(found: Gathered) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Who exchanges once more while the rest is still: each slow node with a fast one, in turn with two fast ones.

    What slowed it may have been the others' traffic, a busy moment, or that it met slow ones only. Two are fast: less
    than half of the nodes can be slower than half of the median.
    """
    best, met = _best(found)
    slow = _slow(best, met)
    fast = sorted((name for name in best if name not in slow), key=lambda name: (-best[name], name))
    number = found.names.index
    return [((number(name), number(fast[0])), (number(fast[1]), number(fast[0]))) for name in slow[:_LOOKED_AT]]


def _slow_nodes(found: Gathered) -> list[Flaw]:
    if len(found.compute) < 3:
        return []
    usual = median(found.compute)
    return [
        Flaw(
            Cause.CUDA_HARDWARE,
            f"{found.names[node]} took {seconds:.3g} s for multiplications that take the median node {usual:.3g} s",
            found.names[node],
        )
        for node, seconds in sorted(enumerate(found.compute), key=lambda each: -each[1])
        if usual < SLOW_NODE * seconds
    ]


def _below_floor(found: Gathered) -> list[Flaw]:
    if not found.floor or not found.all_reduce or found.all_reduce >= FLOOR * found.floor:
        return []
    text = (
        f"all_reduce of {found.size / 2**20:g} MiB reaches {found.all_reduce:.3g} GB/s; "
        f"the fabric's profile states {found.floor:g} GB/s"
    )
    return [Flaw(Cause.NCCL_NETWORK_INIT, text)]


def summary(found: Gathered) -> str:
    """What was measured, one sentence."""
    work, links = len(found.links) - len(found.dead), len(found.links)
    said = [f"{work} of {links} links between {len(found.names)} nodes work"] if links else []
    if found.pairs:
        slowest, fastest = min(found.pairs.values()), max(found.pairs.values())
        speed = f"{slowest:.3g}" if len(found.pairs) == 1 else f"{slowest:.3g} to {fastest:.3g}"
        said.append(f"two nodes exchange {speed} GB/s each way")
    if found.all_reduce:
        said.append(f"all_reduce of {found.size / 2**20:g} MiB: {found.all_reduce:.3g} GB/s bus bandwidth")
    return "; ".join(said) or "one rank, which has no other to reach"
