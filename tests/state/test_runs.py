"""Our integers against torch's own splitting, over random shapes, meshes and placements."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from argosy.steps.state.runs import Sharding, blocks_of, local_shape, runs_at, runs_of

torch = pytest.importorskip("torch")


def torchs(tensor: Any, mesh: tuple[int, ...], placements: list[Any], coordinate: tuple[int, ...]) -> Any:
    for size, placement, at in zip(mesh, placements, coordinate, strict=True):
        if not placement.is_replicate():
            shards, _ = placement._split_tensor(tensor, size, with_padding=False, contiguous=True)
            tensor = shards[at]
    return tensor


@pytest.mark.parametrize("_", range(40))
def test_every_coordinate_holds_what_torch_gives_it(_: int) -> None:
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.placement_types import _StridedShard

    seed = random.randrange(10**9)
    print(f"seed {seed}")
    chance = random.Random(seed)
    shape = tuple(chance.randrange(0, 9) for _ in range(chance.randrange(1, 4)))
    mesh = tuple(chance.randrange(1, 5) for _ in range(chance.randrange(1, 4)))
    placements: list[Any] = []
    for _size in mesh:
        axis = chance.randrange(len(shape))
        strided = _StridedShard(axis, split_factor=chance.randrange(2, 5))
        placements.append(chance.choice([Replicate(), Shard(axis), Shard(axis), strided]))
    shardings = [
        Sharding(size, None if p.is_replicate() else p.dim, getattr(p, "split_factor", 1))
        for size, p in zip(mesh, placements, strict=True)
    ]
    whole = torch.arange(torch.Size(shape).numel()).reshape(shape)
    coordinates = list(itertools.product(*map(range, mesh)))
    for coordinate, runs in zip(coordinates, runs_of(shape, shardings), strict=True):
        expected = torchs(whole, mesh, placements, coordinate)
        assert runs == runs_at(shape, shardings, coordinate)
        assert local_shape(runs) == tuple(expected.shape), (seed, coordinate)
        built = torch.full(expected.shape, -1)
        for offset, lengths, at in blocks_of(runs):
            block = whole[tuple(slice(a, a + n) for a, n in zip(offset, lengths, strict=True))]
            built[tuple(slice(a, a + n) for a, n in zip(at, lengths, strict=True))] = block
        assert torch.equal(built, expected), (seed, coordinate)
