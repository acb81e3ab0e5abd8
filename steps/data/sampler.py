"""Which samples a step reads: a pure function of (seed, step), so that nothing about it needs to be saved.

A global cursor counts samples from the start of the run. Step ``t`` (counted from 1, as in
``argosy.steps.progress``) reads cursor positions ``[(t-1)*G, t*G)``, where ``G`` is the number of samples per
step over all ranks; epoch ``e`` is positions ``[e*n, (e+1)*n)`` in an order of its own. The world size only
decides who reads which of a step's positions, so a run that is resumed on another number of ranks reads the
same samples in the same steps. The order is a keyed permutation (Feistel network with cycle walking): no list
of n numbers exists anywhere.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

_ROUNDS = 6
_MASK = (1 << 64) - 1


def mixed(value: int) -> int:
    """SplitMix64's finalizer: 64 bits in, 64 well-stirred bits out."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


@lru_cache(maxsize=64)
def _round_keys(seed: int, epoch: int) -> tuple[int, ...]:
    raw = hashlib.blake2b(f"argosy-sampler-1:{seed}:{epoch}".encode(), digest_size=8 * _ROUNDS).digest()
    return tuple(int.from_bytes(raw[8 * i : 8 * i + 8]) for i in range(_ROUNDS))


def permuted(seed: int, epoch: int, samples: int, offset: int) -> int:
    """The sample at ``offset`` of ``epoch``: for each (seed, epoch) a permutation of ``0..samples-1``.

    Raises:
        ValueError: ``offset`` is not in ``0..samples-1``.
    """
    if not 0 <= offset < samples:
        raise ValueError(f"offset {offset} is not in 0..{samples - 1}")
    half = max(1, ((samples - 1).bit_length() + 1) // 2)
    low = (1 << half) - 1
    keys = _round_keys(seed, epoch)
    value = offset
    while True:  # the network permutes 0..4**half-1; walk on until the value is one of ours
        left, right = value >> half, value & low
        for key in keys:
            left, right = right, left ^ (mixed(right ^ key) & low)
        value = left << half | right
        if value < samples:
            return value


def rank_slice(global_batch: int, rank: int, world: int) -> range:
    """The positions within a step that belong to ``rank``: contiguous, sizes differ by at most one."""
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank} is not in 0..{world - 1}")
    return range(global_batch * rank // world, global_batch * (rank + 1) // world)


def position(seed: int, step: int, *, samples: int, global_batch: int, rank: int = 0, world: int = 1) -> list[int]:
    """Sample numbers that ``rank`` of ``world`` reads in optimizer step ``step``, in order.

    ``samples``: size of the dataset. ``global_batch``: samples per step over all ranks. Over all ranks and steps
    each sample is read exactly once per epoch; an epoch may end in the middle of a step.

    Raises:
        ValueError: step < 1, samples < 1, global_batch < 1 or rank not in 0..world-1.
    """
    if step < 1 or samples < 1 or global_batch < 1:
        raise ValueError(f"step {step}, samples {samples}, global_batch {global_batch}: each is at least 1")
    first = (step - 1) * global_batch
    cursors = (first + offset for offset in rank_slice(global_batch, rank, world))
    return [permuted(seed, cursor // samples, samples, cursor % samples) for cursor in cursors]
