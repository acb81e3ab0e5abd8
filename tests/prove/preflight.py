"""Gangs of three to five ranks with networks of their own: one cable is slow, one node is cut off, one link is dead, or
all is well. Is the right node named, and nobody else?
"""

from __future__ import annotations

import random
import re
import time
from typing import Any

from tests.preflight.links import Network
from tests.prove.record import Record

COUNT = 40
KINDS = ("slow cable", "node cut off", "dead link", "well")
RATES = ("100mbit", "30mbit", "10mbit")
COLUMNS = ["case", "nodes", "fault", "at", "named", "seconds", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next cases; 0 when in all that were run the right node was named."""
    record = Record("preflight", seed)
    record.go_on(record.left(count), lambda number: _case(number, seed), minutes)
    cases = record.cases()
    held = sum(case["held"] for case in cases)
    note = f"{held} of {len(cases)}: the node at fault named and nobody else, or nobody where nobody can be."
    return record.told("Who is blamed before the first step", COLUMNS, note=note)


def _case(number: int, seed: int) -> dict[str, Any]:
    chosen = random.Random(f"{seed}/{number}")
    kind, nodes = KINDS[number % len(KINDS)], chosen.randint(3, 5)
    # Node 0 holds the store that the ranks meet at: cut off, nobody would start.
    one, other = chosen.sample(range(1, nodes), 2)
    network = Network(nodes, f"aypv{number % 100}")
    fault, at, blamed = kind, f"node-{one}", [f"node-{one}"]
    with network.up():
        if kind == "slow cable":
            rate = chosen.choice(RATES)
            fault = f"{kind}, {rate}"
            network.slow(one, rate)
        elif kind == "node cut off":
            for peer in set(range(1, nodes)) - {one}:
                network.cut(one, peer)
            if nodes == 3:  # of three nodes this is one link, and either end may be at fault
                at, blamed = f"node-{one}, node-{other}", []
        elif kind == "dead link":
            at, blamed = f"node-{one}, node-{other}", []
            network.cut(one, other)
        else:
            at, blamed = "", []
        began = time.monotonic()
        said = network.preflight()
    warned = [line for line in said if "warning" in line]
    named = [found[1] for line in warned if (found := re.match(r".*preflight: (node-\d) (?:and|exch)", line))]
    expected = 0 if kind == "well" else 1
    return {
        "case": number + 1, "nodes": nodes, "fault": fault, "at": at, "named": ", ".join(named),
        "seconds": round(time.monotonic() - began, 1), "held": named == blamed and len(warned) == expected,
    }  # fmt: skip
