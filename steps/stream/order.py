"""Which samples a rank reads in which step: the sampler's order, cut into steps, with an end after some epochs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.numbers import whole
from argosy.steps.data.sampler import permuted, rank_slice


class StepOrder:
    """Which samples a rank reads in which step."""

    def __init__(self, samples: int, batch: int, seed: int, epochs: int | None, rank: int, world: int) -> None:
        batch, seed = whole("global_batch_size", batch, 1), whole("seed", seed, floats=True)
        epochs = None if epochs is None else whole("epochs", epochs, 1)
        if not 0 <= rank < world:
            raise InputError(f"rank = {rank}: with world_size = {world} it is one of 0..{world - 1}")
        self._samples, self._batch, self._seed, self._rank, self._world = samples, batch, seed, rank, world
        self._end = None if epochs is None else epochs * samples

    def steps(self, begin: int) -> Iterator[tuple[int, list[int]]]:
        """From step ``begin`` on: (step, numbers of this rank's samples)."""
        for step in count(begin):
            first = (step - 1) * self._batch
            last = first + self._batch if self._end is None else min(first + self._batch, self._end)
            if first >= last:
                return
            mine = rank_slice(last - first, self._rank, self._world)
            yield step, [self._sample(first + offset) for offset in mine]

    def _sample(self, cursor: int) -> int:
        return permuted(self._seed, cursor // self._samples, self._samples, cursor % self._samples)


def place_in_gang(rank: int | None, world: int | None) -> tuple[int, int]:
    """Rank and world size: as given, else torchrun's.

    Raises:
        InputError: one is given without the other.
    """
    if (rank is None) != (world is None):
        raise InputError("rank and world_size: give both or neither")
    if rank is not None and world is not None:
        return rank, world
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
