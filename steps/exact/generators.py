"""Random numbers without memory: what the generators give is a pure function of (seed, step, place).

Nothing about them needs to be saved, and a rank that takes over another's work draws the other's numbers.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

AFTER = "after"
"""The place of what a script draws between two steps."""


def set_generators(seed: int, step: int, place: int | str) -> None:
    """Seed Python's, NumPy's (where it is loaded) and torch's generators, those of all accelerators too.

    ``place``: number of the virtual shard, or a name for anything else that draws in this step.
    """
    raw = hashlib.blake2b(f"argosy-random-1:{seed}:{step}:{place}".encode(), digest_size=32).digest()
    words = [int.from_bytes(raw[at : at + 4]) for at in range(0, 32, 4)]
    random.seed(raw)
    torch.manual_seed(int.from_bytes(raw[:8]) >> 1)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(words)


@contextmanager
def generators(seed: int, step: int, place: int | str) -> Iterator[None]:
    """The same for a block; what was there before is restored after it."""
    python, cpu = random.getstate(), torch.get_rng_state()
    numpy = sys.modules.get("numpy")
    legacy = numpy.random.get_state() if numpy is not None else None
    # In a forked worker of a loader CUDA must not be touched: its generators cannot have been used there either.
    cuda = torch.cuda.get_rng_state_all() if _cuda_in_use() else None
    set_generators(seed, step, place)
    try:
        yield
    finally:
        random.setstate(python)
        torch.set_rng_state(cpu)
        if numpy is not None:
            numpy.random.set_state(legacy)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


def _cuda_in_use() -> bool:
    return bool(torch.cuda.is_initialized() and not torch.cuda._is_in_bad_fork())  # type: ignore[no-untyped-call]
