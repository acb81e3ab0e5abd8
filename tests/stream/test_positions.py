"""The position is a pure function of (seed, step): exactly once per epoch, whatever happens to a run."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import pytest

from argosy import RecordSamples
from argosy.steps.contract.errors import InputError
from argosy.steps.data.sampler import position
from tests.stream.conftest import Corpus, blobs, records


def test_exactly_once_per_epoch_whatever_happens(folder: Corpus, seed: int) -> None:
    """Lives with other world sizes and other batches of work lost; each life opens where the last commit was."""
    draw = random.Random(seed)
    folder.write(files := blobs(seed, 3, 4000))
    every = records(files)
    batch, epochs = draw.randrange(2, 20), 3
    with folder.open(RecordSamples(100)) as data:

        def gang(world: int, begin: int) -> Any:
            ranks = [
                data.batches(begin, global_batch_size=batch, seed=seed, epochs=epochs, rank=rank, world_size=world)
                for rank in range(world)
            ]
            for told in zip(*ranks, strict=True):
                yield [sample for _, samples in told for sample in samples]

        committed: list[list[bytes]] = []
        for _ in range(6):
            trained, lost = draw.randrange(1, 12), draw.randrange(0, 6)
            steps = list(islice(gang(draw.randrange(1, 5), len(committed) + 1), trained))
            committed += steps[: max(0, len(steps) - lost)]
        committed += gang(2, len(committed) + 1)
    read = [sample for step in committed for sample in step]
    assert len(read) == epochs * len(every)
    for epoch in range(epochs):
        assert sorted(read[epoch * len(every) : (epoch + 1) * len(every)]) == sorted(every)


def test_it_is_the_samplers_order(folder: Corpus, seed: int) -> None:
    folder.write(files := blobs(seed, 3, 3000))
    every = records(files)
    with folder.open(RecordSamples(100)) as data:
        for step, samples in islice(data.batches(7, global_batch_size=5, seed=seed, rank=1, world_size=2), 9):
            where = position(seed, step, samples=len(every), global_batch=5, rank=1, world=2)
            assert samples == [every[number] for number in where]


def test_torchrun_says_who_one_is(folder: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write({"a": b"".join(b"%d" % number for number in range(10))})
    with folder.open(RecordSamples(1)) as alone:
        digest = alone.digest
        ((_, both),) = alone.batches(global_batch_size=10, seed=1, epochs=1)
    found = []
    for rank in range(2):
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("RANK", str(rank))
        with folder.open(RecordSamples(1), digest=digest) as data:
            ((_, samples),) = data.batches(global_batch_size=10, seed=1, epochs=1)
        found += samples
    assert found == both


def test_several_ranks_must_agree_on_a_version(folder: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write({"a": b"1"})
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=r"digest: 2 ranks must read the same version .* pass digest=, open"):
        folder.open()


def test_no_digest_and_a_thousand_million_bytes_may_be_written_as_python_does(folder: Corpus) -> None:
    folder.write({"a": b"1234"})
    with folder.open(digest=None, ahead_bytes=1e9) as data:
        assert data[0]["data"] == b"1234"
        assert [step for step, _ in data.batches(global_batch_size=1, seed=1.0, epochs=2)] == [1, 2]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"readers": 0}, "readers = 0: at least 1"),
        ({"ahead_bytes": 0}, "ahead_bytes = 0"),
        ({"readers": "4"}, "readers = '4': a whole number"),
        ({"samples": RecordSamples}, r"samples = RecordSamples: does not .* write ObjectSamples\(\)"),
        ({"samples": "lines"}, "samples = 'lines': does not"),
        ({"decode": "utf8"}, "decode = 'utf8': a function"),
        ({"match": ["*"]}, r"match = \['\*'\]: a text"),
        ({"verify": "yes"}, "verify = 'yes': use blocks or etag"),
        ({"match": "*.png"}, r"match = '\*.png': no object of .* has such a key"),
        ({"digest": "v1"}, "digest = 'v1': a digest is 64 hex digits"),
        ({"samples": RecordSamples(3)}, "record_bytes = 3: object 'a' of 4 bytes ends within a record"),
    ],
)
def test_wrong_values_are_named(folder: Corpus, given: dict[str, Any], said: str) -> None:
    folder.write({"a": b"1234"})
    with pytest.raises(InputError, match=said):
        folder.open(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"begin": 0},
        {"begin": None},
        {"seed": None},
        {"global_batch_size": "2"},
        {"epochs": 1.5},
        {"global_batch_size": 0},
        {"epochs": 0},
        {"rank": 2, "world_size": 2},
        {"rank": 0},
    ],
)
def test_wrong_steps_are_named(folder: Corpus, given: dict[str, Any]) -> None:
    folder.write({"a": b"1234"})
    with folder.open(RecordSamples(1)) as data, pytest.raises(InputError, match=next(iter(given))):
        next(data.batches(**{"global_batch_size": 2, "seed": 1, **given}))


def test_another_version_is_not_read_in_place_of_a_pinned_one(folder: Corpus, tmp_path: Any) -> None:
    folder.write({"a": b"1234"})
    with folder.open(RecordSamples(1)) as data:
        digest = data.digest
    folder.write({"b": b"5678"})
    with folder.open(RecordSamples(1), digest=digest) as data:
        assert len(data) == 4, "what came later is not of this version"
    with pytest.raises(Exception, match=rf"dataset changed: .* not {digest}, and no manifest of that is kept"):
        folder.open(digest=digest, index=str(tmp_path / "elsewhere"))
