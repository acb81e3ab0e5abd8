"""The gangs of a run: taken over, made, deleted; each step written down."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import COMMIT_SECONDS
from argosy.steps.contract.errors import StepError
from argosy.steps.gang.host import GangRecord
from argosy.steps.runlog import ENGINE_WENT
from argosy.steps.store.base import UNSERVED
from argosy.steps.supervisor.context import Context, SupervisedGang
from argosy.steps.supervisor.pending import gang_of


class Gangs:
    """The gangs that one supervisor makes, adopts and deletes."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def adopt(self) -> tuple[SupervisedGang | None, Mapping[str, Any] | None]:
        """The gang that runs already, and its restart if that is under way."""
        context = self._context
        known = context.host.gangs()
        entry = context.ledger.last("gang")
        for record in known:
            if not record.deleted and (entry is None or record.name != entry["gang"]):
                self.delete(record, "an older attempt")
        if entry is None or context.ledger.last("gang", "gang_deleted") is not entry:
            return None, None
        gang = gang_of(entry)
        if any(record.deleted and record.name == gang.name for record in known):
            self.delete(gang, "deleted already, and that was not written down")
            return None, None
        if any(state.reason == "HostLost" for state in context.host.pods(gang.name)):
            # The machine's engine went and took every pod with it: nobody's fault, nothing is charged.
            self.delete(gang, ENGINE_WENT)
            return None, None
        restart = context.ledger.last("restart", "failure")
        began = context.ledger.last("restart")
        if began is not None and began["gang"] == gang.name and all(record.name != gang.name for record in known):
            # Its name is never used again: a pod of it that nobody sees could take itself for one of the new ones.
            self.delete(gang, "deleted by somebody")
            return None, None
        context.create(gang)
        under_way = restart is not None and restart["kind"] == "restart" and restart["gang"] == gang.name
        print(f"argosy: adopted gang {gang.name}", file=sys.stderr)
        return gang, restart if under_way else None

    def create(self, avoid: str = "", enough: int = 0) -> SupervisedGang:
        """The next gang, without the node ``avoid`` if it can be spared; ``enough`` nodes, 0: as many as there are."""
        context = self._context
        attempt = 1 + max([context.ledger.last_attempt(), *(record.attempt for record in context.host.gangs())])
        excluded, nnodes = self._placement(avoid, enough)
        gang = SupervisedGang(
            name=context.settings.gang_name(attempt),
            attempt=attempt,
            nnodes=nnodes,
            excluded=excluded,
            on_demand=self.leaves_spot(),
        )
        spot = context.settings.spot
        capacity = {} if spot is None else {"on_demand": gang.on_demand}
        told = {"gang": gang.name, "nnodes": nnodes, "excluded": list(excluded)}
        context.ledger.append("gang", **told, attempt=attempt, **capacity)
        context.record.log.append(
            "gang_created",
            attempt=attempt,
            **told,
            nproc_per_node=context.nproc,
            **(
                {"capacity": "on-demand" if gang.on_demand else "spot", "preemptions": self._preempted()}
                if spot
                else {}
            ),
        )
        context.record.log.flush()
        context.create(gang)
        return gang

    def leaves_spot(self) -> bool:
        """Whether gangs stay off spot nodes from now on."""
        spot = self._context.settings.spot
        return spot is not None and self._preempted() >= spot.preemptions

    def _preempted(self) -> int:
        """How often the workflow's gangs lost nodes."""
        return sum(each.cause == Cause.PREEMPTED_EVICTED for each in self._context.ledger.failures())

    def _placement(self, avoid: str, enough: int) -> tuple[tuple[str, ...], int]:
        """Nodes to leave out and the number of nodes to take: fewer when the gang is elastic and some are gone."""
        context, wanted = self._context, enough or self._context.manifest.nnodes
        excluded = context.ledger.excluded()
        avoiding = tuple(sorted({*excluded, avoid} - {""}))
        room = context.host.room(avoiding)
        if room is None or room >= wanted:
            return avoiding, wanted
        room = context.host.room(excluded)
        fewest = context.settings.args.min_nnodes
        return excluded, wanted if room is None else max(fewest, min(wanted, room))

    def delete(self, gang: SupervisedGang | GangRecord, reason: str) -> None:
        """Delete a gang, and write down that it is gone."""
        context = self._context
        left = context.host.delete(gang.name, context.settings.args.grace_seconds + COMMIT_SECONDS)
        context.hear(gang.attempt)  # its last words: steps that were trained, and saved, in its grace
        context.channel.forget()  # pods of the next gang may ask before we know their names
        context.ledger.append("gang_deleted", gang=gang.name, attempt=gang.attempt)
        zombies = {"zombies": list(left)} if left else {}
        context.record.log.append("gang_deleted", attempt=gang.attempt, gang=gang.name, reason=reason, **zombies)
        context.record.log.flush()

    def end_all(self, reason: str) -> None:
        """Delete every gang that is left.

        Raises:
            StepError: all are gone, and the store did not take it down.
        """
        unwritten: StepError | None = None
        for record in self._context.host.gangs():
            if not record.deleted:
                try:
                    self.delete(record, reason)
                except StepError as error:
                    if error.cause not in UNSERVED:
                        raise
                    unwritten = error
        if unwritten is not None:
            raise unwritten
