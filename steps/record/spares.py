"""Who stood by and who took over, out of the ``standing_by`` and ``took_over`` events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.steps.record.reading import text, whole
from argosy.steps.record.wording import count
from argosy.steps.runlog import Event

_ANEW = ("gang_deleted", "gang_created", "restart_began", "train_ended")
"""Whoever stands by after it is told anew."""


@dataclass(frozen=True)
class TakeOver:
    """A node of a restart that another pod became."""

    attempt: int
    restart: int
    node_rank: int
    node: str
    from_node: str

    def began(self, attempt: int, restart: int) -> bool:
        """Whether it came with that start of the agents."""
        return (self.attempt, self.restart) == (attempt, restart)

    @property
    def sentence(self) -> str:
        """``node-2 in place of node-1``."""
        return f"{self.node} in place of {self.from_node or 'a pod that is gone'}"


@dataclass(frozen=True)
class Spares:
    """``ready`` and ``coming`` are the nodes that stand by now, with all that a rank needs and without; ``stood`` all
    that ever did.
    """

    ready: tuple[str, ...] = ()
    coming: tuple[str, ...] = ()
    stood: tuple[str, ...] = ()
    take_overs: tuple[TakeOver, ...] = ()

    @property
    def sentence(self) -> str:
        """``1 node ready (node-3); took over: node-2 in place of node-1``; "" for a gang without."""
        stand = f"{count(len(self.ready), 'node')} ready ({', '.join(self.ready)})" if self.ready else ""
        prepare = f"{count(len(self.coming), 'node')} preparing ({', '.join(self.coming)})" if self.coming else ""
        if self.stood and not (stand or prepare):
            stand = f"stood by: {', '.join(self.stood)}"
        over = f"took over: {', '.join(each.sentence for each in self.take_overs)}" if self.take_overs else ""
        return "; ".join(filter(None, [", ".join(filter(None, [stand, prepare])), over]))


def spares_of(events: Sequence[Event]) -> Spares:
    """``events`` sorted by time. A node stands by until it takes over, is lost, or its gang ends."""
    standing: dict[str, tuple[str, bool]] = {}
    found, stood = [], dict[str, None]()
    for event in events:
        pod, node = text(event.fields, "pod"), text(event.fields, "node")
        if event.kind == "standing_by":
            stood[node] = None
            standing[pod] = node, event.fields.get("ready") is True
        elif event.kind == "took_over":
            standing.pop(pod, None)
            found.append(_take_over(event))
        elif event.kind == "spare_lost":
            standing.pop(pod, None)
        elif event.kind in _ANEW:
            standing.clear()
    return Spares(
        ready=tuple(sorted(node for node, ready in standing.values() if ready)),
        coming=tuple(sorted(node for node, ready in standing.values() if not ready)),
        stood=tuple(stood),
        take_overs=tuple(found),
    )


def _take_over(event: Event) -> TakeOver:
    attempt, restart, rank = (whole(event.fields, name) or 0 for name in ("attempt", "restart", "node_rank"))
    return TakeOver(attempt, restart, rank, text(event.fields, "node"), text(event.fields, "from_node"))


def standing_line(event: Event) -> str:
    """``node-2 stands by``."""
    ready = "stands by" if event.fields.get("ready") is True else "gets ready to stand by"
    return f"spare: {text(event.fields, 'node')} {ready}"


def lost_line(event: Event) -> str:
    """``node-2 stands by no longer``."""
    return f"spare: {text(event.fields, 'node')} stands by no longer"


def take_over_line(event: Event) -> str:
    """``node-2 in place of node-1``."""
    return f"spare: {_take_over(event).sentence}"
