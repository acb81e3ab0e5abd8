"""Real writer processes of several ranks, without torch and without torchrun: this process is every rank's script."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore, Claim
from argosy.steps.checkpointer.arena import BOARD
from argosy.steps.checkpointer.gang import WriterPlace
from argosy.steps.checkpointer.writer import Writer
from argosy.steps.store import open_store

PATIENCE = 60.0
SHARE = 300_000


class Gang:
    """``ranks`` writers on nodes of ``per_node``, joined; each share is SHARE bytes of the save's number."""

    def __init__(self, uri: str, ranks: int, per_node: int, *, timeout: float = 30.0, keep: int = 3) -> None:
        self.store = CheckpointStore(open_store(uri), "")
        self.claim: Claim = self.store.claim("the test")
        self.ranks = ranks
        self.closed = False
        self.token = os.urandom(16).hex()
        self.outcomes: list[dict[int, dict[str, Any]]] = [{} for _ in range(ranks)]
        self.writers = [Writer(self.store, self.outcomes[rank], process=True) for rank in range(ranks)]
        self.address = None
        for rank, writer in enumerate(self.writers):
            writer.arena.grow(BOARD + SHARE)
            writer.send({"do": "map"})  # on a busy machine it may have looked at the arena before it grew
            place = WriterPlace(
                rank=rank,
                world_size=ranks,
                first_rank=rank - rank % per_node,
                node_ranks=per_node,
                token=self.token,
                timeout=timeout,
                host="" if per_node == ranks else "127.0.0.1",
                coordinator=self.address,
                generation=self.claim.generation,
                seq=self.claim.seq,
                keep=keep,
            )
            writer.send({"do": "start", "uri": uri, "place": place.to_record()})
            if rank == 0:
                self.until(lambda: "ready" in self.writers[0].answers)
                address = self.writers[0].answers["ready"]["address"]
                self.address = (address[0], address[1]) if address else None
        self.until(lambda: all("ready" in writer.answers for writer in self.writers))
        assert not any("failure" in writer.answers["ready"] for writer in self.writers)

    def until(self, known: Callable[[], bool], of: list[int] | None = None) -> None:
        deadline = time.monotonic() + PATIENCE
        while not known():
            assert time.monotonic() < deadline
            for rank in range(len(self.writers)) if of is None else of:
                self.writers[rank].poll()
            time.sleep(0.005)

    def pid(self, rank: int) -> int:
        process = self.writers[rank]._process
        assert process is not None
        return process.pid

    def signal(self, rank: int, number: int) -> None:
        os.kill(self.pid(rank), number)

    def save(self, rank: int, number: int, *, step: int | None = None, **given: Any) -> None:
        """What a rank's script says once its snapshot is complete."""
        writer = self.writers[rank]
        assert writer.arena.map is not None
        writer.arena.map[BOARD : BOARD + SHARE] = bytes([number % 256]) * SHARE
        writer.send({"do": "map"})
        record = {
            "do": "save", "number": number, "step": step or 10 * number, "final": False, "last": True,
            "nonce": hashlib.sha256(f"{self.token}{number}".encode()).hexdigest()[:16],
            "generation": self.claim.generation, "fingerprint": "same", "began": time.monotonic(),
            "step_seconds": 0.1, "stall": 0.01, "extras": [], "describes": "",
            "files": [[f"tensors/rank-{rank:05d}-000.safetensors", BOARD, SHARE]],
        }  # fmt: skip
        writer.send(record | given)

    def await_outcome(self, number: int, of: list[int] | None = None) -> None:
        ranks = list(range(self.ranks)) if of is None else of
        self.until(lambda: all(number in self.outcomes[r] or self.writers[r].failure for r in ranks), ranks)

    def failures(self, of: list[int] | None = None) -> list[dict[str, Any]]:
        found = [self.writers[rank].failure for rank in (range(self.ranks) if of is None else of)]
        return [record["failure"] for record in found if record is not None]

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        for rank in range(self.ranks):
            process = self.writers[rank]._process
            if process is not None and process.poll() is None:
                self.signal(rank, signal.SIGCONT)
        for writer in self.writers:
            writer.close()


@pytest.fixture
def gang(tmp_path: Path) -> Iterator[Callable[..., Gang]]:
    made: list[Gang] = []

    def make(ranks: int, per_node: int, **given: Any) -> Gang:
        made.append(Gang(f"file://{tmp_path}/store", ranks, per_node, **given))
        return made[-1]

    yield make
    for one in made:
        one.close()
        assert all(not Path(f"/proc/{one.pid(rank)}").exists() for rank in range(one.ranks))
