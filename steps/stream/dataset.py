"""``argosy.StreamingDataset``: samples straight from the store, read ahead of the step, verified before they are used.

Nothing about the position is saved: the order is a pure function of (seed, step) (``argosy.steps.data.sampler``), and
so are the ranges that come next.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.numbers import whole
from argosy.steps.data.staging import StageProgress
from argosy.steps.stream.ahead import Ahead
from argosy.steps.stream.blocks import BlockTable
from argosy.steps.stream.building import build_blocks
from argosy.steps.stream.catalogue import Catalogue, no_version
from argosy.steps.stream.connection import Connection
from argosy.steps.stream.fetcher import Fetch, Fetcher
from argosy.steps.stream.order import StepOrder, place_in_gang
from argosy.steps.stream.place import StreamPlace, agreed_digest
from argosy.steps.stream.samples import ObjectSamples, SampleIndex, Samples, check_samples, recipe_hash
from argosy.steps.stream.statistics import Counters, StreamStatistics

VERIFIED = ("blocks", "etag")


class StreamingDataset:
    """A map-style dataset over objects of a store; for torch's loaders, ResumableLoader, or alone (:meth:`batches`).

    It may be pickled and forked (a loader's workers): each process reads through a connection of its own.
    """

    _connection: Connection
    _counters: Counters
    _ahead: Ahead | None
    _index: SampleIndex
    _table: BlockTable | None
    _finalizer: Callable[[], object]

    def __init__(
        self,
        uri: str = "",
        samples: Samples = ObjectSamples(),
        *,
        digest: str = "",
        match: str = "*",
        decode: Callable[[Any], Any] | None = None,
        verify: Literal["blocks", "etag"] = "blocks",
        index: str = "",
        readers: int = 16,
        ahead_steps: int = 16,
        ahead_bytes: float = 256 << 20,
    ) -> None:
        """``uri``: prefix of the dataset; empty: the one of the run, in the version that the run has frozen.

        ``digest``: the version to read, as a run or an earlier dataset names it; empty: as it is now. ``match``: a
        shell's pattern that keys must match. ``decode``: called with each sample. ``verify``: ``blocks``: every block
        by its checksum (a table that is made once per version by reading everything); ``etag``: only that the object
        is the same version. ``index``: folder or uri that keeps what is computed once, outside a run (default
        ``.argosy/stream``). ``readers``: requests under way at most. ``ahead_steps``, ``ahead_bytes``: how many steps
        are asked for before they are needed, and how much memory they may take; one step may take more.

        Raises:
            InputError: a value breaks a rule, or several ranks have no way to agree on a version.
            StepError: the dataset is empty, has changed, or its samples cannot be found.
        """
        numbers = {"readers": readers, "ahead_steps": ahead_steps}
        for name, value in numbers.items():
            whole(name, value, 1)
        if verify not in VERIFIED:
            raise InputError(f"verify = {verify!r}: use {' or '.join(VERIFIED)}")
        check_samples(samples)
        for name, text in {"uri": uri or "", "digest": digest or "", "match": match, "index": index}.items():
            if not isinstance(text, str):
                raise InputError(f"{name} = {text!r}: a text in quotes is needed; of a folder Path(...).as_uri()")
        if decode is not None and not callable(decode):
            raise InputError(f"decode = {decode!r}: a function of a sample is needed")
        self._readers, self._ahead_steps = readers, ahead_steps
        self._ahead_bytes = whole("ahead_bytes", ahead_bytes, 1, floats=True)
        self._samples, self._match, self._decode, self._verify = samples, match, decode, verify
        self._index_at, self._uri = index, uri or os.environ.get(env.DATA_URI, "")
        self.digest = digest or ("" if uri else os.environ.get(env.DATASET_DIGEST, ""))
        self._home = os.getpid()
        with _errors_told():
            self._open(lead=True)

    def __len__(self) -> int:
        """Samples in one epoch."""
        return len(self._index)

    def __getitem__(self, number: int) -> Any:
        """One sample; many at once are faster (:meth:`__getitems__`)."""
        number = whole("number", number)
        return self.__getitems__([number + len(self) if number < 0 else number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """The samples of these numbers, in order; torch's loaders call it with a whole batch.

        Raises:
            StepError: ``s3_missing``: an object changed. ``data_corrupt``: wrong bytes came twice. Or what the store
                reported after all retries.
        """
        wanted, began = list(numbers), time.monotonic()
        if wanted and not (min(wanted) >= 0 and max(wanted) < len(self)):
            raise IndexError(f"samples {min(wanted)} to {max(wanted)} of {len(self)}")
        with _errors_told():
            fetcher = self._here()
            fetch = self._ahead.take(wanted) if self._ahead is not None else None
            if fetch is None:
                fetch = fetcher.begin([extent for number in wanted for extent in self._index.extents(number)])
            fetch.wait()
            samples = [self._sample(number, fetch) for number in wanted]
        if self._home == os.getpid():  # a worker's time is not the script's
            self.waited(time.monotonic() - began)
        return samples

    def read_ahead(self, order: Iterator[list[int]]) -> None:
        """Say which lists of samples will be asked for, in order; any other may still be asked for."""
        fetcher = self._here()
        self._ahead = Ahead(fetcher, order, self._index.extents, groups=self._ahead_steps, most=self._ahead_bytes)

    def batches(
        self,
        begin: int = 1,
        *,
        global_batch_size: int,
        seed: int,
        epochs: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> Iterator[tuple[int, list[Any]]]:
        """From step ``begin`` (steps count from 1): (step, this rank's samples), each exactly once per epoch.

        ``global_batch_size``: samples of a step over all ranks; the last step of the last of ``epochs`` may have
        fewer. ``rank`` and ``world_size``: torchrun's, if they are not given.

        Raises:
            InputError: a number is below 1, or the rank is not one of the world's.
            StepError: see :meth:`__getitems__`.
        """
        order = StepOrder(len(self), global_batch_size, seed, epochs, *place_in_gang(rank, world_size))
        begin = whole("begin", begin, 1)
        self.read_ahead(samples for _, samples in order.steps(begin))
        for step, samples in order.steps(begin):
            yield step, self.__getitems__(samples)

    @property
    def statistics(self) -> StreamStatistics:
        """What this process read since it opened the dataset."""
        return self._counters.now

    def waited(self, seconds: float) -> None:
        """Count time that a script waited for samples; a loader does, whose workers read them."""
        self._counters.add(waited=seconds)
        self._counters.tell()

    def close(self) -> None:
        """End the reading; the run's log gets the last numbers. So does the end of the process."""
        self._ahead = None
        if self._pid == os.getpid():
            self._finalizer()

    def __enter__(self) -> StreamingDataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside

    def _open(self, *, lead: bool) -> None:
        run = None if self._index_at else StreamPlace.of_run()
        place = run or StreamPlace.at(self._index_at)
        if run is None:
            self._index_at = place.store.uri  # a process that is spawned may have another working directory
        if not self._uri and not self.digest:
            raise InputError("uri: name the dataset; only under argosy, in a run with a [dataset], it is known")
        self.digest = self.digest or agreed_digest(self._uri, place)
        lead = lead and place.leads
        manifest = place.manifest(self._uri, self.digest)
        self._catalogue = Catalogue(manifest, self._match)
        if self._verify == "etag" and self._catalogue.unpinned:
            raise no_version(manifest.uri, self._catalogue.unpinned)
        self._connect()
        self._table = None
        if self._verify == "blocks":
            made = lambda: build_blocks(manifest, self._connection, on_progress=_say).to_bytes()  # noqa: E731
            self._table = place.derived(self.digest, "blocks", made, BlockTable.from_bytes, lead=lead)
        self._fetcher = fetcher = Fetcher(self._catalogue, self._connection, self._counters, self._table)
        scanned: Callable[[bytes], Any] = lambda raw: self._samples.index(self._catalogue, raw)  # noqa: E731
        if self._samples.recipe:
            what = f"samples-{recipe_hash(self._samples.recipe, self._match)}"
            scan = lambda: self._samples.scan(self._catalogue, fetcher.read)  # noqa: E731
            self._index = place.derived(self.digest, what, scan, scanned, lead=lead)
        else:
            self._index = scanned(b"")
        if not len(self._index):
            raise InputError(f"{self._uri}: no sample in {len(self._catalogue)} objects that match {self._match!r}")

    def _here(self) -> Fetcher:
        """The fetcher of this very process: connections, threads and counts do not survive a fork."""
        if self._pid != os.getpid():
            self._connect()
            self._fetcher = Fetcher(self._catalogue, self._connection, self._counters, self._table)
        return self._fetcher

    def _connect(self) -> None:
        self._connection = Connection(self._catalogue.uri, self._readers)
        self._pid = os.getpid()  # only now: a process without its own must not read by its parent's
        self._counters, self._ahead = Counters(), None
        self._finalizer = weakref.finalize(self, _end, self._connection, self._counters, self._pid)

    def _sample(self, number: int, fetch: Fetch) -> Any:
        sample = self._index.sample(number, [fetch.cut(extent) for extent in self._index.extents(number)])
        return sample if self._decode is None else self._decode(sample)

    def __getstate__(self) -> dict[str, Any]:
        # A process that is spawned opens the same version again: by digest, from where it is kept.
        gone = (
            "_ahead", "_fetcher", "_counters", "_connection", "_finalizer", "_catalogue", "_table", "_index", "_pid",
        )  # fmt: skip
        return {name: value for name, value in self.__dict__.items() if name not in gone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open(lead=False)


def _say(now: StageProgress) -> None:
    text = f"argosy: taking the checksums of the dataset's blocks, once: {now.bytes} of {now.bytes_total} bytes"
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _errors_told() -> Iterator[None]:
    """A verdict reads causes from lines; a traceback alone names none."""
    try:
        yield
    except StepError as error:
        print(f"argosy: {error.cause}: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        raise


def _end(connection: Connection, counters: Counters, owner: int) -> None:
    if owner == os.getpid():
        counters.tell(last=True)
    connection.close()
