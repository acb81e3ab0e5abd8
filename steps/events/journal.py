"""What a run's trigger decided, in the store: for good in one log, and everything that was said of anything.

A decision for good is an entry of the log, numbered by who came first. Whoever appends the next one first sees the
last one through (``data/KEY`` says that its data are decided), so only the last entry can be unsettled.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from argosy.steps.appendlog import AppendLog, read_as
from argosy.steps.contract.layout import seq_name, seq_of, trigger_prefix
from argosy.steps.store import ObjectMissing, ObjectStore

START, DUPLICATE, WAITING, REFUSED = "start", "duplicate", "waiting", "refused"
_READERS = 16


@dataclass(frozen=True)
class Decision:
    """One decision: of whom (``source``), about what (``subject``, a uri), and why.

    ``time`` in seconds since 1970; ``key`` names the data by content; ``seq`` is the number of an entry of the log, 0
    for what is not for good; ``place`` is where ``workflow`` is started, with ``parameters``.
    """

    decision: str
    why: str
    subject: str
    source: str = ""
    time: float = field(default_factory=time.time)
    key: str = ""
    fingerprint: str = ""
    objects: int = 0
    size: int = 0
    workflow: str = ""
    place: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    seq: int = 0


class Journal:
    """The decisions of one run's trigger."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        self.store = store
        self._prefix = trigger_prefix(name)
        self._log = AppendLog(store, f"{self._prefix}/log")
        self._entries: dict[int, Decision] = {}

    # Decisions for good.

    def last(self) -> int:
        """Number of the last entry, 0 when there is none."""
        return max(self._numbers("log"), default=0)

    def entry(self, seq: int) -> Decision:
        """One entry of the log; it never changes."""
        if seq not in self._entries:
            self._entries[seq] = self._read(f"log/{seq_name(seq)}")
        return self._entries[seq]

    def append(self, decision: Decision) -> bool:
        """Add it under its own number; False when that is taken, perhaps by this very call."""
        return self._log.append(decision.seq, asdict(decision))

    def decided(self, key: str) -> Decision | None:
        """The entry that decided on these data, once it is settled."""
        number = self._maybe(f"data/{key}.json")
        return self.entry(int(number["seq"])) if number else None

    def all_decided(self) -> set[str]:
        """Keys of all data that were decided on, by one listing."""
        return {info.key.rpartition("/")[2].removesuffix(".json") for info in self.store.list(f"{self._prefix}/data")}

    def settle(self, decision: Decision) -> None:
        """Make an entry known by its data and by its subject; again changes nothing."""
        self._put(f"data/{decision.key}.json", {"seq": decision.seq})
        self._put(self._told(decision, f"{seq_name(decision.seq).removesuffix('.json')}"), asdict(decision))
        self.store.delete(f"{self._prefix}/{self._waiting(decision.subject)}")

    def is_done(self, seq: int) -> bool:
        """Whether an entry was carried out."""
        return self.store.head(f"{self._prefix}/done/{seq_name(seq)}") is not None

    def mark_done(self, seq: int) -> None:
        """Say that it was."""
        self._put(f"done/{seq_name(seq)}", {"time": time.time()})

    def undone(self) -> list[int]:
        """Entries that nobody has carried out yet."""
        return sorted(self._numbers("log") - self._numbers("done"))

    # What is said besides.

    def tell(self, decision: Decision) -> Decision:
        """Keep a decision that is not for good; of the waiting ones about one subject only the last."""
        if decision.decision == WAITING:
            self.store.put(f"{self._prefix}/{self._waiting(decision.subject)}", _encoded(asdict(decision)))
        else:
            self._put(self._told(decision, uuid.uuid4().hex[:10]), asdict(decision))
        return decision

    def about(self, subject: str) -> list[Decision]:
        """All that was decided about a uri, oldest first."""
        return self._all(f"told/{_hash(subject)}")

    def newest(self, count: int) -> list[Decision]:
        """The last decisions of all, oldest first."""
        return self._all("told", count)

    def _all(self, below: str, count: int = 0) -> list[Decision]:
        skip = len(self._prefix) + 1
        keys = [info.key[skip:] for info in self.store.list(f"{self._prefix}/{below}")]
        keys.sort(key=lambda key: key.rpartition("/")[2])  # "waiting" sorts behind every time
        with ThreadPoolExecutor(_READERS) as pool:
            found = [each for each in pool.map(self._present, keys[-count:] if count else keys) if each]
        return sorted(found, key=lambda decision: decision.time)

    # Memory of the looks.

    def remind(self, fingerprint: str) -> None:
        """Have the looks come back to data that were announced and have to wait."""
        self._put(f"again/{fingerprint}.json", {})

    def reminded(self) -> set[str]:
        """Fingerprints of such data, also of those that have started since."""
        return {info.key.rpartition("/")[2].removesuffix(".json") for info in self.store.list(f"{self._prefix}/again")}

    def note(self, name: str, once: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """The note of that name; ``once`` is written if there is none yet."""
        if once is not None:
            self._put(f"{name}.json", once)
        return self._maybe(f"{name}.json")

    def renew(self, name: str, record: dict[str, Any]) -> None:
        """Write the note of that name."""
        self.store.put(f"{self._prefix}/{name}.json", _encoded(record))

    def _numbers(self, folder: str) -> set[int]:
        return {seq_of(info.key) for info in self.store.list(f"{self._prefix}/{folder}")}

    def _read(self, key: str) -> Decision:
        return read_as(Decision, json.loads(self.store.get(f"{self._prefix}/{key}")))

    def _present(self, key: str) -> Decision | None:
        try:
            return self._read(key)
        except ObjectMissing:
            return None  # it was waiting when the listing was made

    def _maybe(self, key: str) -> dict[str, Any] | None:
        try:
            record: dict[str, Any] = json.loads(self.store.get(f"{self._prefix}/{key}"))
            return record
        except ObjectMissing:
            return None

    def _put(self, key: str, record: dict[str, Any]) -> bool:
        return self.store.put_if_absent(f"{self._prefix}/{key}", _encoded(record))

    def _told(self, decision: Decision, ending: str) -> str:
        return f"told/{_hash(decision.subject)}/{int(decision.time * 1000):013d}-{ending}.json"

    def _waiting(self, subject: str) -> str:
        return f"told/{_hash(subject)}/waiting.json"


def data_key(name: str, fingerprint: str) -> str:
    """Names data by content for one run: 64 hex digits."""
    return hashlib.sha256(json.dumps([name, fingerprint]).encode()).hexdigest()


def numbered(decision: Decision, seq: int) -> Decision:
    """The decision as that entry of the log."""
    return replace(decision, seq=seq)


def _hash(subject: str) -> str:
    return hashlib.sha256(subject.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _encoded(record: dict[str, Any]) -> bytes:
    return json.dumps(record, indent=1).encode() + b"\n"
