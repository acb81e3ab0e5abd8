"""What is asked for before it is needed: in order, bounded, merged, and no more once the script stops."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from argosy import RecordSamples
from argosy.steps.stream.extents import Extent, merged, pieces
from tests.stream.conftest import Corpus, blobs, records


def becomes(count: Callable[[], int], expected: int) -> bool:
    """It gets there, and not beyond in the time in which a further request would have come."""
    end = time.monotonic() + 30
    while count() < expected and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.2)
    return count() == expected


def test_so_many_steps_are_asked_for_and_no_more(bucket: Corpus, seed: int) -> None:
    """``etag`` and records apart from each other: one request is one record."""
    assert bucket.server is not None
    bucket.write({"a": random.Random(seed).randbytes(1_000_000)})
    with bucket.open(RecordSamples(1000), match="*", verify="etag", ahead_steps=5) as data:
        bucket.server.begin()
        steps = data.batches(global_batch_size=1, seed=seed)
        next(steps)
        assert becomes(lambda: len(bucket.gets()), 6), "the step that was taken, and five more"
        next(steps)
        next(steps)
        assert becomes(lambda: len(bucket.gets()), 8)


def test_so_many_bytes_are_asked_for_and_no_more(bucket: Corpus, seed: int) -> None:
    assert bucket.server is not None
    bucket.write({f"{i:03}": bytes(10_000) for i in range(100)})
    with bucket.open(verify="etag", ahead_steps=1000, ahead_bytes=45_000) as data:
        bucket.server.begin()
        steps = data.batches(global_batch_size=1, seed=seed)
        next(steps)
        assert becomes(lambda: len(bucket.gets()), 1 + 5)
        next(steps)
        assert becomes(lambda: len(bucket.gets()), 2 + 5)


def test_a_step_that_is_larger_than_the_bound_still_comes(folder: Corpus, seed: int) -> None:
    folder.write(files := blobs(seed, 5, 100_000))
    with folder.open(ahead_bytes=1) as data:
        ((_, samples),) = data.batches(global_batch_size=5, seed=seed, epochs=1)
    assert {one["__key__"]: one["data"] for one in samples} == files


def test_a_script_that_leaves_the_order_gets_what_it_asks_for(folder: Corpus, seed: int) -> None:
    folder.write(files := blobs(seed, 2, 50_000))
    every = records(files)
    with folder.open(RecordSamples(100)) as data:
        data.read_ahead(iter([[0, 1], [2, 3]]))
        assert data.__getitems__([0, 1]) == every[:2]
        assert data.__getitems__([7]) == every[7:8]
        assert data.__getitems__([2, 3]) == every[2:4]
        assert data.__getitems__([9, 9, 4]) == [every[9], every[9], every[4]]


def test_neighbours_are_one_request(bucket: Corpus, seed: int) -> None:
    assert bucket.server is not None
    bucket.write({"a": bytes(1 << 20), "b": bytes(100)})
    with bucket.open(RecordSamples(100, drop_partial=True)) as data:
        bucket.server.begin()
        data.__getitems__([5, 3, 4, 0, 700, 5])
        assert bucket.gets() == ["/data/set/a"]
        data.__getitems__([0, 10_000, 10_485])
        assert len(bucket.gets()) == 4, "far ones and other objects are not merged"


def test_what_is_read_covers_what_is_wanted(seed: int) -> None:
    """Against a set of bytes: every wanted byte, whole blocks, nothing twice, nothing beyond the end."""
    draw = random.Random(seed)
    for _ in range(200):
        sizes = [draw.randrange(1, 500) for _ in range(4)]
        block = draw.choice([1, 7, 64])
        wanted = []
        for _ in range(draw.randrange(1, 12)):
            number = draw.randrange(4)
            start = draw.randrange(sizes[number])
            wanted.append(Extent(number, start, draw.randrange(0, sizes[number] - start + 1)))
        runs = merged(wanted, sizes, block)
        read = [(run.object, at) for run in runs for at in range(run.start, run.end)]
        needed = {(one.object, at // block) for one in wanted for at in range(one.start, one.end)}
        assert len(read) == len(set(read))
        assert {(number, at // block) for number, at in read} == needed
        assert all(run.start % block == 0 and (run.end % block == 0 or run.end == sizes[run.object]) for run in runs)


def test_large_ones_are_cut_into_whole_blocks() -> None:
    cut = pieces(Extent(3, 64 << 10, (20 << 20) + 5), 64 << 10)
    assert [piece.length for piece in cut] == [8 << 20, 8 << 20, (4 << 20) + 5]
    assert all(piece.start % (64 << 10) == 0 for piece in cut)
    assert sum(piece.length for piece in pieces(Extent(0, 0, 64 << 20), 32 << 20)) == 64 << 20


def test_what_was_waited_for_is_counted(bucket: Corpus, seed: int) -> None:
    assert bucket.server is not None
    bucket.write({"a": bytes(100)})
    with bucket.open(RecordSamples(100), verify="etag") as data:
        bucket.server.begin(lambda seen: "slow")
        data[0]
        assert data.statistics.waited_seconds > 0.1
        assert (data.statistics.bytes, data.statistics.fetched_bytes, data.statistics.requests) == (100, 100, 1)
        assert str(data.statistics).startswith(
            f"waited {data.statistics.waited_seconds:.1f} s for data: 0.0 MB of samples"
        )
