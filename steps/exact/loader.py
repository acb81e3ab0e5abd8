"""``argosy.ResumableLoader``: batches whose position in the data is a pure function of (seed, step).

Nothing is saved and nothing is restored: iteration begins at any step, with any number of ranks and of workers, and
gives the samples that an uninterrupted run reads there. One iterator serves the whole training, so there is no end of
an epoch at which workers stop, state is stale or a batch is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.numbers import whole
from argosy.steps.data.sampler import permuted, rank_slice
from argosy.steps.exact.generators import generators


@dataclass(frozen=True)
class Shard:
    """A virtual shard of one step's batch."""

    step: int
    number: int
    """0 … virtual_shards - 1; belongs to rank ``number % world_size``."""
    weight: float
    """Its samples divided by those of the whole step."""
    batch: Any
    """The collated samples."""


@dataclass(frozen=True)
class _Unit:
    """What one worker loads at once."""

    step: int
    place: int | str
    samples: list[int]


class ResumableLoader:
    """Samples of a map-style dataset in a random order: each exactly once per epoch, whatever happens to the run.

    Step ``t`` (from 1) reads positions ``[(t-1)*G, t*G)`` of the endless sequence of epochs; an epoch may end within a
    step. :meth:`shards` is for ExactDataParallel, :meth:`batches` for everything else.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        global_batch_size: int,
        seed: int,
        virtual_shards: int = 1,
        epochs: int | None = None,
        num_workers: int = 0,
        prefetch_factor: int | None = 2,
        pin_memory: bool = False,
        collate_fn: Callable[[list[Any]], Any] = default_collate,
    ) -> None:
        """``global_batch_size``: samples per step over all ranks. ``epochs``: iteration ends with the last sample of
        the last epoch (its step may be smaller); None: it goes on for ever. The others are torch's DataLoader's.

        Rank and world size are those of torch.distributed at this moment.

        Raises:
            InputError: not a map-style dataset, or an empty one; a number below 1; more shards than samples per step.
        """
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
            raise InputError(f"{type(dataset).__name__} has no length: a position needs dataset[i] and len(dataset)")
        if isinstance(dataset, str | bytes):
            raise InputError(f"dataset = {dataset!r}: dataset[i] has to be a sample; open it, as StreamingDataset(uri)")
        numbers = {"len(dataset)": len(dataset), "global_batch_size": global_batch_size,
                   "virtual_shards": virtual_shards, "epochs": 1 if epochs is None else epochs,
                   "prefetch_factor": 2 if prefetch_factor is None else prefetch_factor}  # fmt: skip
        for name, value in numbers.items():
            whole(name, value, 1)
        num_workers = whole("num_workers", num_workers, 0)
        if not callable(collate_fn):
            raise InputError(f"collate_fn = {collate_fn!r}: a function of a list of samples is needed")
        if virtual_shards > global_batch_size:
            raise InputError(f"virtual_shards = {virtual_shards} of global_batch_size = {global_batch_size}: "
                             "a shard needs a sample")  # fmt: skip
        joined = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if joined else 0
        self.world_size = dist.get_world_size() if joined else 1
        self.seed = whole("seed", seed, floats=True)
        self.virtual_shards = virtual_shards
        self._samples, self._global_batch = len(dataset), global_batch_size
        self._end = None if epochs is None else epochs * self._samples
        self._collated = _Collated(dataset, self.seed, collate_fn)
        self._options: dict[str, Any] = {"num_workers": num_workers, "pin_memory": pin_memory}
        if num_workers > 0:
            self._options["prefetch_factor"] = prefetch_factor
        self.waited_seconds = 0.0
        """How long the script waited for batches so far: a GPU had nothing to do for as long, or a little less."""

    @property
    def last_step(self) -> int | None:
        """The step that reads the last sample of the last epoch; None without ``epochs``."""
        return None if self._end is None else -(-self._end // self._global_batch)

    def __iter__(self) -> Iterator[Any]:
        raise InputError("a ResumableLoader begins at a step: write for step, batch in loader.batches(begin)")

    def shards(self, begin: int = 1) -> Iterator[tuple[int, list[Shard]]]:
        """From step ``begin`` on: (step, this rank's virtual shards in order).

        A rank may have none (more ranks than shards), and a shard without samples is left out (the last step).
        """
        yield from self._grouped(begin, self._shards_of)

    def batches(self, begin: int = 1) -> Iterator[tuple[int, Any]]:
        """From step ``begin`` on: (step, this rank's batch).

        Raises:
            InputError: a step has fewer samples than there are ranks: one would have none.
        """
        smallest = len(self._cursors(self.last_step)) if self.last_step else self._global_batch
        if smallest < self.world_size:
            raise InputError(f"a step of {smallest} samples cannot be shared by {self.world_size} ranks: choose "
                             "another global_batch_size, or end by steps instead of epochs")  # fmt: skip
        for step, units in self._grouped(begin, self._batch_of):
            yield step, units[0].batch

    def rounds(self) -> Sequence[int]:
        """The numbers of this rank's shards if all were there; equally many on every rank, so some may be too high."""
        ends = -(-self.virtual_shards // self.world_size) * self.world_size
        return range(self.rank, ends, self.world_size)

    def recipe(self) -> dict[str, Any]:
        """What decides which samples a shard reads."""
        return {
            "samples": self._samples,
            "global_batch_size": self._global_batch,
            "virtual_shards": self.virtual_shards,
            "seed": self.seed,
        }

    # ---- inside

    def _cursors(self, step: int) -> range:
        step = whole("step", step, 1)
        first, last = (step - 1) * self._global_batch, step * self._global_batch
        return range(first, last if self._end is None else max(first, min(last, self._end)))

    def _sample(self, cursor: int) -> int:
        return permuted(self.seed, cursor // self._samples, self._samples, cursor % self._samples)

    def _unit(self, step: int, place: int | str, part: int, parts: int) -> _Unit:
        cursors = self._cursors(step)
        mine = rank_slice(len(cursors), part, parts)
        return _Unit(step, place, [self._sample(cursors[offset]) for offset in mine])

    def _shards_of(self, step: int) -> list[_Unit]:
        numbers = [number for number in self.rounds() if number < self.virtual_shards]
        units = [self._unit(step, number, number, self.virtual_shards) for number in numbers]
        return [unit for unit in units if unit.samples]

    def _batch_of(self, step: int) -> list[_Unit]:
        return [self._unit(step, f"rank {self.rank} of {self.world_size}", self.rank, self.world_size)]

    def _grouped(self, begin: int, units_of: Callable[[int], list[_Unit]]) -> Iterator[tuple[int, list[Shard]]]:
        source = iter(self._torch_loader(begin, units_of))
        for step in self._steps(begin):
            size = len(self._cursors(step))
            units = units_of(step)
            yield (
                step,
                [
                    Shard(step, u.place if isinstance(u.place, int) else 0, len(u.samples) / size, self._next(source))
                    for u in units
                ],
            )

    def _next(self, source: Iterator[Any]) -> Any:
        began = time.monotonic()
        batch = next(source)
        waited = time.monotonic() - began
        self.waited_seconds += waited
        if self._options["num_workers"] and hasattr(self._collated.dataset, "waited"):
            # Its samples come from other processes, which do not know who waits for them.
            self._collated.dataset.waited(waited)
        return batch

    def _steps(self, begin: int) -> Iterator[int]:
        self._cursors(begin)
        return iter(count(begin) if self.last_step is None else range(begin, self.last_step + 1))

    def _torch_loader(self, begin: int, units_of: Callable[[int], list[_Unit]]) -> DataLoader[Any]:
        if not self._options["num_workers"] and hasattr(self._collated.dataset, "read_ahead"):
            # Workers are ahead by themselves; a StreamingDataset in this process can be, once it knows the order.
            units = (unit for step in self._steps(begin) for unit in units_of(step))
            self._collated.dataset.read_ahead(unit.samples for unit in units)
        return DataLoader(
            cast(Dataset[Any], self._collated),
            batch_sampler=_Units(lambda: (unit for step in self._steps(begin) for unit in units_of(step))),
            collate_fn=_as_it_is,
            # An iterator draws a seed for its workers: not from the script's own generator.
            generator=torch.Generator().manual_seed(0),
            **self._options,
        )


class _Units:
    """A batch sampler of torch's kind; the main process alone asks it."""

    def __init__(self, made: Callable[[], Iterator[_Unit]]) -> None:
        self._made = made

    def __iter__(self) -> Iterator[Any]:
        return self._made()


class _Collated:
    """The dataset as workers see it: a whole unit at once, its random augmentations seeded by (seed, step, place)."""

    def __init__(self, dataset: Any, seed: int, collate: Callable[[list[Any]], Any]) -> None:
        self.dataset, self._seed, self._collate = dataset, seed, collate

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, unit: _Unit) -> Any:
        with generators(self._seed, unit.step, f"data {unit.place}"):
            if hasattr(self.dataset, "__getitems__"):
                return self._collate(self.dataset.__getitems__(unit.samples))
            return self._collate([self.dataset[number] for number in unit.samples])


def _as_it_is(collated: Any) -> Any:
    return collated
