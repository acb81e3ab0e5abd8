"""The supervisor's loop: gang after gang, restart after restart, until the run is done or a rule stops it."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from argosy.steps.contract.causes import EXIT_CODE, Cause
from argosy.steps.contract.channel import Orders
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang.host import GangRecord
from argosy.steps.supervisor.budget import Decision, Failure, decide
from argosy.steps.supervisor.context import Context, Gang, Stopped
from argosy.steps.supervisor.leaving import await_exit, have_stopped
from argosy.steps.supervisor.pending import Pending, gang_of, pending
from argosy.steps.supervisor.restart import Outcome, Restart
from argosy.steps.verdict import Verdict

COMMIT_SECONDS = 30.0
"""After the script's grace: time for launch to commit what was saved."""
_POD_GONE = (Cause.PREEMPTED_EVICTED, Cause.RENDEZVOUS_TIMEOUT)
"""After these the same pods cannot go on."""


class Supervisor:
    """Supervise one run with the parts of ``context``."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._avoid = ""

    def run(self) -> int:
        """0 when a verified commit reached the declared end; else the exit code of the verdict.

        Raises:
            StepError: the store or the host failed for good, or another supervisor owns the run (fenced).
        """
        gang: Gang | None = None
        try:
            if self._context.ledger.last("finished") is not None and isinstance(code := self._conclude(None), int):
                return code
            entry: Mapping[str, Any] | None = None
            if (left := self._left_undone()) is None:
                gang, entry = self._adopt()
            elif left.decision.action == "stop":
                return self._give_up(left.gang, left.verdict, left.decision)
            else:
                gang = self._prepare(left.gang, left.outcome, left.decision)
            while True:
                gang = gang or self._create()
                outcome = self._run_restart(gang, entry)
                entry = None
                if outcome.verdict is None:
                    end = self._conclude(gang)
                    if isinstance(end, int):
                        return end
                    outcome = replace(outcome, verdict=end)
                decision = self._settle(gang, outcome)
                if decision.action == "stop":
                    assert outcome.verdict is not None
                    return self._give_up(gang, outcome.verdict, decision)
                gang = self._prepare(gang, outcome, decision)
        except Stopped:
            return self._stopped()
        except StepError as error:
            self._lose(error)
            raise

    def _run_restart(self, gang: Gang, entry: Mapping[str, Any] | None) -> Outcome:
        last = entry or self._context.ledger.last("restart")
        number = int(last["restart"]) if last is not None and last["gang"] == gang.name else -1
        if entry is not None:
            return Restart(self._context, gang, number).adopt(entry)
        return Restart(self._context, gang, number + 1).run()

    # Gangs.

    def _left_undone(self) -> Pending | None:
        """What a supervisor before us decided and did not live to do; the gang's pods can be told again."""
        left = pending(self._context.ledger)
        if left is not None:
            names = frozenset(state.name for state in self._context.host.pods(left.gang.name))
            self._context.channel.expect(left.gang.name, names, left.outcome.restart)
            print(f"argosy: going on with: {left.decision.action}: {left.decision.reason}", file=sys.stderr)
        return left

    def _adopt(self) -> tuple[Gang | None, Mapping[str, Any] | None]:
        """The gang that runs already, and its restart if that is under way."""
        context = self._context
        known = context.host.gangs()
        entry = context.ledger.last("gang")
        for record in known:
            if not record.deleted and (entry is None or record.name != entry["gang"]):
                self._delete(record, "an older attempt")
        if entry is None or context.ledger.last("gang", "gang_deleted") is not entry:
            return None, None
        gang = gang_of(entry)
        if any(record.deleted and record.name == gang.name for record in known):
            self._delete(gang, "deleted already, and that was not written down")
            return None, None
        if any(state.reason == "HostLost" for state in context.host.pods(gang.name)):
            # The machine's engine went and took every pod with it: nobody's fault, nothing is charged.
            self._delete(gang, "its pods ended with the engine")
            return None, None
        context.create(gang)
        restart = context.ledger.last("restart", "failure")
        under_way = restart is not None and restart["kind"] == "restart" and restart["gang"] == gang.name
        print(f"argosy: adopted gang {gang.name}", file=sys.stderr)
        return gang, restart if under_way else None

    def _create(self) -> Gang:
        context = self._context
        attempt = 1 + max([context.ledger.last_attempt(), *(record.attempt for record in context.host.gangs())])
        excluded, nnodes = self._placement()
        gang = Gang(name=context.settings.gang_name(attempt), attempt=attempt, nnodes=nnodes, excluded=excluded)
        context.ledger.append("gang", gang=gang.name, attempt=attempt, nnodes=nnodes, excluded=list(excluded))
        context.record.log.append(
            "gang_created",
            attempt=attempt,
            gang=gang.name,
            nnodes=nnodes,
            nproc_per_node=context.nproc,
            excluded=list(excluded),
        )
        context.record.log.flush()
        context.create(gang)
        return gang

    def _placement(self) -> tuple[tuple[str, ...], int]:
        """Nodes to leave out and the number of nodes to take: fewer when the gang is elastic and some are gone."""
        context, wanted = self._context, self._context.manifest.nnodes
        excluded = context.ledger.excluded()
        avoiding = tuple(sorted({*excluded, self._avoid} - {""}))
        self._avoid = ""
        room = context.host.room(avoiding)
        if room is None or room >= wanted:
            return avoiding, wanted
        room = context.host.room(excluded)
        fewest = context.settings.args.min_nnodes
        return excluded, wanted if room is None else max(fewest, min(wanted, room))

    def _delete(self, gang: Gang | GangRecord, reason: str) -> None:
        context = self._context
        context.host.delete(gang.name, context.settings.args.grace_seconds + COMMIT_SECONDS)
        context.channel.forget()  # pods of the next gang may ask before we know their names
        context.ledger.append("gang_deleted", gang=gang.name, attempt=gang.attempt)
        context.record.log.append("gang_deleted", attempt=gang.attempt, gang=gang.name, reason=reason)
        context.record.log.flush()

    # After a restart.

    def _conclude(self, gang: Gang | None) -> int | Verdict:
        """Exit code 0 if the declared end is reached and verified; otherwise why it is not."""
        context = self._context
        found = context.commits.reached_end()
        if found is None:
            return _failed(Cause.FINISHED_WITHOUT_CHECKPOINT, context.commits.missing())
        if gang is not None:
            context.channel.order(Orders(command="exit"))
            await_exit(context, gang)
        try:
            context.commits.verify(found)
        except StepError as error:
            if error.cause != Cause.CHECKPOINT_CORRUPT:
                raise
            context.commits.quarantine(found.digest, str(error))
            return _failed(error.cause, str(error))
        for text in context.faults.left():
            print(f"argosy: {text} never happened: that rank reported no such step", file=sys.stderr)
        context.ledger.append("finished", digest=found.digest, step=found.step)
        for record in context.host.gangs():
            if not record.deleted:
                self._delete(record, "finished")
        context.record.outputs(found.uri, found.digest, {"cause": "none", "exit_code": 0, "step": found.step})
        context.record.log.append("train_ended", cause="none", exit_code=0, checkpoint_digest=found.digest)
        return int(ExitCode.OK)

    def _settle(self, gang: Gang, outcome: Outcome) -> Decision:
        """Decide, and write the failure down with the decision: from then on another supervisor would go on from it.

        What comes before may be done twice.
        """
        context, verdict = self._context, outcome.verdict
        assert verdict is not None
        for digest in self._corrupt(outcome, verdict):
            context.commits.quarantine(digest, verdict.quote)
        failure = self._failure(gang, outcome, verdict)
        decision = self._placeable(decide(failure, context.ledger.failures(), context.settings.limits))
        context.record.verdict(gang.name, failure, verdict, decision)
        if failure.cause == Cause.NUMERICS_NAN:
            context.commits.roll_back(failure.step)
        if decision.exclude:
            context.ledger.append("excluded", node=decision.exclude, cause=str(failure.cause))
            context.record.log.append("node_excluded", node=decision.exclude, cause=str(failure.cause))
        context.record.ended(failure, verdict, decision, outcome.endings)
        context.ledger.add_failure(failure, decision, verdict)
        context.faults.after(outcome.endings, context.record.log, context.commits.flip_byte)
        say = f"{verdict.cause} at step {outcome.step}: {verdict.quote}; {decision.action}: {decision.reason}"
        print(f"argosy: {say}", file=sys.stderr)
        return decision

    def _corrupt(self, outcome: Outcome, verdict: Verdict) -> tuple[str, ...]:
        """Checkpoints that a rank could not load: named by launch, by the rank's own line, or else the one resumed."""
        if outcome.corrupt or verdict.cause != Cause.CHECKPOINT_CORRUPT:
            return outcome.corrupt
        named = re.search(r"digest=([0-9a-f]{64})", verdict.quote)
        restart = self._context.ledger.last("restart")
        found = named[1] if named else restart["resume_digest"] if restart else ""
        return (found,) if found else ()

    def _failure(self, gang: Gang, outcome: Outcome, verdict: Verdict) -> Failure:
        mapped = None if verdict.signal is not None else self._context.settings.code_map.get(verdict.code or 0)
        return Failure(
            cause=verdict.cause,
            exit_code=verdict.exit_code if mapped is None else mapped,
            quote=verdict.quote,
            time=time.time(),
            attempt=gang.attempt,
            restart=outcome.restart,
            step=outcome.step,
            steps=outcome.steps,
            commit_step=self._context.commits.newest_step(),
            node=verdict.node,
            rank=-1 if verdict.rank is None else verdict.rank,
            mapped=mapped is not None,
        )

    def _placeable(self, decision: Decision) -> Decision:
        """A node may only be excluded when enough are left; else the run stops and says which node it suspects."""
        if not decision.exclude:
            return decision
        context = self._context
        room = context.host.room((*context.ledger.excluded(), decision.exclude))
        if room is None or room >= context.settings.args.min_nnodes:
            return decision
        reason = f"{decision.exclude} is suspect and only {room} other nodes are there"
        return replace(decision, action="stop", exit_code=int(ExitCode.SUSPECT_NODE), reason=reason, exclude="")

    def _prepare(self, gang: Gang, outcome: Outcome, decision: Decision) -> Gang | None:
        """Stop the ranks and pause; the gang when its pods can run the next restart, else None."""
        context, verdict = self._context, outcome.verdict
        assert verdict is not None
        root = {"cause": str(verdict.cause), "rank": verdict.rank, "node": verdict.node, "quote": verdict.quote}
        context.channel.order(Orders(command="stop", root=root))
        self._avoid = decision.avoid
        replace_gang = bool(decision.exclude or decision.avoid) or verdict.cause in _POD_GONE
        kept = have_stopped(context, gang, outcome.restart, hasty=replace_gang) and not replace_gang
        if not kept:
            self._delete(gang, decision.reason)
        until = time.monotonic() + decision.pause * random.uniform(0.5, 1.0)
        while (left := until - time.monotonic()) > 0:
            context.pause(min(left, 1.0))
        return gang if kept else None

    # Ends without success.

    def _give_up(self, gang: Gang, verdict: Verdict, decision: Decision) -> int:
        context = self._context
        root = {"cause": str(verdict.cause), "rank": verdict.rank, "node": verdict.node, "quote": verdict.quote}
        context.channel.order(Orders(command="exit", exit_code=decision.exit_code, root=root))
        await_exit(context, gang)
        self._delete(gang, decision.reason)
        context.record.log.append("train_ended", cause=str(verdict.cause), exit_code=decision.exit_code)
        context.record.gave_up(replace(verdict, exit_code=decision.exit_code))
        # Last: whoever comes after this entry was started by a person who wants it tried again.
        context.ledger.append("ended", exit_code=decision.exit_code, cause=str(verdict.cause))
        return decision.exit_code

    def _stopped(self) -> int:
        verdict = Verdict(cause=Cause.SIGTERM, exit_code=int(ExitCode.PREEMPTED), quote="the supervisor got SIGTERM")
        self._end_all("stopped from outside")
        self._context.record.log.append("train_ended", cause=str(verdict.cause), exit_code=verdict.exit_code)
        self._context.record.gave_up(verdict)
        return verdict.exit_code

    def _lose(self, error: StepError) -> None:
        """Something ended the supervisor itself; a later supervisor of this workflow takes the gang over."""
        context = self._context
        if error.cause != Cause.FENCED:
            self._end_all(str(error.cause))
        elif context.ledger.owner != context.settings.args.workflow_uid:
            # The run belongs to another workflow, which knows nothing of our pods.
            for record in context.host.gangs():
                context.host.delete(record.name, context.settings.args.grace_seconds + COMMIT_SECONDS)
        self._context.record.log.append("train_ended", cause=str(error.cause), exit_code=int(error.code))

    def _end_all(self, reason: str) -> None:
        for record in self._context.host.gangs():
            if not record.deleted:
                self._delete(record, reason)


def _failed(cause: Cause, quote: str) -> Verdict:
    return Verdict(cause=cause, exit_code=int(EXIT_CODE[cause]), quote=quote)
