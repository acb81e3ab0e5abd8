"""The loader's position is a pure function of (seed, step): whatever happens to a run, each sample is read exactly once
per epoch in what was kept of it. The bugs of others that this rules out are named where they are tried."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import IterableDataset

from argosy import ResumableLoader
from argosy.steps.contract.errors import InputError
from argosy.steps.data.sampler import position
from tests.exact.training import generators_now

pytestmark = pytest.mark.torch


class Numbers:
    """Sample i is i, and a random number by each generator."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: int) -> tuple[int, float]:
        assert 0 <= number < self.size
        return number, random.random() + numpy.random.random() + torch.rand(()).item()


def loader(size: int, batch: int, *, rank: int = 0, world: int = 1, **given: Any) -> ResumableLoader:
    made = ResumableLoader(Numbers(size), global_batch_size=batch, **{"seed": 1, **given})
    made.rank, made.world_size = rank, world
    return made


def gang(world: int, begin: int, **given: Any) -> Iterator[list[int]]:
    """What the ranks of a gang read together, step by step, through their shards."""
    steps = [loader(rank=rank, world=world, **given).shards(begin) for rank in range(world)]
    for told in zip(*steps, strict=True):
        yield [number for _, shards in told for shard in shards for number in shard.batch[0].tolist()]


@settings(max_examples=25)
@given(
    size=st.integers(1, 40), batch=st.integers(1, 30), shards=st.integers(1, 9), epochs=st.integers(1, 3),
    seed=st.integers(0, 99), lives=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(0, 9))),
)  # fmt: skip
def test_exactly_once_per_epoch_whatever_happens(
    size: int, batch: int, shards: int, epochs: int, seed: int, lives: list[tuple[int, int, int]]
) -> None:
    """``lives``: (world size, steps trained, of which so many were not committed when the gang was killed)."""
    given = {"size": size, "batch": batch, "virtual_shards": min(shards, batch), "epochs": epochs, "seed": seed}
    committed: list[list[int]] = []
    for world, trained, lost in lives:
        read = list(islice(gang(world, len(committed) + 1, **given), trained))
        committed += read[: max(0, len(read) - lost)]
    committed += list(gang(2, len(committed) + 1, **given))

    assert committed[:-1] == [numbers for numbers in committed[:-1] if len(numbers) == batch]
    alone = list(gang(1, 1, **given))
    assert [sorted(numbers) for numbers in committed] == [sorted(numbers) for numbers in alone]
    read_in_order = [number for numbers in alone for number in numbers]
    for epoch in range(epochs):
        assert sorted(read_in_order[epoch * size : (epoch + 1) * size]) == list(range(size))
    assert len(read_in_order) == epochs * size


@settings(max_examples=25)
@given(
    size=st.integers(1, 40), batch=st.integers(4, 30), lives=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 6)))
)
def test_the_fast_mode_keeps_the_cursor(size: int, batch: int, lives: list[tuple[int, int]]) -> None:
    begin, read = 1, list[int]()
    for world, steps in lives:
        ranks = [loader(size, batch, rank=rank, world=world).batches(begin) for rank in range(world)]
        for told in islice(zip(*ranks, strict=True), steps):
            assert {step for step, _ in told} == {begin}
            read += [number for _, (numbers, _) in told for number in numbers.tolist()]
            begin += 1
    counts = Counter(read)
    epochs = len(read) // size
    assert all(counts[number] - epochs in (0, 1) for number in range(size))


# ---- bugs of others


def test_state_at_an_epochs_last_batch() -> None:
    # volcengine/verl#7401: state taken at an epoch's last batch, and the next epoch has no batches.
    for end_of_epoch in (5, 10):
        after = next(loader(40, 8).batches(end_of_epoch + 1))
        assert after[0] == end_of_epoch + 1
        assert sorted(set(after[1][0].tolist())) == sorted(after[1][0].tolist())
    whole = [numbers for _, (numbers, _) in islice(loader(40, 8).batches(), 10)]
    assert all(sorted(torch.cat(whole[at : at + 5]).tolist()) == list(range(40)) for at in (0, 5))


def test_another_world_size_repeats_nothing() -> None:
    # torchdata: state of each rank loaded at another world size reads samples again.
    first = [number for step in islice(gang(4, 1, size=48, batch=8, virtual_shards=4), 3) for number in step]
    then = [number for step in islice(gang(2, 4, size=48, batch=8, virtual_shards=4), 3) for number in step]
    assert sorted(first + then) == list(range(48))


def test_workers_live_through_epochs() -> None:
    # huggingface/datasets#7447: with persistent workers, epochs after a resume are too short.
    with_workers = list(loader(21, 4, epochs=3, num_workers=2).batches(3))
    without = list(loader(21, 4, epochs=3).batches(3))
    assert [step for step, _ in with_workers] == list(range(3, 17))
    for (_, (numbers, draws)), (_, (expected, drawn)) in zip(with_workers, without, strict=True):
        assert torch.equal(numbers, expected)
        assert torch.equal(draws, drawn), "augmentation does not depend on which worker draws"


def test_fewer_samples_than_a_batch_and_epochs_that_end_within_a_step() -> None:
    read = [numbers.tolist() for _, (numbers, _) in loader(3, 8, epochs=4).batches()]
    assert [len(numbers) for numbers in read] == [8, 4]
    assert Counter(read[0] + read[1]) == {0: 4, 1: 4, 2: 4}
    assert sorted(read[0][:3]) == sorted(read[0][3:6]) == [0, 1, 2]
    assert loader(3, 8, epochs=4).last_step == 2


def test_a_step_reads_what_the_sampler_says_in_every_epoch() -> None:
    for step in (1, 6, 7, 40):
        read = [n for number, shards in [next(loader(41, 7, virtual_shards=3).shards(step))] for s in shards
                for n in s.batch[0].tolist()]  # fmt: skip
        assert read == position(1, step, samples=41, global_batch=7)


def test_iteration_begins_anywhere_and_ends_at_the_end() -> None:
    assert list(loader(10, 4, epochs=2).batches(6)) == []
    assert [step for step, _ in loader(10, 4, epochs=2).batches(5)] == [5]
    far = next(loader(10, 4).batches(10**12))
    assert far[0] == 10**12
    assert loader(10, 4).last_step is None


def test_the_scripts_own_generators_are_left_alone() -> None:
    torch.manual_seed(1)
    before = generators_now()
    for _ in islice(loader(10, 4, virtual_shards=2).shards(), 3):
        assert generators_now() == before
    assert generators_now() == before


def test_draws_follow_from_seed_step_and_shard() -> None:
    def draws(**given: Any) -> dict[tuple[int, int], list[float]]:
        world, begin = given.pop("world", 1), given.pop("begin", 1)
        made = [loader(40, 8, virtual_shards=4, rank=rank, world=world, **given) for rank in range(world)]
        steps = [each for one in made for each in islice(one.shards(begin), 3)]
        return {(step, shard.number): shard.batch[1].tolist() for step, shards in steps for shard in shards}

    alone = draws()
    assert draws(world=3) == alone
    assert draws(begin=2)[2, 1] == alone[2, 1]
    assert len({tuple(values) for values in alone.values()}) == len(alone)
    assert draws(seed=2)[1, 0] != alone[1, 0]
    assert draws(seed=1.0) == draws(seed=numpy.float32(1)) == alone


class Endless(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))


def test_what_has_no_position_is_refused() -> None:
    with pytest.raises(InputError, match="Endless has no length"):
        ResumableLoader(Endless(), global_batch_size=4, seed=1)
    with pytest.raises(InputError, match=r"len\(dataset\) = 0: at least 1"):
        loader(0, 4)
    with pytest.raises(InputError, match="virtual_shards = 5 of global_batch_size = 4"):
        loader(10, 4, virtual_shards=5)
    with pytest.raises(InputError, match="step = 0: at least 1 is needed"):
        next(loader(10, 4).batches(0))
    with pytest.raises(InputError, match=r"for step, batch in loader\.batches"):
        iter(loader(10, 4))
    with pytest.raises(InputError, match="open it, as StreamingDataset"):
        ResumableLoader("file:///data", global_batch_size=4, seed=1)
    for wrong in (
        {"seed": None},
        {"seed": 1.5},
        {"seed": float("nan")},
        {"global_batch_size": "4"},
        {"epochs": 1.5},
        {"num_workers": -1},
        {"collate_fn": None},
    ):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} = "):
            ResumableLoader([1, 2], **{"global_batch_size": 1, "seed": 1, **wrong})
    ResumableLoader([1, 2], global_batch_size=1, seed=1, prefetch_factor=None)  # torch's own default
    with pytest.raises(InputError, match="2 samples cannot be shared by 3 ranks"):
        next(loader(10, 4, epochs=1, world=3).batches())
