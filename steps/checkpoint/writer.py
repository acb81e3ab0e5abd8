"""Write one writer's share of a save: shards under names that are never used twice, then the part that lists them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from argosy.steps.checkpoint.log import joined
from argosy.steps.checkpoint.manifest import Part, PartRef, ShardFile, part_key, sha256, shard_key
from argosy.steps.store.base import ObjectStore


class PartWriter:
    """The share of writer number ``writer`` in the save ``name``.

    Nothing it writes means anything before a root that names it is committed, and the commit looks that the store
    has kept all of it. Raises StoreError throughout.
    """

    def __init__(self, store: ObjectStore, prefix: str, name: str, writer: int) -> None:
        self._store = store
        self._prefix = prefix
        self._name = name
        self._writer = writer
        self._files: list[ShardFile] = []

    def add_bytes(self, path: str, data: bytes) -> ShardFile:
        """Store a small shard from memory."""
        key = shard_key(self._name, path)
        self._store.put(joined(self._prefix, key), data)
        return self._added(ShardFile(path=path, key=key, size=len(data), sha256=sha256(data)))

    def add_file(self, path: str, source: Path | memoryview, modified_ns: int = 0) -> ShardFile:
        """Store a shard from a file or memory; size and SHA-256 are those of the bytes that were stored.

        Memory is not copied as a whole; it must stay as it is until this returns.
        """
        key = shard_key(self._name, path)
        digest, size = self._store.upload(joined(self._prefix, key), source)
        return self._added(ShardFile(path=path, key=key, size=size, sha256=digest, modified_ns=modified_ns))

    def stored(self, files: Iterable[ShardFile]) -> None:
        """Take shards into this part that other processes stored for the same save.

        Raises:
            ValueError: a shard of another save, or not where its path says.
        """
        for file in files:
            if file.key != shard_key(self._name, file.path):
                raise ValueError(f"shard {file.path!r} lies at {file.key!r}, which is not in the save {self._name}")
            self._added(file)

    def content(self) -> dict[str, str]:
        """Path -> SHA-256 of what was written so far."""
        return {file.path: file.sha256 for file in self._files}

    def finish(self) -> PartRef:
        """Store the part; the reference goes into the root."""
        part = Part(writer=self._writer, files=tuple(self._files)).to_bytes()
        key = part_key(self._name, self._writer)
        self._store.put(joined(self._prefix, key), part)
        return PartRef(
            key=key,
            size=len(part),
            sha256=sha256(part),
            total_bytes=sum(file.size for file in self._files),
            count=len(self._files),
        )

    def _added(self, file: ShardFile) -> ShardFile:
        self._files.append(file)
        return file
