"""Which node reads which objects: a pure function of manifest, layout and number of nodes.

Shares are balanced by bytes, and when a node joins or leaves most objects stay where they are; see
:mod:`argosy.steps.data.units` for how. Nothing here holds more than some numbers per unit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from argosy.steps.contract.errors import InputError
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.units import Units

LAYOUTS = ("replicated", "sharded")
_RULE = "argosy-shares-2"


@dataclass(frozen=True)
class Share:
    """The objects of one node by key; iterating reads the manifest again, shard by shard.

    ``digest`` names the share: the same one is the same objects. ``units`` None: all of them.
    """

    manifest: DatasetManifest
    count: int
    total_bytes: int
    digest: str
    units: frozenset[int] | None = None

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[DataObject]:
        if self.units is None:
            return iter(self.manifest)
        return self._chosen(Units(self.manifest.total_bytes), self.units)

    def _chosen(self, known: Units, units: frozenset[int]) -> Iterator[DataObject]:
        number = known.number
        for shard in self.manifest.shards:
            for key, size, row in self.manifest.sized(shard):
                if number(key, size) in units:
                    yield DataObject.of_row(json.loads(row))


def check_layout(layout: str, nnodes: int) -> None:
    """Raise InputError for an unknown layout or less than one node."""
    if layout not in LAYOUTS:
        raise InputError(f"layout = {layout!r}: use {' or '.join(LAYOUTS)}")
    if nnodes < 1:
        raise InputError(f"nnodes = {nnodes}: a plan needs at least one node")


def count_units(manifest: DatasetManifest) -> Units:
    """The units of a dataset: one pass over the manifest."""
    rows = (row for shard in manifest.shards for row in manifest.sized(shard))
    return Units.of(manifest.total_bytes, ((key, size) for key, size, _ in rows))


def shares(manifest: DatasetManifest, layout: str, nnodes: int, units: Units | None = None) -> list[Share]:
    """The objects of each node, by node rank. ``units``: those of this manifest, if they were counted before.

    Raises:
        InputError: unknown layout, or less than one node.
    """
    check_layout(layout, nnodes)
    if layout == "replicated":
        return [Share(manifest, manifest.count, manifest.total_bytes, manifest.digest)] * nnodes
    known = units or count_units(manifest)
    of_node: list[list[int]] = [[] for _ in range(nnodes)]
    for unit, node in known.assigned(nnodes).items():
        of_node[node].append(unit)
    return [_share(manifest, known, rank, nnodes, mine) for rank, mine in enumerate(of_node)]


def _share(manifest: DatasetManifest, known: Units, rank: int, nnodes: int, mine: list[int]) -> Share:
    count, total = sum(known.counts[unit] for unit in mine), sum(known.sizes[unit] for unit in mine)
    # By its rule instead of its rows: one pass over all rows less before the first byte is fetched.
    name = hashlib.sha256(f"{_RULE}\n{manifest.digest}\n{rank} of {nnodes}\n".encode()).hexdigest()
    return Share(manifest, count, total, name, frozenset(mine))


def node_share(
    manifest: DatasetManifest, layout: str, node_rank: int, nnodes: int, units: Units | None = None
) -> Share:
    """The objects that one node stages.

    Raises:
        InputError: unknown layout, or ``node_rank`` is not in ``0..nnodes-1``.
    """
    check_layout(layout, nnodes)
    if not 0 <= node_rank < nnodes:
        raise InputError(f"node_rank = {node_rank}: with {nnodes} nodes it is one of 0..{nnodes - 1}")
    return shares(manifest, layout, nnodes, units)[node_rank]


def share_digest(objects: Iterable[DataObject]) -> str:
    """Names a set of objects in their versions; the order does not matter."""
    if isinstance(objects, Share | DatasetManifest):
        return objects.digest
    return hashlib.sha256(b"\n".join(sorted(one.line() for one in objects))).hexdigest()


def plan_key(prefix: str, digest: str, layout: str, nnodes: int) -> str:
    """Key of a plan below the run's prefix."""
    return f"{prefix}/plan/{digest[:16]}-{layout}-{nnodes}.json"


def plan_bytes(manifest: DatasetManifest, layout: str, nnodes: int, units: Units | None = None) -> bytes:
    """The plan for people and for later checks: JSON with count, bytes and digest of each node's share."""
    nodes = [
        {"node_rank": rank, "objects": part.count, "bytes": part.total_bytes, "share": part.digest}
        for rank, part in enumerate(shares(manifest, layout, nnodes, units))
    ]
    record = {"dataset_digest": manifest.digest, "uri": manifest.uri, "layout": layout, "nodes": nodes}
    return json.dumps(record, indent=1).encode() + b"\n"
