"""Which pod is which node of a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from argosy.steps.address import with_port
from argosy.steps.contract.channel import CheckIn
from argosy.steps.gang.host import PodState

MOST_PEERS = 1024
"""Every node is told of every other: beyond that the message, and a variable made of it, would be too large."""


def seated(before: Mapping[str, int], ready: Mapping[str, CheckIn], nnodes: int) -> list[CheckIn]:
    """The pods by rank: who had one keeps it, with what it has on its disk; the others' go to who stands by."""
    kept = {rank: ready[pod] for pod, rank in before.items() if pod in ready and rank < nnodes}
    taken = {message.pod for message in kept.values()}
    others = (each for each in ready.values() if each.pod not in taken)
    free = sorted(others, key=lambda each: (each.stands_by != "ready", each.pod_index, each.pod))
    return [kept[rank] if rank in kept else free.pop(0) for rank in range(nnodes)]


def as_ranks(states: Sequence[PodState], seats: Mapping[str, int]) -> list[PodState]:
    """The pods of a restart, numbered as its nodes are; one that the host knows no longer is gone."""
    known = {state.name: state for state in states}
    return [_numbered(known.get(name), name, rank) for name, rank in seats.items()]


def _numbered(state: PodState | None, name: str, rank: int) -> PodState:
    if state is None:
        why = "the pod was deleted while nobody supervised it"
        return PodState(name=name, index=rank, phase="Failed", reason="Deleted", message=why)
    return state if state.index == rank else replace(state, index=rank)


def keepers(order: Sequence[CheckIn]) -> list[str]:
    """Where each may be asked for what it still has of the last checkpoint, by rank; none when they are too many."""
    told = [each.keeps for each in order]
    return told if any(told) and len(told) <= MOST_PEERS else []


def peers(order: Sequence[CheckIn]) -> list[str]:
    """ADDRESS:PORT of each, by rank; none when they are too many."""
    if len(order) > MOST_PEERS:
        return []
    return [with_port(each.address, each.free_port) for each in order]
