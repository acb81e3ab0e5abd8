"""Where a rank is among the others, as torchrun's environment says."""

from __future__ import annotations

import os

_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def node_of(rank: int, world_size: int) -> tuple[int, int]:
    """First rank of this rank's node, and how many ranks the node has.

    A launcher that does not say it as torchrun does, or says it of other ranks than torch.distributed's, makes every
    rank a node of its own: correct, with one part per rank.
    """
    raw = [os.environ.get(name, "") for name in _NAMES]
    if not all(text.isdigit() for text in raw):
        return rank, 1
    said_rank, said_world, local_rank, local_size = map(int, raw)
    if (said_rank, said_world) != (rank, world_size) or not local_rank < local_size <= world_size or rank < local_rank:
        return rank, 1
    return rank - local_rank, local_size


def coordinator_host(world_size: int, node_ranks: int) -> str:
    """Name of rank 0's machine as every rank knows it; "" when all are on one node."""
    return "" if node_ranks == world_size else os.environ.get("MASTER_ADDR", "")
