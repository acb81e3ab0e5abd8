"""The position in the data is a pure function of (seed, step): nothing is repeated, nothing is lost."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.steps.data.sampler import permuted, position


@settings(max_examples=60)
@given(samples=st.integers(1, 700), batch=st.integers(1, 50), seed=st.integers(), world=st.integers(1, 9))
def test_each_sample_once_per_epoch(samples: int, batch: int, seed: int, world: int) -> None:
    epochs = 2
    steps = -(-epochs * samples // batch)
    read = [
        number
        for step in range(1, steps + 1)
        for rank in range(world)
        for number in position(seed, step, samples=samples, global_batch=batch, rank=rank, world=world)
    ]
    for epoch in range(epochs):
        assert sorted(read[epoch * samples : (epoch + 1) * samples]) == list(range(samples))


@settings(max_examples=60)
@given(step=st.integers(1, 10**9), world=st.integers(1, 64), batch=st.integers(1, 300), seed=st.integers())
def test_the_world_size_changes_only_who_reads(step: int, world: int, batch: int, seed: int) -> None:
    whole = position(seed, step, samples=10_007, global_batch=batch)
    parts = [position(seed, step, samples=10_007, global_batch=batch, rank=rank, world=world) for rank in range(world)]
    assert [number for part in parts for number in part] == whole
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = {
        (seed, epoch): tuple(permuted(seed, epoch, 1000, i) for i in range(1000)) for seed in (0, 1) for epoch in (0, 1)
    }
    assert len(set(orders.values())) == 4
    for order in orders.values():
        neighbours = sum(abs(a - b) == 1 for a, b in pairwise(order))
        assert neighbours < 12, "two are expected by chance"


def test_the_next_epoch_has_another_order() -> None:
    first, second = (position(1, step, samples=500, global_batch=500) for step in (1, 2))
    assert first != second
    assert second == [permuted(1, 1, 500, offset) for offset in range(500)]


def test_every_place_is_equally_likely(seed: int) -> None:
    draw = random.Random(seed)
    counts = Counter(permuted(draw.getrandbits(64), 0, 20, 3) for _ in range(8000))
    chi2 = sum((counts[value] - 400) ** 2 / 400 for value in range(20))
    assert chi2 < 60, "19 degrees of freedom: 60 is beyond one in a million"


def test_a_trillion_samples_need_no_memory() -> None:
    tracemalloc.start()
    numbers = position(7, 12_345, samples=10**12, global_batch=4096, rank=3, world=8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(set(numbers)) == 512
    assert all(0 <= number < 10**12 for number in numbers)
    assert peak < 1 << 20


def test_the_order_is_frozen() -> None:
    # A change here would give resumed runs other data than they had: it needs a new version of the sampler.
    assert position(42, 3, samples=1000, global_batch=8) == FROZEN


FROZEN = [753, 1, 905, 326, 93, 819, 300, 981]


@pytest.mark.parametrize("wrong", [{"step": 0}, {"samples": 0}, {"global_batch": 0}, {"rank": 2}, {"rank": -1}])
def test_wrong_questions_are_refused(wrong: dict[str, int]) -> None:
    asked = {"step": 1, "samples": 10, "global_batch": 2, "rank": 0, "world": 2} | wrong
    with pytest.raises(ValueError, match=r"rank|step"):
        position(0, **asked)
