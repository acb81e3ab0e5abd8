"""Which node reads which objects: a pure function of manifest, layout and number of nodes.

Rendezvous hashing with bounded load: each object goes to the node it hashes to most strongly that still has
room. Loads stay within :data:`SLACK` of the mean (as far as the sizes allow), and when a node joins or leaves
most objects stay where they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from argosy.steps.contract.errors import InputError
from argosy.steps.data.manifest import DataObject, DatasetManifest

LAYOUTS = ("replicated", "sharded")
SLACK = 1.02
"""A node takes no further object by preference once it would hold this many times the mean bytes."""
_MASK = (1 << 64) - 1


def _mix(value: int) -> int:
    """SplitMix64's finalizer: 64 bits in, 64 well-stirred bits out."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


def _preference(seed: int, nnodes: int) -> list[int]:
    return sorted(range(nnodes), key=lambda node: (_mix(seed + (node + 1) * 0x9E3779B97F4A7C15 & _MASK), node))


def _assign(objects: Sequence[DataObject], nnodes: int) -> list[list[DataObject]]:
    seeds = {one.key: int.from_bytes(hashlib.blake2b(one.key.encode(), digest_size=8).digest()) for one in objects}
    # Large ones first: what comes last is small and can fill the gaps. Empty objects weigh as much as a byte.
    queue = sorted(objects, key=lambda one: (-one.size, seeds[one.key], one.key))
    cap = SLACK * sum(max(one.size, 1) for one in objects) / nnodes
    loads = [0] * nnodes
    shares: list[list[DataObject]] = [[] for _ in range(nnodes)]
    for one in queue:
        size = max(one.size, 1)
        wanted = _preference(seeds[one.key], nnodes)
        node = next((node for node in wanted if loads[node] + size <= cap), None)
        if node is None:
            node = min(wanted, key=lambda node: loads[node])
        loads[node] += size
        shares[node].append(one)
    return shares


def check_layout(layout: str, nnodes: int) -> None:
    """Raise InputError for an unknown layout or less than one node."""
    if layout not in LAYOUTS:
        raise InputError(f"layout = {layout!r}: use {' or '.join(LAYOUTS)}")
    if nnodes < 1:
        raise InputError(f"nnodes = {nnodes}: a plan needs at least one node")


def shares(manifest: DatasetManifest, layout: str, nnodes: int) -> list[list[DataObject]]:
    """The objects of each node, by node rank, each sorted by key.

    Raises:
        InputError: unknown layout, or less than one node.
    """
    check_layout(layout, nnodes)
    if layout == "replicated":
        return [list(manifest) for _ in range(nnodes)]
    return [sorted(share, key=lambda one: one.key) for share in _assign(list(manifest), nnodes)]


def node_share(manifest: DatasetManifest, layout: str, node_rank: int, nnodes: int) -> list[DataObject]:
    """The objects that one node stages, sorted by key.

    Raises:
        InputError: unknown layout, or ``node_rank`` is not in ``0..nnodes-1``.
    """
    check_layout(layout, nnodes)
    if not 0 <= node_rank < nnodes:
        raise InputError(f"node_rank = {node_rank}: with {nnodes} nodes it is one of 0..{nnodes - 1}")
    return shares(manifest, layout, nnodes)[node_rank]


def share_digest(objects: Sequence[DataObject]) -> str:
    """Names a set of objects in their versions; the order does not matter."""
    return hashlib.sha256(b"\n".join(sorted(one.line() for one in objects))).hexdigest()


def plan_key(prefix: str, digest: str, layout: str, nnodes: int) -> str:
    """Key of a plan below the run's prefix."""
    return f"{prefix}/plan/{digest[:16]}-{layout}-{nnodes}.json"


def plan_bytes(manifest: DatasetManifest, layout: str, nnodes: int) -> bytes:
    """The plan for people and for later checks: JSON with count, bytes and digest of each node's share."""
    nodes = [
        {"node_rank": rank, "objects": len(part), "bytes": sum(one.size for one in part), "share": share_digest(part)}
        for rank, part in enumerate(shares(manifest, layout, nnodes))
    ]
    record = {"dataset_digest": manifest.digest, "uri": manifest.uri, "layout": layout, "nodes": nodes}
    return json.dumps(record, indent=1).encode() + b"\n"
