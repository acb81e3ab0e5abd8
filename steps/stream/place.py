"""Where a dataset's manifest and what was computed from it are kept, and who computes it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from argosy.steps.contract import env
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.layout import dataset_key, derived_key, run_prefix
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest, check_digest
from argosy.steps.data.stored_manifest import load_manifest, save_manifest
from argosy.steps.store import ObjectStore, open_store
from argosy.steps.store.base import ObjectMissing

NAME = "stream"
_LOOK_SECONDS = (0.05, 2.0)
_SAY_SECONDS = 10.0
_Made = TypeVar("_Made")


class StreamPlace:
    """A store and the name below which it is kept; of the run under argosy, else a folder of the user's choice."""

    def __init__(self, store: ObjectStore, name: str, *, leads: bool = True) -> None:
        """``leads``: this process computes what is missing; the others wait for it."""
        self.store, self.name, self.leads = store, name, leads

    @classmethod
    def of_run(cls) -> StreamPlace | None:
        """The run's own; None outside argosy."""
        uri, name, run = (os.environ.get(word, "") for word in (env.RUN_URI, env.RUN_NAME, env.RUN_ID))
        below = f"/{run_prefix(name, run)}"
        if not uri.endswith(below):
            return None
        return cls(open_store(uri.removesuffix(below)), name, leads=_is_first("RANK"))

    @classmethod
    def at(cls, index: str) -> StreamPlace:
        """A folder or a uri; empty: ``.argosy/stream`` in the working directory."""
        if "://" not in index:
            index = Path(index or ".argosy/stream").resolve().as_uri()
        # A folder may be each node's own; a bucket is everybody's.
        return cls(open_store(index), NAME, leads=_is_first("LOCAL_RANK" if index.startswith("file:") else "RANK"))

    def manifest(self, uri: str, digest: str) -> DatasetManifest:
        """The manifest of this digest; the leader makes it of ``uri`` where there is none.

        Raises:
            InputError: not a digest.
            StepError: ``s3_missing``: the dataset at ``uri`` is another version by now.
        """
        key = dataset_key(self.name, check_digest(digest, "digest"))
        if self.store.head(key) is None and uri and self.leads:
            now = take_snapshot(uri)
            save_manifest(self.store, self.name, now)
            if now.digest != digest:
                text = f"dataset changed: {uri} is {now.digest} now, not {digest}, and no manifest of that is kept"
                raise StepError(Cause.S3_MISSING, f"{text} at {self.store.uri}")
        if uri and not self.leads:
            self._wait_for(key)
        return load_manifest(self.store, self.name, digest)

    def derived(
        self, digest: str, what: str, make: Callable[[], bytes], read: Callable[[bytes], _Made], *, lead: bool
    ) -> _Made:
        """Something that was computed from the dataset: read, or made and kept by whoever leads, or waited for.

        Raises:
            StepError: ``data_corrupt``: what is kept is not whole.
        """
        key = derived_key(self.name, digest, what)
        found = self._found(key)
        if found is None and lead:
            self.store.put_if_absent(key, make())
        elif found is None:
            self._wait_for(key)
        try:
            return read(found if found is not None else self.store.get(key))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            text = f"{self.store.uri}/{key}: {error}; remove it and it is made again"
            raise StepError(Cause.DATA_CORRUPT, text, quote=text) from error

    def _found(self, key: str) -> bytes | None:
        try:
            return self.store.get(key)
        except ObjectMissing:
            return None

    def _wait_for(self, key: str) -> None:
        pause, said = _LOOK_SECONDS[0], time.monotonic()
        while self.store.head(key) is None:
            time.sleep(pause)
            pause = min(2 * pause, _LOOK_SECONDS[1])
            if time.monotonic() - said > _SAY_SECONDS:
                said = time.monotonic()
                print(
                    f"argosy: waiting for the first rank to write {self.store.uri}/{key}", file=sys.stderr, flush=True
                )


def _is_first(word: str) -> bool:
    return os.environ.get(word, "0") == "0"


def agreed_digest(uri: str, place: StreamPlace) -> str:
    """The version that all ranks read: one snapshot, taken by rank 0.

    Raises:
        InputError: there are several ranks and no way to agree yet.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    dist = sys.modules.get("torch.distributed")
    joined = dist is not None and dist.is_available() and dist.is_initialized()
    if world > 1 and not joined:
        raise InputError(f"digest: {world} ranks must read the same version of {uri}: pass digest=, open the dataset "
                         "after torch.distributed.init_process_group, or run under argosy")  # fmt: skip
    if not joined or dist.get_rank() == 0:  # type: ignore[union-attr]
        manifest = take_snapshot(uri)
        save_manifest(place.store, place.name, manifest)
        digest = manifest.digest
    else:
        digest = ""
    return _told_by_rank_0(digest) if joined else digest


def _told_by_rank_0(digest: str) -> str:
    # Numbers, not an object: torch sends objects as pickles.
    import torch
    import torch.distributed as dist

    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    letters = torch.tensor(list(digest.encode() or bytes(64)), dtype=torch.uint8, device=device)
    dist.broadcast(letters, src=0)
    return bytes(letters.tolist()).decode()
