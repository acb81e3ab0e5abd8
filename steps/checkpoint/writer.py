"""Write one writer's share of a save: shards under names that are never used twice, then the part that lists them."""

from __future__ import annotations

from pathlib import Path

from argosy.steps.checkpoint.log import joined
from argosy.steps.checkpoint.manifest import Part, PartRef, ShardFile, part_key, sha256
from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import ObjectStore, StoreError


class PartWriter:
    """The share of writer number ``writer`` in the save ``name``.

    Nothing it writes means anything before a root that names it is committed. Raises StoreError throughout.
    """

    def __init__(self, store: ObjectStore, prefix: str, name: str, writer: int) -> None:
        self._store = store
        self._prefix = prefix
        self._name = name
        self._writer = writer
        self._files: list[ShardFile] = []

    def add_bytes(self, path: str, data: bytes) -> ShardFile:
        """Store a shard from memory."""
        key = self._key(path)
        self._store.put(joined(self._prefix, key), data)
        return self._added(ShardFile(path=path, key=key, size=len(data), sha256=sha256(data)))

    def add_file(self, path: str, source: Path, modified_ns: int = 0) -> ShardFile:
        """Store a shard from a file; size and SHA-256 are those of the bytes that were stored."""
        key = self._key(path)
        digest, size = self._store.upload(joined(self._prefix, key), source)
        return self._added(ShardFile(path=path, key=key, size=size, sha256=digest, modified_ns=modified_ns))

    def finish(self) -> PartRef:
        """Store the part; the reference goes into the root."""
        part = Part(writer=self._writer, files=tuple(self._files)).to_bytes()
        key = part_key(self._name, self._writer)
        self._store.put(joined(self._prefix, key), part)
        return PartRef(key=key, size=len(part), sha256=sha256(part), total_bytes=sum(file.size for file in self._files))

    def _key(self, path: str) -> str:
        return f"data/{self._name}/files/{path}"

    def _added(self, file: ShardFile) -> ShardFile:
        # A store that answers 200 and keeps less is found here, before anything is committed.
        found = self._store.head(joined(self._prefix, file.key))
        if found is None or found.size != file.size:
            kept = "nothing" if found is None else f"{found.size} bytes"
            raise StoreError(Cause.S3_THROTTLE, f"{self._store.uri} kept {kept} of {file.size} bytes of {file.key}")
        self._files.append(file)
        return file
