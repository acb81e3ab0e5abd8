"""The checks of one rank: ``python -m argosy.steps.preflight.rank --mode=warn``, once in each rank of a gang.

What ranks learn they put into the store of torchrun's agent, under a name of their own; rank 0 reads it and judges.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from argosy.steps import progress
from argosy.steps.address import own_address
from argosy.steps.contract import env
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.preflight import reach
from argosy.steps.preflight.exchange import FIRST_BYTES, Exchange
from argosy.steps.preflight.gathered import Gathered, dialled, neighbours, partners
from argosy.steps.preflight.judgement import Flaw, judge, second_look, summary

LIMIT = datetime.timedelta(seconds=60)
"""For each thing that one rank waits for another to do."""
MOST_DIALLED = 16
ROUNDS = 3
"""Partners that a node exchanges data with: with two slow ones met by chance, the third tells."""
LOOKS = 3
"""How often a node that looked slow, and two others in turn with it, exchange once more."""
HOLD_SECONDS = 60.0
"""How long ranks wait to be ended once rank 0 has told why: if they failed too, that would look like the reason."""
_TOLD = 400


@dataclass(frozen=True)
class Place:
    """Where this rank stands, from torchrun's environment."""

    rank: int
    world: int
    local: int
    locals: int
    """Ranks of this node."""

    @classmethod
    def from_environment(cls) -> Self:
        """Read it."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        return cls(*(int(os.environ[name]) for name in names))

    @property
    def node(self) -> int:
        """Number of the node; every node has as many ranks."""
        return self.rank // self.locals

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.world // self.locals

    def of_node(self, told: Sequence[Any], node: int) -> Sequence[Any]:
        """Of every rank's word those of one node's ranks."""
        return told[node * self.locals : (node + 1) * self.locals]

    def speed(self, size: int, seconds: Sequence[float]) -> float:
        """What a node exchanges when each of its ranks exchanges ``size`` bytes in so many seconds, GB/s."""
        return self.locals * size / max(seconds) / 1e9


class Checks:
    """What one rank does; ``node`` and everything that waits ends with an error after :data:`LIMIT`."""

    def __init__(self, place: Place, floor: float) -> None:
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        self._place, self._floor = place, floor
        self._store = PrefixStore("argosy/preflight", TCPStore(host, port, is_master=False, timeout=LIMIT))
        self._address = own_address(host, port)

    def run(self) -> Gathered | None:
        """All of them; what was gathered on rank 0, None on the others."""
        found = self._links()
        dead = bool(int(self._agreed("dead", None if found is None else str(len(found.dead)))))
        return found if dead else self._measured(found)

    def end(self, word: str | None) -> str:
        """Rank 0 says how it ends, the others hear it."""
        return self._agreed("end", word)

    def _agreed(self, key: str, word: str | None) -> str:
        if word is not None:
            self._store.set(key, word)
            return word
        return self._store.get(key).decode()

    def _links(self) -> Gathered | None:
        place, store = self._place, self._store
        if place.local == 0:
            with reach.answering(self._address) as port:
                own = {"name": os.environ.get(env.NODE_NAME) or socket.gethostname(), "software": _software()}
                store.set(f"node/{place.node}", json.dumps({**own, "address": self._address, "port": port}))
                whom = neighbours(place.node, place.nodes, MOST_DIALLED)
                places = {each: self._node(each) for each in whom}
                where = {each: (found["address"], found["port"]) for each, found in places.items()}
                store.set(f"unreached/{place.node}", json.dumps(reach.unreached(whom, where)))
                self._all_nodes_dialled()
        if place.rank != 0:
            return None
        nodes = [self._node(number) for number in range(place.nodes)]
        tried = {(node, other) for node in range(place.nodes) for other in dialled(node, place.nodes, MOST_DIALLED)}
        dead = {(node, other) for node in range(place.nodes) for other in json.loads(store.get(f"unreached/{node}"))}
        return Gathered(
            names=[node["name"] for node in nodes],
            software=[node["software"] for node in nodes],
            links={(min(pair), max(pair)) for pair in tried},
            dead={(min(pair), max(pair)) for pair in dead},
            floor=self._floor,
        )

    def _node(self, number: int) -> dict[str, Any]:
        return dict(json.loads(self._store.get(f"node/{number}")))

    def _all_nodes_dialled(self) -> None:
        """Wait until every node got here: a node that is being dialled must not close its door."""
        if self._store.add("dialled", 1) == self._place.nodes:
            self._store.set("dialled/all", "1")
        self._store.wait(["dialled/all"], LIMIT)

    def _measured(self, found: Gathered | None) -> Gathered | None:
        place = self._place
        exchange = Exchange(place.rank, place.world, place.local, PrefixStore("group", self._store), LIMIT)
        with contextlib.closing(exchange):
            size = self._size(exchange)
            met = partners(place.node, place.nodes, ROUNDS)
            own = {
                "pairs": [exchange.pair(None if other is None else self._peer(other), size) for other in met],
                "compute": exchange.compute(),
                "all_reduce": exchange.all_reduce(size),
            }
            told = self._told("rank", own)
            if told is not None and found is not None:
                found = replace(found, size=size, **_gathered(told, place, size))
            return self._again(exchange, found, size)

    def _size(self, exchange: Exchange) -> int:
        size, turn = FIRST_BYTES, 0
        while True:
            seconds = exchange.all_reduce(size)
            larger = str(exchange.next_size(size, seconds)) if self._place.rank == 0 else None
            agreed = int(self._agreed(f"size/{turn}", larger))
            if agreed == size:
                return size
            size, turn = agreed, turn + 1

    def _again(self, exchange: Exchange, found: Gathered | None, size: int) -> Gathered | None:
        place = self._place
        asked = json.loads(self._agreed("again", None if found is None else json.dumps(second_look(found))))
        turns = [pair for both in asked for pair in both * LOOKS]
        own = []
        for pair in turns:
            other = sum(pair) - place.node if place.node in pair else None
            own.append(exchange.pair(None if other is None else self._peer(other), size))
        told = self._told("again", own) if asked else None
        if found is None or told is None:
            return found
        speeds = []
        for turn, pair in enumerate(turns):
            ranks = [each for node in pair for each in place.of_node(told, node)]
            speeds.append(place.speed(size, [each[turn] for each in ranks]))
        again = {}
        for number, ((node, _), _) in enumerate(asked):
            its = speeds[number * 2 * LOOKS : (number + 1) * 2 * LOOKS]
            again[found.names[node]] = max(its[::2]), max(its[1::2])
        return replace(found, again=again)

    def _told(self, what: str, own: Any) -> list[Any] | None:
        """Every rank's word on rank 0, in their order; None on the others."""
        self._store.set(f"{what}/{self._place.rank}", json.dumps(own))
        if self._place.rank != 0:
            return None
        return [json.loads(self._store.get(f"{what}/{rank}")) for rank in range(self._place.world)]

    def _peer(self, node: int) -> int:
        """The rank with our own local number: on a machine with rails it has the same one."""
        return node * self._place.locals + self._place.local


def _gathered(told: Sequence[dict[str, Any]], place: Place, size: int) -> dict[str, Any]:
    nodes = [place.of_node(told, node) for node in range(place.nodes)]
    pairs = {}
    for node, ranks in enumerate(nodes):
        for turn, other in enumerate(partners(node, place.nodes, ROUNDS)):
            if other is not None and node < other:
                pairs[node, other] = place.speed(size, [each["pairs"][turn] for each in (*ranks, *nodes[other])])
    compute = [max(each["compute"] for each in ranks) for ranks in nodes]
    reduced = max(each["all_reduce"] for each in told)
    return {
        "pairs": pairs,
        "compute": compute if all(compute) else [],
        "all_reduce": 2 * (place.world - 1) / place.world * size / reduced / 1e9,
    }


def _software() -> str:
    if not torch.cuda.is_available():
        return f"torch {torch.__version__}"
    nccl = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
    return f"torch {torch.__version__}, NCCL {nccl}, {torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}"


def tell(found: Gathered, flaws: Sequence[Flaw], enforce: bool, seconds: float) -> None:
    """Into the rank's log and the run's event log; under ``enforce`` the first flaw ends the start."""
    said = summary(found)
    print(f"argosy: preflight: {said} ({seconds:.1f} s)", flush=True)
    for flaw in flaws:
        print(f"argosy: {'' if enforce else 'warning: '}preflight: {flaw.text}", flush=True)
    progress.preflight(
        summary=said[:_TOLD], flaws=[flaw.text[:_TOLD] for flaw in flaws[:4]], seconds=seconds, enforced=enforce
    )
    if flaws and enforce:
        worst = flaws[0]
        text = f"preflight: {worst.text} (gang.preflight = enforce)"
        progress.failed(str(worst.cause), text, node=worst.node)


def main() -> int:
    """0: the training may start."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--mode", choices=("warn", "enforce"), required=True)
    parser.add_argument("--floor", type=float, default=0.0)
    options = parser.parse_args()
    place, began = Place.from_environment(), time.monotonic()
    # The profile's floor is that of a whole node.
    whole = torch.cuda.is_available() and torch.cuda.device_count() == place.locals
    checks = Checks(place, options.floor if whole else 0.0)
    found = checks.run()
    if found is None:
        word = checks.end(None)
    else:
        flaws, enforce = judge(found), options.mode == "enforce"
        tell(found, flaws, enforce, time.monotonic() - began)
        word = checks.end("stop" if flaws and enforce else "go")
    if word == "stop":
        time.sleep(HOLD_SECONDS)
        return int(ExitCode.TRANSIENT)
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except Exception:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # tearing torch down takes longer than it is worth, or for ever after an error
