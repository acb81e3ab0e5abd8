"""Read a checkpoint and trust nothing: every byte is hashed before it is used."""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from argosy.steps.checkpoint.at_hand import Near, copied, nobody
from argosy.steps.checkpoint.log import joined
from argosy.steps.checkpoint.manifest import Checkpoint, Part, PartRef, Root, ShardFile, root_key, sha256
from argosy.steps.checkpoint.parallel import in_parallel
from argosy.steps.checkpoint.times import restore_times
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store.base import ObjectMissing, ObjectStore
from argosy.steps.store.files import fsync_folder, make_folders

_RANGE = 32 << 20
_PARALLEL = 8


class CorruptCheckpoint(StepError):
    """A committed checkpoint's bytes are missing or are not the committed ones.

    The message is the line that launch and the supervisor look for: ``checkpoint_corrupt digest=… shard=…``.
    """

    def __init__(self, digest: str, shard: str, why: str = "") -> None:
        self.digest, self.shard, self.why = digest, shard, why
        line = f"checkpoint_corrupt digest={digest} shard={shard}"
        super().__init__(Cause.CHECKPOINT_CORRUPT, line, quote=f"{line} {why}".strip())


def unlike(file: ShardFile, seen: int) -> str:
    """In what a shard of ``seen`` bytes differs from the committed one, whose digest is another."""
    return "its SHA-256 is another" if seen == file.size else f"{seen} of {file.size} bytes"


class CheckpointReader:
    """Manifest trees and shards of one run."""

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    def uri(self, key: str) -> str:
        """The full uri of a key below the run's prefix."""
        return f"{self._store.uri}/{joined(self._prefix, key)}"

    def root(self, digest: str) -> Root:
        """The root manifest, verified.

        Raises:
            CorruptCheckpoint: its bytes are not those of the digest. ObjectMissing: it is not there.
        """
        raw = self._store.get(joined(self._prefix, root_key(digest)))
        try:
            if sha256(raw) != digest:
                raise ValueError("its SHA-256 is another")
            return Root.from_bytes(raw)
        except ValueError as error:
            raise CorruptCheckpoint(digest, root_key(digest), str(error)) from error

    def part(self, digest: str, ref: PartRef) -> Part:
        """One part, verified; CorruptCheckpoint if it is missing or another."""
        raw = self.verified(digest, ref.key, ref.sha256)
        try:
            return Part.from_bytes(raw)
        except ValueError as error:
            raise CorruptCheckpoint(digest, ref.key, str(error)) from error

    def files_of(self, digest: str, refs: Sequence[PartRef]) -> tuple[ShardFile, ...]:
        """The shards of all parts, each part verified; CorruptCheckpoint if one is missing or another."""
        parts = in_parallel(lambda ref: self.part(digest, ref), refs, threads=4 * _PARALLEL, small=4)
        return tuple(file for part in parts for file in part.files)

    def checkpoint(self, digest: str) -> Checkpoint:
        """The whole manifest tree, verified; no shard is read."""
        root = self.root(digest)
        files = self.files_of(digest, root.parts)
        if len({file.path for file in files}) != len(files) or sum(file.size for file in files) != root.total_bytes:
            raise CorruptCheckpoint(digest, root_key(digest), "its parts do not add up")
        return Checkpoint(
            step=root.step,
            digest=digest,
            uri=self.uri(root_key(digest)),
            bytes=root.total_bytes,
            final=root.final,
            generation=root.generation,
            created=root.created,
            files=files,
            kind=root.kind,
            name=root.name,
            seq=root.seq,
            world_size=root.world_size,
            meta=root.meta,
        )

    def verified(self, digest: str, key: str, expected: str) -> bytes:
        """One object's bytes, verified; CorruptCheckpoint if it is missing or another."""
        try:
            raw = self._store.get(joined(self._prefix, key))
        except ObjectMissing as error:
            raise CorruptCheckpoint(digest, key, "missing") from error
        if sha256(raw) != expected:
            raise CorruptCheckpoint(digest, key, "its SHA-256 is another")
        return raw

    def verify(self, checkpoint: Checkpoint, advance: Callable[[int], None] = lambda count: None) -> None:
        """Read and hash every shard; CorruptCheckpoint names the first that is missing or another.

        ``advance`` is told of bytes as they are hashed, by several threads.
        """

        def verify_file(file: ShardFile) -> None:
            self._verify_file(checkpoint.digest, file, advance)

        in_parallel(verify_file, checkpoint.files, threads=_PARALLEL)

    def _verify_file(self, digest: str, file: ShardFile, advance: Callable[[int], None]) -> None:
        key = joined(self._prefix, file.key)
        seen, hashed = 0, hashlib.sha256()
        try:
            # One byte more than the size, so that a longer object is found too.
            while chunk := self._store.get_range(key, seen, min(_RANGE, file.size + 1 - seen)):
                seen += len(chunk)
                hashed.update(chunk)
                advance(len(chunk))
        except ObjectMissing as error:
            raise CorruptCheckpoint(digest, file.key, "missing") from error
        if seen != file.size or hashed.hexdigest() != file.sha256:
            raise CorruptCheckpoint(digest, file.key, unlike(file, seen))

    def fetch(self, checkpoint: Checkpoint, into: Path, near: Near = nobody, whole: Collection[ShardFile] = ()) -> int:
        """All files into a folder; a file has its name only once its bytes are verified and durable. The store is asked
        for those that neither lie there already nor are given by ``near``: how many bytes these were. ``whole``: those
        that stay as they lie there, hashed by the caller.

        Files that a script wrote get their times back: many scripts take the newest file as the one to go on from.

        Raises:
            CorruptCheckpoint: see :meth:`verify`. StoreError: the store or the disk failed.
        """
        make_folders(into)
        wanted = [file for file in checkpoint.files if file not in whole]
        asked = in_parallel(
            lambda file: self._fetch_file(checkpoint.digest, file, into, near), wanted, threads=_PARALLEL
        )
        restore_times(into, checkpoint.files)
        for folder in sorted({(into / file.path).parent for file in checkpoint.files}):
            fsync_folder(folder)
        return sum(asked)

    def _fetch_file(self, digest: str, file: ShardFile, into: Path, near: Near) -> int:
        target = into / file.path
        make_folders(target.parent)
        part = target.parent / f".argosy-fetch-{uuid.uuid4().hex}"
        try:
            at_hand = copied(into, file, part) or near(file, part)
            if not at_hand and self._store.fetch(joined(self._prefix, file.key), part) != file.sha256:
                raise CorruptCheckpoint(digest, file.key, "its SHA-256 is another")
            if file.modified_ns:  # before it has its name: by its time another node knows whether to ask for it
                with contextlib.suppress(OSError):
                    os.utime(part, ns=(file.modified_ns, file.modified_ns))
            os.replace(part, target)
            return 0 if at_hand else file.size
        except ObjectMissing as error:
            raise CorruptCheckpoint(digest, file.key, "missing") from error
        finally:
            part.unlink(missing_ok=True)

    def sizes(self, name: str) -> dict[str, int]:
        """Key below the run's prefix -> size, of all objects of one save."""
        cut = len(joined(self._prefix, ""))
        return {info.key[cut:]: info.size for info in self._store.list(joined(self._prefix, f"data/{name}"))}

    def complete(self, checkpoint: Checkpoint) -> bool:
        """All shards are there with the right sizes (one listing; no bytes are read)."""
        return not self.missing(checkpoint)

    def missing(self, checkpoint: Checkpoint) -> str:
        """The first shard that a listing does not show with its size, and what is there; "" if all are there."""
        there = self.sizes(checkpoint.name)
        for file in checkpoint.files:
            kept = there.get(file.key)
            if kept != file.size:
                return f"{file.key}: {'missing' if kept is None else f'{kept} of {file.size} bytes'}"
        return ""
