"""A gang that has fewer nodes than it is made for, and the moment in which it can have more.

After a commit, and not too often, the host is asked for the nodes that are missing. When pods would run on some of
them, and a commit is still fresh, the gang may be made anew for so many more: it saves when it is told to stop, as in
a preemption, and what a script loses that saves nothing then are the steps since that commit.
"""

from __future__ import annotations

from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.supervisor.context import Context, SupervisedGang
from argosy.steps.supervisor.ledger import Ledger

LOOK_SECONDS = 2.0
"""How often commits and the probe are looked at."""
BOUND_SECONDS = 30.0
"""So long a probe may find no node at all; an autoscaler has heard of it by then, and the next probe finds its node."""
SETTLE_SECONDS = 15.0
"""So long a probe that has found some nodes waits for the others."""
FRESH_SECONDS = 30.0
"""Of the commit that a gang is ended after."""
MOST_DOUBLINGS = 5


class Growing:
    """Of one restart of ``gang``; see :meth:`look`."""

    def __init__(self, context: Context, gang: SupervisedGang, now: float) -> None:
        """``now`` by the monotonic clock."""
        self._context, self._gang = context, gang
        self._missing = context.manifest.nnodes - gang.nnodes
        self._pause = pause_of(context.settings.args, context.ledger)
        # Who places gangs whole makes none smaller; what a queue has admitted goes to the next in it when given back.
        able = context.manifest.placement == "none"
        self.wanted = able and self._missing > 0 and context.settings.args.grow_seconds > 0
        """Whether there is anything to look for."""
        self._next = now + self._pause
        self._looked_at = now
        self._probing: float | None = None
        self._progress: int | None = None
        self._committed_at = 0.0

    def look(self, now: float) -> int:
        """With how many nodes the gang is to be made again now; 0: it goes on as it is."""
        if not self.wanted or now < self._next or now - self._looked_at < LOOK_SECONDS:
            return 0
        self._looked_at = now
        progress = self._context.commits.reached()["progress"]
        if self._progress is not None and progress != self._progress:
            self._committed_at = now
        self._progress = progress
        if not self._committed_at:
            return 0
        if self._probing is None:
            self._probing = now
        return self._probe(now, now - self._probing)

    def _probe(self, now: float, since: float) -> int:
        found = self._context.host.probe(*self._context.described(self._gang), self._missing)
        if found.over or (not found.bound and since > BOUND_SECONDS):
            self.end()
            self._next = now + self._pause
            return 0
        enough = found.running == self._missing or (found.running and since > SETTLE_SECONDS)
        fresh = now - self._committed_at < FRESH_SECONDS
        return self._gang.nnodes + found.running if enough and fresh else 0

    def end(self) -> None:
        """Let go of what was found."""
        if self._probing is not None:
            self._context.host.end_probe(self._gang.name)
        self._probing = None


def pause_of(args: TrainArgs, ledger: Ledger) -> float:
    """Seconds before a smaller gang looks for nodes; doubled for each that was ended for nodes that others took."""
    missed, promised = 0, 0
    for entry in ledger.of("grown", "restart"):
        if entry["kind"] == "grown":
            promised = entry["to"]
        elif promised:
            missed = missed + 1 if len(entry["pods"]) < promised else 0
            promised = 0
    return float(args.grow_seconds * 2 ** min(missed, MOST_DOUBLINGS))
