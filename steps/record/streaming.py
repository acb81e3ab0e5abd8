"""What streaming brought and what it cost, out of the ``streamed`` events of all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from argosy.steps.record.facts import Streaming
from argosy.steps.record.reading import number, text, whole
from argosy.steps.record.restart import Restart
from argosy.steps.runlog import Event


def streaming_of(events: Iterable[Event], restarts: Sequence[Restart]) -> Streaming | None:
    """None when nothing was streamed. A rank tells every ten seconds what was added since it told last."""
    told = [event for event in events if event.kind == "streamed"]
    if not told:
        return None
    waited: dict[int, float] = {}
    nodes: dict[int, str] = {}
    waits: list[dict[int, float]] = [{} for _ in restarts]
    for event in told:
        rank, seconds = whole(event.fields, "rank") or 0, max(0.0, number(event.fields, "waited_seconds") or 0.0)
        waited[rank] = waited.get(rank, 0.0) + seconds
        nodes[rank] = text(event.fields, "node")
        index = _within(restarts, event.time)
        if index is not None:
            waits[index][rank] = waits[index].get(rank, 0.0) + seconds
    longest = max(waited, key=lambda rank: (waited[rank], -rank))
    return Streaming(
        ranks=len(waited),
        bytes=_sum(told, "bytes"),
        fetched_bytes=_sum(told, "fetched_bytes"),
        requests=_sum(told, "requests"),
        refetched=_sum(told, "refetched"),
        waited_seconds=waited[longest],
        rank=longest,
        node=nodes[longest],
        # Ranks wait for each other, so the one that waited longest for data is the one that all waited for.
        waits=tuple(max(each.values(), default=0.0) for each in waits),
    )


def _within(restarts: Sequence[Restart], moment: float) -> int | None:
    """The restart whose steps a wait belongs to; before the first of them it is a part of starting."""
    begun = [index for index, each in enumerate(restarts) if each.began <= moment]
    if not begun or not (points := restarts[begun[-1]].points) or moment <= points[0].time:
        return None
    return begun[-1]


def _sum(events: Iterable[Event], field: str) -> int:
    return sum(max(0, whole(event.fields, field) or 0) for event in events)
