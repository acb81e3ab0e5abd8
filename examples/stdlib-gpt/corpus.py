"""Windows of bytes from the shards, and which of them a rank reads in a step: a function of (seed, step, rank)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from argosy.steps.data.sampler import position


class Corpus:
    """The shards of a folder as one stream of bytes, cut into windows of ``context`` bytes."""

    def __init__(self, folder: Path, context: int) -> None:
        shards = sorted(folder.rglob("*.bin"))
        if not shards:
            raise SystemExit(f"no *.bin below {folder}: run prepare.py first and name its folder by --data")
        self.stream = np.concatenate([np.fromfile(shard, dtype=np.uint8) for shard in shards])
        self.context = context
        self.windows = (len(self.stream) - 1) // context

    def batch(self, seed: int, step: int, rank: int, world: int, size: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets ``(size, context)``, int64, of this rank in this step (counted from 1).

        Nothing of it needs saving: a resumed run asks for the same step and gets the same bytes.
        """
        return self.rows(position(seed, step, samples=self.windows, global_batch=size * world, rank=rank, world=world))

    def rows(self, windows: Iterable[int]) -> tuple[Tensor, Tensor]:
        """Inputs and targets ``(number of windows, context)``, int64; a target is the byte after its input."""
        starts = [self.context * window for window in windows]
        cut = np.stack([self.stream[start : start + self.context + 1] for start in starts]).astype(np.int64)
        both = torch.from_numpy(cut)
        return both[:, :-1], both[:, 1:]
