"""A writer's place among the others: rank's writer, leader of a node, coordinator; from one to all three at once.

Reports go up (writer, leader, coordinator), outcomes come down the same way.
"""

from __future__ import annotations

import functools
import math
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import PartRef, ShardFile
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.commits import Commits
from argosy.steps.checkpointer.coordinator import Agreed, Coordinator, failure, failure_of
from argosy.steps.checkpointer.interval import Interval
from argosy.steps.checkpointer.lines import Lines, Payload, Record
from argosy.steps.checkpointer.loop import Loop
from argosy.steps.checkpointer.node_part import NodePart
from argosy.steps.checkpointer.peers import (
    Address,
    Peers,
    connect,
    listen_coordinator,
    listen_node,
    node_socket_name,
    own_address,
)
from argosy.steps.contract.causes import Cause

_TICK_SECONDS = 0.25
_STOP_SECONDS = 1.0
"""How long the news of a failure may take to every rank before it is acted on."""


@dataclass(frozen=True, kw_only=True)
class WriterPlace:
    """What a writer is told at its start."""

    rank: int
    world_size: int
    first_rank: int
    """The first rank of this node, whose writer leads the node's."""
    node_ranks: int
    token: str
    timeout: float
    host: str = ""
    """Rank 0's address as torchrun has it; "" when all ranks are on this node."""
    coordinator: tuple[str, int] | None = None
    """Where rank 0's writer listens; None for rank 0's writer itself."""
    generation: int = 0
    seq: int = 0
    """Number of the log entry that claimed the generation; told to rank 0 only."""
    keep: int = 1
    failure_hours: float = 0.0
    """Above 0: the interval between saves is decided here."""

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Read what :class:`WriterPlace` was sent as."""
        known = dict(record)
        if known.get("coordinator"):
            known["coordinator"] = (str(known["coordinator"][0]), int(known["coordinator"][1]))
        return cls(**known)

    def to_record(self) -> Record:
        """To be sent."""
        return asdict(self)


class WriterGang:
    """One writer and whoever it reports to."""

    def __init__(
        self,
        loop: Loop,
        place: WriterPlace,
        store: CheckpointStore,
        *,
        deliver: Callable[[Record], None],
        noted_step: Callable[[], int],
    ) -> None:
        """``deliver`` gets outcomes for this rank's script; ``noted_step`` is the step that the script is at.

        Raises:
            OSError: a socket cannot be opened.
        """
        self._loop = loop
        self._place = place
        self._store = store
        self._deliver = deliver
        self._noted_step = noted_step
        self.commits: Commits | None = None
        self.address: Address | None = None
        self._coordinator: Coordinator | None = None
        self._leaders: Peers | None = None
        self._members: Peers | None = None
        self._part: NodePart | None = None
        self._uplink: Lines | None = None
        self._leaving = False
        if place.rank == 0:
            self._coordinate()
        if place.rank == place.first_rank:
            self._lead()
            self._tick()

    # ---- roles

    def _coordinate(self) -> None:
        place = self._place
        interval = Interval(place.failure_hours) if place.failure_hours > 0 else None
        self.commits = Commits(self._store, Claim(place.generation, place.seq), place.keep, interval)
        self._coordinator = Coordinator(
            place.world_size,
            place.timeout,
            commit=self._commit,
            work=functools.partial(self._loop.work, "commit", 1),
            announce=self._announce,
            clock=time.monotonic,
        )
        if place.node_ranks < place.world_size:
            server = listen_coordinator(place.host)
            self.address = own_address(server, place.host or socket.gethostname())
            self._leaders = Peers(self._loop, server, place.token, self._from_leader, self._leader_left)

    def _lead(self) -> None:
        place = self._place
        self._part = NodePart(
            range(place.first_rank, place.first_rank + place.node_ranks),
            place.timeout,
            store=self._store_part,
            work=functools.partial(self._loop.work, "part", 1),
            tell=self._up,
            clock=time.monotonic,
        )
        if place.node_ranks > 1:
            server = listen_node(place.token, place.first_rank)
            self._members = Peers(self._loop, server, place.token, self._from_member, self._member_left)

    def join(self, then: Callable[[BaseException | None], None]) -> None:
        """Reach whoever this writer reports to, then ``then(error)``."""
        place = self._place
        if place.rank == 0:
            return then(None)
        leads = place.rank == place.first_rank
        where = place.coordinator if leads else node_socket_name(place.token, place.first_rank)
        assert where is not None

        def joined(lines: Lines | None, error: BaseException | None) -> None:
            if lines is not None:
                self._uplink = lines
                self._loop.watch(lines, self._from_above, self._above_left)
                if leads:
                    ranks = list(range(place.first_rank, place.first_rank + place.node_ranks))
                    lines.try_send({"is": "here", "ranks": ranks})
            then(error)

        self._loop.work("connect", 1, lambda: connect(where, place.token, place.rank, lambda: self._leaving), joined)

    # ---- up

    def report(self, record: Record) -> None:
        """What this rank's writer has to say."""
        if self._part is not None:
            self._part.receive(record)
        else:
            self._up(record)

    def _up(self, record: Record) -> None:
        if self._coordinator is not None:
            self._coordinator.receive(record)
        elif self._uplink is None or not self._uplink.try_send(record):
            self._above_left()

    def _from_member(self, _rank: int, record: Record) -> None:
        assert self._part is not None
        self._part.receive(record)

    def _member_left(self, rank: int) -> None:
        assert self._part is not None
        self._part.left(rank)
        self._up({"is": "left", "ranks": [rank], "why": "its writer ended"})

    def _from_leader(self, rank: int, record: Record) -> None:
        assert self._coordinator is not None
        if record["is"] == "here":
            self._nodes[rank] = record["ranks"]
        else:
            self._coordinator.receive(record)

    @functools.cached_property
    def _nodes(self) -> dict[int, Sequence[int]]:
        return {}

    def _leader_left(self, rank: int) -> None:
        assert self._coordinator is not None
        why = "the writers of its node ended, or the node is out of reach"
        self._coordinator.receive({"is": "left", "ranks": self._nodes.get(rank, [rank]), "why": why})

    # ---- down

    def _announce(self, record: Record) -> None:
        if "failure" in record:
            record = {**record, "stop_at": self._stop_at()}
        elif self.commits is not None:
            self._loop.work("commit", 1, self.commits.prune, self._pruned)
        if self._leaders is not None:
            self._leaders.tell(record)
        self._down(record)

    def _stop_at(self) -> int:
        """The step after which every rank ends: ahead of all of them, so that none goes on alone into a collective."""
        assert self.commits is not None
        now, seconds = self._noted_step(), self.commits.step_seconds
        return now + 2 + math.ceil(_STOP_SECONDS / seconds) if now > 0 and seconds > 0 else now + 2 * (now > 0)

    def _down(self, record: Record) -> None:
        if self._members is not None:
            self._members.tell(record)
        self._deliver(record)

    def _from_above(self, record: Record, _payload: Payload) -> None:
        self._down(record)

    def _above_left(self) -> None:
        if not self._leaving:
            who = "the checkpoint's coordinator (the writer of rank 0)"
            if self._place.rank != self._place.first_rank:
                who = f"the writer of rank {self._place.first_rank}, which leads this node,"
            self._down(
                {"is": "outcome", "number": 0, "failure": failure(Cause.PEER_LOST, f"{who} ended"), "stop_at": 0}
            )

    # ---- the store

    def _store_part(self, name: str, files: Sequence[ShardFile]) -> PartRef:
        part = self._store.part(name, self._place.rank)
        part.stored(files)
        return part.finish()

    def _commit(self, agreed: Agreed) -> Record:
        assert self.commits is not None
        return self.commits.commit(agreed, time.monotonic)

    def _pruned(self, _nothing: Any, error: BaseException | None) -> None:
        if error is not None:
            self._announce({"is": "outcome", "number": 0, "failure": failure_of(error)})

    def _tick(self) -> None:
        assert self._part is not None
        self._part.tick()
        if self._coordinator is not None:
            self._coordinator.tick()
        self._loop.later(_TICK_SECONDS, self._tick)

    # ---- the end

    @property
    def busy(self) -> bool:
        """Whether others still need this writer."""
        return self._coordinator is not None and self._coordinator.waiting

    def leave(self) -> None:
        """Hang up everywhere."""
        self._leaving = True
        for peers in (self._leaders, self._members):
            if peers is not None:
                peers.close()
        if self._uplink is not None:
            self._uplink.hang_up()
