"""10,000 ranks on 1,250 nodes commit a save: the real coordinator over real sockets, every request counted.

The nodes' leaders are real :class:`NodePart`s, each with a TCP connection to the coordinator and eight ranks that
report what they stored; the store is the one of the clouds over obstore's memory. Measured: from the first report to
the moment when every node has been told the outcome.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from obstore.store import MemoryStore

from argosy.steps.checkpoint.manifest import ShardFile, save_name, shard_key
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.gang import WriterGang, WriterPlace
from argosy.steps.checkpointer.lines import Lines, Payload, Record
from argosy.steps.checkpointer.loop import Loop
from argosy.steps.checkpointer.node_part import NodePart
from argosy.steps.checkpointer.peers import connect
from argosy.steps.store.cloud import CloudStore
from tests.prove.record import Record as Cases

NODES, PER_NODE, SHARDS = 1250, 8, 1
SECONDS, REQUESTS_PER_NODE = 5.0, 2.0
TOKEN = "the proof's"


class CountingStore:
    """Counts the requests that a store would be sent; a listing costs one per thousand objects."""

    def __init__(self, inner: CloudStore) -> None:
        self.inner, self.uri = inner, inner.uri
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        verb: Callable[..., Any] = getattr(self.inner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = verb(*args, **kwargs)
            requests = 1
            if isinstance(result, Iterator):
                found = list(result)
                requests, result = max(1, -(-len(found) // 1000)), iter(found)
            with self._lock:
                self.counts[name] += requests
            return result

        return call


class Nodes:
    """All leaders in one thread, as far from the coordinator as sockets are."""

    def __init__(self, store: CheckpointStore, address: tuple[str, int]) -> None:
        self.loop = Loop()
        self.told: Counter[int] = Counter()
        self.failures: list[Record] = []
        self._store = store
        self._parts: dict[int, NodePart] = {}
        for first in range(PER_NODE, NODES * PER_NODE, PER_NODE):
            lines = connect(address, TOKEN, first, lambda: False)
            lines.send({"is": "here", "ranks": list(range(first, first + PER_NODE))})
            self.loop.watch(lines, self._outcome, lambda: None)
            self._parts[first] = self._part(first, lines)

    def _part(self, first: int, lines: Lines) -> NodePart:
        def stored(name: str, files: Any) -> Any:
            part = self._store.part(name, first)
            part.stored(files)
            return part.finish()

        ranks = range(first, first + PER_NODE)
        work = functools.partial(self.loop.work, "part", 8)
        return NodePart(ranks, 60.0, store=stored, work=work, tell=lines.send, clock=time.monotonic)

    def report(self, number: int, name: str, files: dict[int, list[ShardFile]]) -> None:
        for first, part in self._parts.items():
            for rank in range(first, first + PER_NODE):
                part.receive(report_of(rank, number, name, files[rank]))

    def _outcome(self, record: Record, _payload: Payload) -> None:
        if "failure" in record:
            self.failures.append(record)
        self.told[int(record["number"])] += 1


def report_of(rank: int, number: int, name: str, files: list[ShardFile]) -> Record:
    """What a rank's writer says."""
    shards = [{"path": f.path, "key": f.key, "size": f.size, "sha256": f.sha256, "modified_ns": 0} for f in files]
    return {
        "is": "stored", "number": number, "rank": rank, "name": name, "step": number, "final": False,
        "fingerprint": "f" * 64, "stall": 0.1, "files": shards,
    }  # fmt: skip


def shards_of(checkpoints: CheckpointStore, name: str) -> dict[int, list[ShardFile]]:
    """Tiny shards of every rank, stored past the counter: their number is the ranks', not the protocol's."""
    data = b"shard"
    made: dict[int, list[ShardFile]] = {}
    for rank in range(NODES * PER_NODE):
        paths = [f"tensors/rank-{rank:05d}-{number:03d}.safetensors" for number in range(SHARDS)]
        for path in paths:
            checkpoints.store.put(shard_key(name, path), data)
        digest = hashlib.sha256(data).hexdigest()
        made[rank] = [ShardFile(path=p, key=shard_key(name, p), size=len(data), sha256=digest) for p in paths]
    return made


def opened() -> tuple[CloudStore, CountingStore]:
    """A cloud's store whose bucket is memory, plain and counted."""
    plain = CloudStore("s3://memory/run")
    plain._opened = MemoryStore()
    return plain, CountingStore(plain)


def once(number: int) -> dict[str, Any]:
    """One save of a new gang; the case for the table."""
    plain, counted = opened()
    unseen = CheckpointStore(plain, "")
    claim = unseen.claim("the proof")
    checkpoints = CheckpointStore(counted, "")  # type: ignore[arg-type]
    loop = Loop()
    place = WriterPlace(
        rank=0, world_size=NODES * PER_NODE, first_rank=0, node_ranks=PER_NODE, token=TOKEN, timeout=60.0,
        host="127.0.0.1", generation=claim.generation, seq=claim.seq, keep=0,
    )  # fmt: skip
    mine: list[Record] = []
    gang = WriterGang(loop, place, checkpoints, deliver=mine.append, noted_step=lambda: 0)
    assert gang.address is not None
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    nodes = Nodes(checkpoints, gang.address)
    leaders = threading.Thread(target=nodes.loop.run, daemon=True)
    leaders.start()
    name = save_name(1, claim.generation, f"{number:016x}")
    files = shards_of(unseen, name)
    counted.counts.clear()
    began = time.monotonic()
    nodes.report(1, name, files)
    for rank in range(PER_NODE):
        record = report_of(rank, 1, name, files[rank])
        loop.work("tell", 1, lambda: None, lambda _r, _e, record=record: gang.report(record))  # type: ignore[misc]
    while nodes.told[1] < NODES - 1 and not nodes.failures and time.monotonic() < began + 120:
        time.sleep(0.005)
    seconds = time.monotonic() - began
    requests = dict(counted.counts)
    newest = unseen.newest()
    per_node = sum(requests.values()) / NODES
    whole = newest is not None and len(newest.files) == NODES * PER_NODE * SHARDS and nodes.told[1] == NODES - 1
    gang.leave()
    for one in (loop, nodes.loop):
        one.stop()
    return {
        "case": number, "ranks": NODES * PER_NODE, "nodes": NODES, "seconds": round(seconds, 2),
        "requests": ", ".join(f"{count} {verb}" for verb, count in sorted(requests.items())),
        "per node": round(per_node, 3), "load of the machine": os.getloadavg()[0].__round__(1),
        "held": bool(whole and not nodes.failures and seconds <= SECONDS and per_node <= REQUESTS_PER_NODE),
    }  # fmt: skip


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run until ``count`` cases are recorded or ``minutes`` are over; 0 when all that were run held."""
    with contextlib.suppress(OSError, ValueError):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    record = Cases("ten-thousand-ranks", seed)
    record.go_on(record.left(count), once, minutes)
    columns = ["case", "ranks", "nodes", "seconds", "requests", "per node", "load of the machine", "held"]
    title = "Proof: 10,000 ranks commit in 5 s, with at most 2 requests per node beside the shards"
    return record.told(title, columns)
