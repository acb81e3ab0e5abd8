"""A thousand saves while the next steps run: what is restored equals a stopped copy of the state, to the byte.

Of each save: a step is queued and not waited for; a copy of the state is queued behind it in its stream, and is the
truth; ``save``; at once the next steps, which write into the same memory while it is stored; then what was committed
is restored from the store and compared. Steps are delayed at random on their stream. That the later steps did change
the state is counted too: where they had not, the comparison would prove nothing.
"""

from __future__ import annotations

import random
from typing import Any

from tests.gpu.case import Case, Part
from tests.gpu.variants import VARIANTS, Variant

SAVES = 100
"""Of each variant; there are ten."""


def check(case: Case, variant: Variant, saves: int) -> None:
    """Save ``saves`` times and say how many bytes differ."""
    import torch

    from argosy import Checkpointer

    chance = random.Random(20261122)
    checkpointer = Checkpointer(case.folder / "store", keep=1)
    variant.step(0.0)
    checkpointer.prepare(variant.state())
    done = differ = moved = 0
    for number in range(1, saves + 1):
        if case.left < 0:
            break
        variant.step(chance.uniform(0, 3))
        truth = variant.copied()
        with variant.saving_from():
            saving = checkpointer.save(number, variant.state())
        for _ in range(chance.randrange(1, 4)):
            variant.step(chance.uniform(0, 1))
        saving.wait()
        restored = checkpointer.restore()
        assert restored is not None
        assert restored.step == number
        if case.cuda:
            torch.cuda.synchronize()
        differ += differing(restored.state, truth)
        moved += differing(restored.state, variant.state()) > 0
        done += 1
    checkpointer.close()
    case.figure("saves", done, bar=f"{saves}", held=done == saves)
    case.figure("bytes that differ", differ, bar="0", held=differ == 0)
    case.figure("saves whose state was changed before they were stored", moved, bar="all", held=moved == done > 0)


def differing(one: Any, other: Any) -> int:
    """Bytes that differ between two trees of tensors; of other leaves 1 each."""
    import torch

    if isinstance(one, dict):
        assert one.keys() == other.keys()
        return sum(differing(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return sum(differing(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, torch.Tensor):
        a, b = raw(one), raw(other)
        assert a.shape == b.shape, (one.shape, other.shape)
        return int((a != b).sum())
    return int(one != other)


def raw(tensor: Any) -> Any:
    """Its bytes, on the CPU."""
    import torch

    local = getattr(tensor, "_local_tensor", tensor).detach().cpu().resolve_conj().resolve_neg().contiguous()
    return local.reshape(-1).view(torch.uint8)


def _of(name: str) -> Any:
    return lambda case: check(case, VARIANTS[name](case), case.pick(SAVES, 2))


PART = Part({name: _of(name) for name in VARIANTS}, seconds=240, beside=frozenset(VARIANTS))
