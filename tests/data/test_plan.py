"""The plan: every object on exactly one node, in balance, and most of it stays when a node comes or goes."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from argosy.steps.contract.errors import InputError
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.plan import node_share, plan_bytes, shares
from argosy.steps.data.units import SMALL_UNITS, Units


def manifest(sizes: list[int]) -> DatasetManifest:
    return DatasetManifest.of("s3://b/p", [DataObject(f"shard-{i:05d}", size) for i, size in enumerate(sizes)])


@pytest.mark.parametrize("nnodes", [1, 2, 3, 7, 16])
def test_sharded_is_a_partition_in_balance(nnodes: int, seed: int) -> None:
    draw = random.Random(seed)
    data = manifest([draw.randrange(1, 1 << 20) for _ in range(600)])
    parts = [list(node_share(data, "sharded", rank, nnodes)) for rank in range(nnodes)]
    keys = [one.key for part in parts for one in part]
    assert sorted(keys) == [one.key for one in data]
    loads = [sum(one.size for one in part) for part in parts]
    assert max(loads) / (sum(loads) / nnodes) <= 1.05
    assert all(part == sorted(part, key=lambda one: one.key) for part in parts)


def test_unequal_sizes_are_as_balanced_as_they_can_be() -> None:
    loads = [sum(one.size for one in part) for part in shares(manifest([1000, *[10] * 100, 0, 0]), "sharded", 2)]
    assert max(loads) <= 1020


@pytest.mark.parametrize("nnodes", [2, 3, 4, 8])
def test_most_objects_stay_when_a_node_joins(nnodes: int, seed: int) -> None:
    draw = random.Random(seed)
    data = manifest([draw.randrange(1 << 16, 1 << 20) for _ in range(2000)])
    before = {one.key: rank for rank, part in enumerate(shares(data, "sharded", nnodes)) for one in part}
    after = {one.key: rank for rank, part in enumerate(shares(data, "sharded", nnodes + 1)) for one in part}
    moved = sum(before[key] != after[key] for key in before) / len(before)
    assert moved <= 1 / (nnodes + 1) + 0.15, "a plan by position moves half or more"


@pytest.mark.parametrize("nnodes", [64, 300, 1024])
def test_many_nodes_are_in_balance(nnodes: int, seed: int) -> None:
    draw = random.Random(seed)
    sizes = [int(draw.lognormvariate(12, 1)) for _ in range(60_000)]
    units = Units.of(sum(sizes), ((b"%d" % i, size) for i, size in enumerate(sizes)))
    loads = [0] * nnodes
    for unit, node in units.assigned(nnodes).items():
        loads[node] += units.sizes[unit]
    assert max(loads) <= max(1.05 * sum(loads) / nnodes, max(sizes)), "a node with one huge object holds nothing else"


def test_units_stay_few_and_whole_however_many_objects_there_are() -> None:
    sizes = [100] * 300_000 + [10**9] * 50
    units = Units.of(sum(sizes), ((b"%d" % i, size) for i, size in enumerate(sizes)))
    assert len(units.sizes) <= SMALL_UNITS + 50
    assert (sum(units.counts.values()), sum(units.sizes.values())) == (len(sizes), sum(sizes))
    assert Units.from_bytes(units.to_bytes()) == units


def test_replicated_gives_all_to_all() -> None:
    data = manifest([1, 2, 3])
    assert list(node_share(data, "replicated", 1, 2)) == list(data)


def test_the_plan_is_the_same_in_another_process() -> None:
    code = (
        "from argosy.steps.data.manifest import *; from argosy.steps.data.plan import *;"
        "m = DatasetManifest.of('s3://b/p', [DataObject(f'shard-{i:05d}', i) for i in range(100)]);"
        "import sys; sys.stdout.buffer.write(plan_bytes(m, 'sharded', 3))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": "7"})
    assert told.stdout == plan_bytes(manifest(list(range(100))), "sharded", 3)


@pytest.mark.parametrize(("layout", "rank", "nnodes"), [("halves", 0, 2), ("sharded", 2, 2), ("sharded", 0, 0)])
def test_wrong_questions_are_refused(layout: str, rank: int, nnodes: int) -> None:
    with pytest.raises(InputError, match=r"layout|node_rank|nnodes"):
        node_share(manifest([1]), layout, rank, nnodes)
