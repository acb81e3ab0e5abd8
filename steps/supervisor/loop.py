"""The supervisor's loop: gang after gang, restart after restart, until the run is done or a rule stops it."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import COMMIT_SECONDS, Orders
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.trait import Trait
from argosy.steps.contract.trouble import Trouble
from argosy.steps.store.base import UNSERVED
from argosy.steps.store.leaving import UNWRITTEN
from argosy.steps.supervisor.budget import Decision, Failure, decide
from argosy.steps.supervisor.circumstances import considered
from argosy.steps.supervisor.context import Context, Stopped, SupervisedGang
from argosy.steps.supervisor.gangs import Gangs
from argosy.steps.supervisor.leaving import await_exit, have_stopped
from argosy.steps.supervisor.outcome import Outcome
from argosy.steps.supervisor.pending import Pending, pending
from argosy.steps.supervisor.restart import GangRestart
from argosy.steps.supervisor.spares import have_refilled
from argosy.steps.verdict import Verdict


class Supervisor:
    """Supervise one run with the parts of ``context``."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._gangs = Gangs(context)
        self._avoid = ""
        self._enough = 0
        self._ended = frozenset[str]()

    def run(self) -> int:
        """0 when a verified commit reached the declared end; else the exit code of the verdict.

        Raises:
            StepError: the store or the host failed for good, or another supervisor owns the run (fenced).
        """
        gang: SupervisedGang | None = None
        try:
            if self._context.ledger.last("finished") is not None and isinstance(code := self._conclude(None), int):
                return code
            entry: Mapping[str, Any] | None = None
            if (left := self._left_undone()) is None:
                gang, entry = self._gangs.adopt()
            elif left.decision.action == "stop":
                return self._give_up(left.gang, left.verdict, left.decision)
            else:
                gang = self._prepare(left.gang, left.outcome, left.decision)
            while True:
                gang = gang or self._gangs.create(self._avoid, self._enough)
                outcome = self._run_restart(gang, entry)
                entry = None
                if outcome.grow:
                    if isinstance(end := self._grow(gang, outcome), int):
                        return end
                    gang = None
                    continue
                if outcome.verdict is None:
                    end = self._conclude(gang, outcome.uncommitted)
                    if isinstance(end, int):
                        return end
                    outcome = replace(outcome, verdict=replace(end, step=outcome.step))
                decision = self._settle(gang, outcome)
                if decision.action == "stop":
                    assert outcome.verdict is not None
                    return self._give_up(gang, outcome.verdict, decision)
                gang = self._prepare(gang, outcome, decision)
        except Stopped:
            return self._stopped()
        except StepError as error:
            if self._context.stop.is_set() and error.cause in UNSERVED:
                return self._stopped()
            self._lose(error)
            raise

    def _run_restart(self, gang: SupervisedGang, entry: Mapping[str, Any] | None) -> Outcome:
        last = entry or self._context.ledger.last("restart")
        number = int(last["restart"]) if last is not None and last["gang"] == gang.name else -1
        if entry is not None:
            return GangRestart(self._context, gang, number).adopt(entry)
        return GangRestart(self._context, gang, number + 1, self._avoid, self._ended).run()

    def _grow(self, gang: SupervisedGang, outcome: Outcome) -> int | Verdict | None:
        """End the gang as a preemption would, with its time to save; the next is larger. Charged to nothing.

        Exit code 0 if its last save was the declared end.
        """
        context, told = self._context, {"attempt": gang.attempt, "restart": outcome.restart, "gang": gang.name}
        told |= {"nnodes": gang.nnodes, "to": outcome.enough}
        context.ledger.append("grown", **told)
        context.record.log.append("gang_grows", **told, last_step=outcome.step)
        print(
            f"argosy: gang {gang.name} is made anew with {outcome.enough} nodes at step {outcome.step}", file=sys.stderr
        )
        self._gangs.delete(gang, f"grows from {gang.nnodes} to {outcome.enough} nodes")
        context.host.end_probe(gang.name)
        self._avoid, self._enough = "", outcome.enough
        return None if context.commits.reached_end() is None else self._conclude(None)

    def _left_undone(self) -> Pending | None:
        """What a supervisor before us decided and did not live to do; the gang's pods can be told again."""
        left = pending(self._context.ledger)
        if left is not None:
            names = frozenset(state.name for state in self._context.host.pods(left.gang.name))
            self._context.channel.expect(left.gang.name, names, left.outcome.restart)
            print(f"argosy: going on with: {left.decision.action}: {left.decision.reason}", file=sys.stderr)
        return left

    # After a restart.

    def _conclude(self, gang: SupervisedGang | None, uncommitted: Sequence[str] = ()) -> int | Verdict:
        """Exit code 0 if the declared end is reached and verified; otherwise why it is not."""
        context = self._context
        found = context.commits.reached_end()
        if found is None:
            return _failed(Cause.FINISHED_WITHOUT_CHECKPOINT, context.commits.missing(uncommitted))
        if gang is not None:
            context.channel.order(Orders(command="exit"))
            await_exit(context, gang)
        try:
            context.commits.verify(found)
        except StepError as error:
            if error.cause != Cause.CHECKPOINT_CORRUPT:
                raise
            self._set_aside(found.digest, str(error))
            return _failed(error.cause, str(error))
        for text in context.faults.left():
            print(f"argosy: {text} never happened: that rank reported no such step", file=sys.stderr)
        context.record.bundled(context.bundles)
        context.ledger.append("finished", digest=found.digest, step=found.step)
        self._gangs.end_all("finished")
        context.record.outputs(found.uri, found.digest, {"cause": "none", "exit_code": 0, "step": found.step})
        context.record.log.append("train_ended", cause="none", exit_code=0, checkpoint_digest=found.digest)
        return int(ExitCode.OK)

    def _settle(self, gang: SupervisedGang, outcome: Outcome) -> Decision:
        """Decide, and write the failure down with the decision: from then on another supervisor would go on from it.

        What comes before may be done twice.
        """
        context, verdict = self._context, outcome.verdict
        assert verdict is not None
        for digest in self._corrupt(outcome, verdict):
            self._set_aside(digest, verdict.quote)
        failure = self._failure(gang, outcome, verdict)
        context.record.bundled(context.bundles)
        decision = decide(failure, context.ledger.failures(), context.settings.limits)
        decision = considered(context, decision, failure)
        context.bundles.begin(gang.name, failure.restart)
        context.record.verdict(gang.name, failure, verdict, decision)
        if failure.cause == Cause.NUMERICS_NAN:
            self._roll_back(failure.step, verdict.since)
        if decision.exclude:
            context.ledger.append("excluded", node=decision.exclude, cause=str(failure.cause))
            context.record.log.append("node_excluded", node=decision.exclude, cause=str(failure.cause))
        context.record.ended(failure, verdict, decision, outcome.endings)
        context.ledger.add_failure(failure, decision, verdict)
        context.faults.after(outcome.endings, context.record.log, context.commits.flip_byte)
        say = f"{verdict.cause} at step {outcome.step}: {verdict.quote}; {decision.action}: {decision.reason}"
        ended = f" (exit code {int(decision.exit_code)})" if decision.action == "stop" else ""  # what diagnose reads
        print(f"argosy: {say}{ended}", file=sys.stderr)
        return decision

    def _set_last_saves_aside(self, verdict: Verdict) -> None:
        """Ranks that were alive when their loss was no number may have saved it while they were stopped."""
        if verdict.since:
            self._roll_back(verdict.step, verdict.since)

    def _roll_back(self, step: int, since: float) -> None:
        for digest in self._context.commits.spoiled(step, since):
            self._set_aside(digest, f"rolled back before step {step}")

    def _set_aside(self, digest: str, reason: str) -> None:
        self._context.commits.quarantine(digest, reason)
        self._context.record.log.append("set_aside", digest=digest, reason=reason)

    def _corrupt(self, outcome: Outcome, verdict: Verdict) -> tuple[str, ...]:
        """Checkpoints that a rank could not load: named by launch, by the rank's own line, or else the one resumed."""
        if outcome.corrupt or verdict.cause != Cause.CHECKPOINT_CORRUPT:
            return outcome.corrupt
        named = re.search(r"digest=([0-9a-f]{64})", verdict.quote)
        restart = self._context.ledger.last("restart")
        found = named[1] if named else restart["resume_digest"] if restart else ""
        return (found,) if found else ()

    def _failure(self, gang: SupervisedGang, outcome: Outcome, verdict: Verdict) -> Failure:
        mapped = None if verdict.signal is not None else self._context.settings.code_map.get(verdict.code or 0)
        return Failure(
            cause=verdict.cause,
            exit_code=verdict.exit_code if mapped is None else mapped,
            quote=verdict.quote,
            time=time.time(),
            attempt=gang.attempt,
            restart=outcome.restart,
            step=verdict.step if verdict.since else outcome.step,
            steps=outcome.steps,
            unread=outcome.unread,
            **self._context.commits.reached(spoiled=verdict.since),
            node=verdict.node,
            rank=-1 if verdict.rank is None else verdict.rank,
            mapped=mapped is not None,
        )

    def _prepare(self, gang: SupervisedGang, outcome: Outcome, decision: Decision) -> SupervisedGang | None:
        """Stop the ranks and pause; the gang when its pods can run the next restart, else None."""
        context, verdict = self._context, outcome.verdict
        assert verdict is not None
        context.channel.order(Orders(command="stop", root=_told(verdict)))
        if decision.skip and "{}-{}".format(*decision.skip) not in context.ledger.skipped().split():
            # After the decision: what was passed over already is no remedy, for whoever has to decide it again.
            told = dict(zip(("first", "last"), decision.skip, strict=True))
            context.ledger.append("skipped", **told)
            context.record.log.append("skipped", **told)
        self._avoid, self._enough = decision.avoid, outcome.enough
        replace_gang = bool(decision.exclude or decision.avoid) or Trait.NEW_PODS in verdict.cause.traits
        leaves_spot = self._gangs.leaves_spot() and not gang.on_demand
        if context.manifest.spares and not leaves_spot:
            kept = have_refilled(context, gang, outcome.restart, decision, verdict.cause)
        else:
            kept = have_stopped(context, gang, outcome.restart, hasty=replace_gang) and not replace_gang
        if not kept:
            self._gangs.delete(gang, decision.reason)
            context.record.bundled(context.bundles)
        self._ended = frozenset(state.name for state in context.host.pods(gang.name) if state.has_ended)
        self._set_last_saves_aside(verdict)
        until = time.monotonic() + decision.pause * random.uniform(0.5, 1.0)
        while (left := until - time.monotonic()) > 0:
            context.pause(min(left, 1.0))
        return gang if kept else None

    # Ends without success.

    def _give_up(self, gang: SupervisedGang, verdict: Verdict, decision: Decision) -> int:
        context = self._context
        context.channel.order(Orders(command="exit", exit_code=decision.exit_code, root=_told(verdict)))
        await_exit(context, gang)
        self._gangs.delete(gang, decision.reason)
        context.record.bundled(context.bundles)
        self._set_last_saves_aside(verdict)
        context.record.log.append("train_ended", cause=str(verdict.cause), exit_code=decision.exit_code)
        context.record.gave_up(replace(verdict, exit_code=decision.exit_code))
        # Last: whoever comes after this entry was started by a person who wants it tried again.
        context.ledger.append("ended", exit_code=decision.exit_code, cause=str(verdict.cause))
        return decision.exit_code

    def _stopped(self) -> int:
        step = self._context.channel.step or (self._context.ledger.last("restart") or {}).get("resume_step", 0)
        if self._context.host.evicted():
            quote = "the supervisor's pod is taken from its node; the gang trains on, for the next supervisor"
            print(f"argosy: {quote}", file=sys.stderr, flush=True)
            verdict = Verdict(cause=Cause.PREEMPTED_EVICTED, exit_code=int(ExitCode.PREEMPTED), quote=quote, step=step)
            self._context.record.gave_up(verdict)
            return verdict.exit_code
        quote = "the supervisor got SIGTERM"
        verdict = Verdict(cause=Cause.SIGTERM, exit_code=int(ExitCode.PREEMPTED), quote=quote, step=step)
        print(f"argosy: stopped: {verdict.quote}", file=sys.stderr, flush=True)
        try:
            self._gangs.end_all("stopped from outside")
        except StepError as error:
            if error.cause not in UNSERVED:
                raise
            print(f"argosy: {UNWRITTEN}", file=sys.stderr, flush=True)
        self._context.record.log.append("train_ended", cause=str(verdict.cause), exit_code=verdict.exit_code)
        self._context.record.gave_up(verdict)
        return verdict.exit_code

    def _lose(self, error: StepError) -> None:
        """Something ended the supervisor itself; a later supervisor of this workflow takes the gang over."""
        context = self._context
        try:
            if error.cause != Cause.FENCED:
                self._gangs.end_all(str(error.cause))
            elif context.ledger.owner != context.settings.args.workflow_uid:
                # The run belongs to another workflow, which knows nothing of our pods.
                for record in context.host.gangs():
                    context.host.delete(record.name, context.settings.args.grace_seconds + COMMIT_SECONDS)
        except StepError as left:  # who may do nothing there any more says all the same what it ended for
            said = UNWRITTEN if left.cause in UNSERVED else f"a gang was left: {left}"
            print(f"argosy: {said}", file=sys.stderr, flush=True)
        context.record.log.append("train_ended", cause=str(error.cause), exit_code=int(error.code))


def _failed(cause: Cause, quote: str) -> Verdict:
    return Verdict(cause=cause, exit_code=int(cause.exit_code), quote=quote)


def _told(verdict: Verdict) -> Trouble:
    return Trouble(cause=verdict.cause, rank=verdict.rank, node=verdict.node, quote=verdict.quote)
