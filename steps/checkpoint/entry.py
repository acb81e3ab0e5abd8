"""One entry of the commit log: what it says, and its bytes."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode

FORMAT = "argosy.log/1"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of the log."""

    seq: int
    """From 1, without gaps."""
    kind: Literal["claim", "commit", "prune"]
    generation: int
    parent: str
    """SHA-256 of the bytes of entry ``seq - 1``; "" for the first."""
    nonce: str
    """Makes equal bytes mean: written by the same append."""
    created: float
    """Seconds since 1970 by the writer's clock; for people, nothing is decided by it."""
    owner: str = ""
    """claim: who."""
    newest: int = 0
    """Number of the newest commit before this entry; 0: none."""
    pruned: int = 0
    """Number of the newest prune before this entry; 0: none."""
    step: int = 0
    digest: str = ""
    """commit: SHA-256 of the root manifest's bytes."""
    name: str = ""
    """commit: folder of the save below ``data/``."""
    manifest: str = ""
    """commit: key of the root manifest below the run's prefix."""
    total_bytes: int = 0
    final: bool = False
    keep: tuple[int, ...] = ()
    """prune: numbers of the commits before this entry that stay; all others are gone for good."""
    format: str = FORMAT
    identity: str = ""
    """SHA-256 of this entry's bytes; not a part of them."""

    def to_bytes(self) -> bytes:
        """Canonical JSON: fields that do not apply are left out."""
        record = {key: value for key, value in asdict(self).items() if key in _ALWAYS or value not in ("", 0, ())}
        record.pop("identity", None)
        return _canonical({**record, "sum": _sum(record)})

    @classmethod
    def from_bytes(cls, raw: bytes, seq: int) -> Entry:
        """Parse; unknown fields are ignored.

        Raises:
            StepError: ``checkpoint_corrupt``: not an entry of a version that we know, or not number ``seq``.
        """
        try:
            record: dict[str, Any] = json.loads(raw)
            if not str(record["format"]).startswith("argosy.log/1"):
                raise ValueError(f"unknown format {record['format']!r}")
            _check_sum(record, raw)
            known = {key: value for key, value in record.items() if key in _NAMES}
            known["keep"] = tuple(known.get("keep", ()))
            entry = replace(cls(**known), identity=hashlib.sha256(raw).hexdigest())
            if entry.seq != seq or entry.kind not in ("claim", "commit", "prune"):
                raise ValueError(f"says to be {entry.kind} {entry.seq}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(f"commit log entry {seq} cannot be read: {error}") from error
        return entry

    @property
    def newest_through(self) -> int:
        """Number of the newest commit, this entry included."""
        return self.seq if self.kind == "commit" else self.newest

    @property
    def pruned_through(self) -> int:
        """Number of the newest prune, this entry included."""
        return self.seq if self.kind == "prune" else self.pruned


_NAMES = {spec.name for spec in fields(Entry)} - {"identity"}
_ALWAYS = {"seq", "kind", "generation", "parent", "nonce", "created", "format"}


def _canonical(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n").encode()


def _sum(record: dict[str, Any]) -> str:
    return hashlib.sha256(_canonical({key: value for key, value in record.items() if key != "sum"})).hexdigest()


def _check_sum(record: dict[str, Any], raw: bytes) -> None:
    # A claim copies numbers and the identity of the entry before it: one bit read wrongly would stay in the chain.
    if _canonical(record) != raw:
        raise ValueError("it is not in the form that we write")
    # Entries of before there were sums have none, and no field that we do not know: so a damaged name is found too.
    summed = record["sum"] == _sum(record) if "sum" in record else record.keys() <= _NAMES
    if not summed:
        raise ValueError("its bytes are not those of its sum")


def damaged(message: str) -> StepError:
    """The error for damage: ``checkpoint_corrupt``, exit code 77."""
    # The log says what is committed: without it no restart can choose, so a person has to.
    return StepError(Cause.CHECKPOINT_CORRUPT, message, code=ExitCode.NEEDS_HUMAN)


def following(last: Entry | None, **given: Any) -> Entry:
    """The entry after ``last`` (None: the first), with a nonce of its own."""
    entry = Entry(
        seq=last.seq + 1 if last else 1,
        parent=last.identity if last else "",
        newest=last.newest_through if last else 0,
        pruned=last.pruned_through if last else 0,
        nonce=uuid.uuid4().hex,
        created=round(time.time(), 3),
        **given,
    )
    return replace(entry, identity=hashlib.sha256(entry.to_bytes()).hexdigest())
