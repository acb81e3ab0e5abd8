"""Whether the store has kept what the writers of a save say that they stored, by one listing."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.steps.checkpoint.manifest import PartRef
from argosy.steps.checkpoint.reader import CheckpointReader
from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError


def check_arrived(reader: CheckpointReader, name: str, parts: Sequence[PartRef]) -> None:
    """Compare the objects below ``data/<name>/`` with the parts: each part's size, count and bytes of all shards.

    A store that answers 200 and keeps less is found here, before anything is committed. Parts are read back only
    when the sums differ, to say which shard is missing; a shard that no part names is no harm.

    Raises:
        StoreError: something is missing or has another size; nothing may be committed.
    """
    there = reader.sizes(name)
    for part in parts:
        _check(reader, part.key, part.size, there.pop(part.key, None))
    shards = {key: size for key, size in there.items() if key.startswith(f"data/{name}/files/")}
    counted = all(part.count >= 0 for part in parts)
    expected = sum(part.count for part in parts), sum(part.total_bytes for part in parts)
    if counted and expected == (len(shards), sum(shards.values())):
        return
    keys: set[str] = set()
    for file in reader.files_of(f"of the save {name}", parts):
        if file.key in keys:
            raise StoreError(Cause.CHECKPOINT_MISMATCH, f"two writers of the save {name} stored {file.path!r}")
        keys.add(file.key)
        _check(reader, file.key, file.size, shards.get(file.key))


def _check(reader: CheckpointReader, key: str, size: int, kept: int | None) -> None:
    if kept != size:
        amount = "nothing" if kept is None else f"{kept} bytes"
        text = f"the store kept {amount} of the {size} bytes of {reader.uri(key)}"
        raise StoreError(Cause.STORE_UNAVAILABLE, text)
