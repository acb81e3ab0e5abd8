"""Which network the ranks really used, node by node, and how that is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.steps.record.reading import text, texts, whole
from argosy.steps.record.wording import count
from argosy.steps.runlog import Event

SHOWN = 4
"""Nodes that are named in one line."""


@dataclass(frozen=True)
class Transport:
    """The last word of one node of a gang in one restart."""

    attempt: int
    restart: int
    node: str
    state: str
    """``ok``, ``wrong`` or ``unknown``."""
    sentence: str
    remedy: str
    profile: str

    @property
    def is_wrong(self) -> bool:
        """Whether another network than the fabric profile's was used."""
        return self.state == "wrong"


def transports_of(events: Sequence[Event]) -> tuple[Transport, ...]:
    """``events`` sorted by time; of each node and restart the latest, in the order of restarts and nodes."""
    latest: dict[tuple[int, int, str], Transport] = {}
    for event in events:
        if event.kind == "transport":
            found = _transport(event)
            latest[found.attempt, found.restart, found.node] = found
    return tuple(latest[key] for key in sorted(latest))


def _transport(event: Event) -> Transport:
    fields = event.fields
    return Transport(
        attempt=whole(fields, "attempt") or 0,
        restart=whole(fields, "restart") or 0,
        node=text(fields, "node"),
        state=text(fields, "state"),
        sentence=text(fields, "sentence"),
        remedy=text(fields, "remedy"),
        profile=text(fields, "profile"),
    )


def findings_of(events: Sequence[Event]) -> tuple[str, ...]:
    """What nodes found wrong with the network's variables, each once, in the order in which it was said."""
    said = (text for event in events if event.kind == "environment" for text in texts(event.fields, "findings"))
    return tuple(dict.fromkeys(said))


def latest_transports(transports: Sequence[Transport]) -> list[Transport]:
    """The transports of the newest restart that told any."""
    if not transports:
        return []
    newest = (transports[-1].attempt, transports[-1].restart)
    return [each for each in transports if (each.attempt, each.restart) == newest]


def transport_lines(transports: Sequence[Transport]) -> list[str]:
    """One line per thing that is said, the wrong ones first: ``wrong on node-1: expected NET/IB, got …``."""
    said: dict[tuple[str, str], list[str]] = {}
    for each in sorted(transports, key=lambda each: (not each.is_wrong, each.state != "unknown")):
        said.setdefault((each.state, each.sentence), []).append(each.node)
    return [f"{state} on {_nodes(nodes)}: {sentence}" for (state, sentence), nodes in said.items()]


def remedies(transports: Sequence[Transport]) -> list[str]:
    """What to do about the wrong ones, each once."""
    return list(dict.fromkeys(each.remedy for each in transports if each.is_wrong and each.remedy))


def _nodes(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= SHOWN else f"{count(len(names), 'node')} ({', '.join(names[:2])}, ...)"
