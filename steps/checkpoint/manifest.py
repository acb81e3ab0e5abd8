"""What a checkpoint is made of: shards, listed by parts (one per writer), listed by the root.

The root's SHA-256 is the checkpoint's digest: it fixes every byte below it. Format ``argosy.checkpoint/1``; see
docs/checkpoint-format.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError

FORMAT = "argosy.checkpoint/1"
PART_FORMAT = "argosy.checkpoint.part/1"
_HEX = re.compile(r"[0-9a-f]{64}")
_Parsed = TypeVar("_Parsed")


def sha256(data: bytes) -> str:
    """64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def root_key(digest: str) -> str:
    """Key of a root manifest below the run's prefix."""
    return f"manifests/{digest}.json"


def part_key(name: str, writer: int) -> str:
    """Key of one writer's manifest; it lies with its shards and is deleted with them."""
    return f"data/{name}/parts/{writer:06d}.json"


def shard_key(name: str, path: str) -> str:
    """Key of one file of the save ``name``; ValueError if the path would leave its folder."""
    check_path(path)
    return f"data/{name}/files/{path}"


def save_name(step: int, generation: int, nonce: str) -> str:
    """The folder of one save, never used twice: ``0000000040-g000003-<nonce>``."""
    return f"{step:010d}-g{generation:06d}-{nonce}"


def generation_of(name: str) -> int | None:
    """The generation that wrote the folder, or None if the name is not one of ours."""
    found = re.fullmatch(r"\d{10,}-g(\d{6,})-[0-9a-f]+", name)
    return int(found[1]) if found else None


def step_of(name: str) -> int:
    """The step of a folder that :func:`save_name` named."""
    return int(name.split("-", 1)[0])


@dataclass(frozen=True, kw_only=True)
class ShardFile:
    """One file of a checkpoint."""

    path: str
    """Where it goes in the folder it is restored to: relative, with ``/``."""
    key: str
    """Where its bytes lie, below the run's prefix."""
    size: int
    sha256: str
    modified_ns: int = 0
    """When the script last wrote to it, ns since 1970; 0: not known."""

    def __post_init__(self) -> None:
        check_path(self.path)
        if not isinstance(self.modified_ns, int):
            raise ValueError(f"shard {self.path!r} has no proper modified_ns")
        if not _HEX.fullmatch(self.sha256) or self.size < 0 or not self.key:
            raise ValueError(f"shard {self.path!r} has no proper key, size or sha256")


@dataclass(frozen=True, kw_only=True)
class PartRef:
    """What a root manifest says of one of its parts."""

    key: str
    size: int
    sha256: str
    total_bytes: int
    """Bytes of all the part's shards."""
    count: int = -1
    """How many shards; -1: not known (written before there was this field)."""

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(self.sha256):
            raise ValueError(f"part {self.key!r} has no sha256")


@dataclass(frozen=True, kw_only=True)
class Part:
    """The shards of one writer (a rank, or a node)."""

    writer: int
    files: tuple[ShardFile, ...]

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return _canonical({"format": PART_FORMAT, **asdict(self)})

    @classmethod
    def from_bytes(cls, raw: bytes) -> Part:
        """Parse; ValueError if it is not a part of a version that we know."""

        def build(record: dict[str, Any]) -> Part:
            files = tuple(ShardFile(**_only(item, "path key size sha256 modified_ns")) for item in record["files"])
            return cls(writer=record["writer"], files=files)

        return _parsed(raw, PART_FORMAT, build)


@dataclass(frozen=True, kw_only=True)
class Root:
    """The root manifest."""

    kind: Literal["tensors", "files"]
    """``tensors``: a state saved by Checkpointer. ``files``: an opaque folder."""
    name: str
    """Folder of the save below ``data/``."""
    step: int
    generation: int
    seq: int
    """Number of the log entry that commits it: without that entry it is nothing."""
    world_size: int
    created: float
    final: bool
    total_bytes: int
    parts: tuple[PartRef, ...]
    meta: dict[str, Any] = field(default_factory=dict)
    """Free facts for people (versions, run id); nothing is decided by them."""

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return _canonical({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_bytes(cls, raw: bytes) -> Root:
        """Parse; ValueError if it is not a root of a version that we know."""
        names = "kind name step generation seq world_size created final total_bytes meta"

        def build(record: dict[str, Any]) -> Root:
            parts = tuple(PartRef(**_only(item, "key size sha256 total_bytes count")) for item in record["parts"])
            return cls(parts=parts, **_only(record, names))

        return _parsed(raw, FORMAT, build)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A committed checkpoint."""

    step: int
    digest: str
    """SHA-256 of the root manifest."""
    uri: str
    """Of the root manifest."""
    bytes: int
    final: bool
    generation: int
    created: float
    """Seconds since 1970 by the writer's clock."""
    files: tuple[ShardFile, ...]
    kind: str
    name: str
    seq: int
    world_size: int
    meta: dict[str, Any] = field(default_factory=dict, compare=False)


def need_kind(found: Root | Checkpoint, digest: str, kind: Literal["files", "tensors"]) -> None:
    """Refuse a checkpoint of the other mode: whoever went on from it would begin at the first step.

    Raises:
        StepError: ``checkpoint_mismatch``.
    """
    if found.kind == kind:
        return
    holds, mode = ("files of a script, not a Checkpointer's state", "opaque")
    if kind == "files":
        holds, mode = "a Checkpointer's state, not files", "checkpointer"
    text = (
        f"checkpoint {digest[:12]} of step {found.step} holds {holds}: set checkpoint.mode to "
        f'"{mode}" again, or begin anew (another run id, or resume-from none)'
    )
    raise StepError(Cause.CHECKPOINT_MISMATCH, text, quote=text)


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What a commit reports: enough for the log, without reading anything back."""

    step: int
    digest: str
    bytes: int
    final: bool
    generation: int


def check_path(path: str) -> None:
    """ValueError unless the path is relative, plain and stays below its folder."""
    if "\\" in path or not path.isprintable() or any(segment in ("", ".", "..") for segment in path.split("/")):
        raise ValueError(f"path {path!r} would leave its folder")


def _canonical(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n").encode()


def _only(record: dict[str, Any], names: str) -> dict[str, Any]:
    return {name: record[name] for name in names.split() if name in record}


def _parsed(raw: bytes, version: str, build: Callable[[dict[str, Any]], _Parsed]) -> _Parsed:
    try:
        record = json.loads(raw)
        if record["format"] != version:
            raise ValueError(f"format is {record['format']!r}, this argosy reads {version}")
        return build(record)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a {version}: {error!r}") from error
