"""One restart of a gang: all nodes check in, ranks are assigned, the restart is watched until it ends."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import TOLD_PEERS, Assignment, CheckIn, Orders, StandBy
from argosy.steps.contract.trouble import Trouble
from argosy.steps.gang.host import PodState
from argosy.steps.supervisor.absence import ended_early, never_came
from argosy.steps.supervisor.context import Context, SupervisedGang
from argosy.steps.supervisor.growing import Growing
from argosy.steps.supervisor.moving import see_slow_ranks
from argosy.steps.supervisor.outcome import Outcome
from argosy.steps.supervisor.placing import STUCK, STUCK_SECONDS, TICK_SECONDS, Placing, cannot_begin
from argosy.steps.supervisor.seats import as_ranks, keepers, peers, seated
from argosy.steps.supervisor.spares import AGAIN_SECONDS, Attendance, usable
from argosy.steps.supervisor.standstill import is_hang, see_pauses
from argosy.steps.supervisor.watch import GATHER_SECONDS, Watch
from argosy.steps.verdict import Verdict
from argosy.steps.verdict.evidence import load_rules

HOST_SECONDS = 0.5
"""How often the host is asked for the pods."""


class GangRestart:
    """Restart number ``number`` of ``gang``."""

    def __init__(
        self, context: Context, gang: SupervisedGang, number: int, avoid: str = "", ended: Set[str] = frozenset()
    ) -> None:
        """``avoid``: a node that is done without if another pod stands by; ``ended``: pods that had, with the last."""
        self._context = context
        self._gang = gang
        self._number = number
        self._asked_at = 0.0
        self._states: list[PodState] = []
        self._enough = 0
        self._avoid, self._ended = avoid, ended
        self._spares = context.manifest.spares
        self._attendance = Attendance(context, gang, number)

    def run(self) -> Outcome:
        """From the check-in to the end.

        Raises:
            Stopped: SIGTERM arrived.
            StepError: the store or the host failed for good.
        """
        found = self._gather()
        if isinstance(found, Verdict):
            return Outcome(restart=self._number, verdict=found, enough=self._enough)
        entry = self._begin(found)
        self._assign(entry)
        self._context.record.log.flush()
        self._context.record.bundled(self._context.bundles)
        return self._watch(entry)

    def adopt(self, entry: Mapping[str, Any]) -> Outcome:
        """Go on with a restart that a supervisor before us began; its ledger entry is ``entry``."""
        self._pods(now=True)
        there = frozenset(entry["pods"]) | {state.name for state in self._states if self._spares}
        self._context.channel.expect(self._gang.name, there, self._number)
        self._assign(entry, released=False)
        return self._watch(entry, adopted=True)

    # Check-in.

    def _gather(self) -> dict[str, CheckIn] | Verdict:
        """Check-ins of all pods, or why they never came."""
        context, known = self._context, set[str]()
        load_rules()  # pods take longer
        placing = Placing(context, self._gang, lambda: self._expect(now=True))
        found = placing.wait()
        if found is not None:
            self._enough = placing.enough
            return found
        began, stuck_at = context.clock.now(), 0.0
        while True:
            wanted = self._wanted()
            ready = {
                name: message
                for name, message in context.channel.check_ins().items()
                if message.last_restart < self._number and name in wanted
            }
            missing = [state for name, state in wanted.items() if name not in ready]
            for name in sorted(set(ready) - known):
                known.add(name)
                self._checked_in(ready[name], missing)
            # With spares also who was lost in the pause may be missing, and nobody waits for it.
            whole = not missing and len(ready) >= self._gang.nnodes
            if whole or (self._spares and self._attendance.is_enough(ready, missing)):
                return ready
            self._expect()
            ended = any(state.has_ended for state in self._states)
            if ended and not (self._spares and len(self._wanted()) >= self._gang.nnodes):
                early = [state for state in self._states if state.name not in self._ended]
                return ended_early(context, self._gang, self._number, early)
            now = context.clock.now()
            stuck = [state for state in missing if state.reason in STUCK]
            if stuck and not stuck_at:
                placing.say(cannot_begin(stuck), self._states)
            stuck_at = (stuck_at or now) if stuck else 0.0
            if now - began > (limit := context.settings.args.check_in_timeout_seconds):
                return never_came(missing or [each for each in self._states if each.name not in ready], limit)
            if stuck_at and now - stuck_at > STUCK_SECONDS:
                return never_came(stuck, now - began)
            context.pause(TICK_SECONDS)

    def _wanted(self) -> dict[str, PodState]:
        """The pods that the restart waits for, by name; with spares those that could have a rank."""
        if self._spares:
            return usable(self._context, self._gang, self._states, self._avoid)
        return {state.name: state for state in self._states}

    def _expect(self, *, now: bool = False) -> list[PodState]:
        """The pods that are there so far; the channel talks to them, and puts off those that nobody has seen yet."""
        self._pods(now=now)
        names = frozenset(state.name for state in self._states)
        whole = len(names) >= self._gang.nnodes
        self._context.channel.expect(self._gang.name, names, self._number, more=not whole)
        return self._states

    def _checked_in(self, message: CheckIn, missing: list[PodState]) -> None:
        self._context.record.log.append(
            "checked_in",
            attempt=self._gang.attempt,
            node=message.node,
            pod=message.pod,
            missing=[state.node or state.name for state in missing],
        )

    # Assignment.

    def _begin(self, ready: Mapping[str, CheckIn]) -> dict[str, Any]:
        """Claim a generation, choose the checkpoint, and write down what everybody will be told."""
        context, gang = self._context, self._gang
        before = context.ledger.last("restart") or {}
        before = before if before.get("gang") == gang.name else {}
        order = seated(before.get("pods", {}), ready, gang.nnodes if self._spares else len(ready))
        claim = context.commits.claim(f"{gang.name}/{self._number}")
        resume = context.commits.resume()
        entry: dict[str, Any] = {
            "gang": gang.name,
            "attempt": gang.attempt,
            "restart": self._number,
            "generation": claim.generation,
            "log_seq": claim.seq,
            "resume_digest": "" if resume is None else resume.digest,
            "resume_step": 0 if resume is None else resume.step,
            "master_addr": order[0].address,
            "master_port": order[0].free_port,
            "pods": {message.pod: rank for rank, message in enumerate(order)},
            "peers": peers(order) if context.manifest.launcher in TOLD_PEERS else [],
            "keepers": keepers(order),
        }
        if self._spares:
            entry["standing_by"] = sorted(set(ready) - set(entry["pods"]))
            self._attendance.took_over(before, order, self._states)
        context.ledger.append("restart", **entry)
        context.record.log.append(
            "restart_began",
            attempt=gang.attempt,
            restart=self._number,
            generation=claim.generation,
            restored_step=entry["resume_step"],
            restored_digest=entry["resume_digest"],
            skipped=context.commits.skipped(),
        )
        return entry

    def _assign(self, entry: Mapping[str, Any], *, released: bool = True) -> None:
        context, args = self._context, self._context.settings.args
        if self._spares:
            digest, workflow = args.dataset_digest, args.workflow
            context.channel.stand_by(StandBy(nnodes=len(entry["pods"]), workflow=workflow, dataset_digest=digest))
        shared = {
            key: entry[key]
            for key in (
                "restart", "attempt", "generation", "log_seq", "resume_digest", "resume_step", "master_addr",
                "master_port",
            )
        }  # fmt: skip
        context.channel.assign(
            self._number,
            {
                pod: Assignment(
                    **shared,
                    node_rank=rank,
                    nnodes=len(entry["pods"]),
                    run_id=args.effective_run_id,
                    workflow=args.workflow,
                    dataset_digest=args.dataset_digest,
                    args=context.settings.script_args,
                    peers=entry.get("peers", []),
                    keepers=entry.get("keepers", []),
                    from_store=context.faults.corrupted,
                    skip=context.ledger.skipped(),
                    fault=context.faults.for_node(rank, restores=bool(entry["resume_digest"])),
                )
                for pod, rank in entry["pods"].items()
            },
            released=released,
        )

    # Watch.

    def _watch(self, entry: Mapping[str, Any], *, adopted: bool = False) -> Outcome:
        context = self._context
        self._pods(now=True)
        most = context.settings.args.nan_losses
        states, step = as_ranks(self._states, entry["pods"]), entry["resume_step"]
        saves = context.commits.made_by(entry["generation"]) if adopted else ()
        watch = Watch(states, context.nproc, step, context.clock.now(), context.pace, most, saves)
        if adopted:
            for report in context.record.kept(self._gang.name, self._number):
                watch.feed(report, context.clock.now())
        growing = Growing(context, self._gang, context.clock.now())
        more = 0
        try:
            more = self._follow(watch, growing, entry["pods"])
        finally:
            if not more:
                growing.end()
        if not more:
            return self._outcome(watch, entry["pods"])
        grown = Outcome(restart=self._number, verdict=None, enough=more, grow=True)
        return replace(grown, step=watch.step, steps=watch.steps_done)

    def _follow(self, watch: Watch, growing: Growing, seats: Mapping[str, int]) -> int:
        """Until the restart has ended: 0; or could go on with more nodes: how many."""
        context = self._context
        trouble_at: float | None = None
        told = -1
        while not watch.is_finished:
            self._feed(watch, seats)
            now = context.clock.now()
            if (chosen := watch.holder) != told:
                told = chosen
                context.channel.order(Orders(command="continue", commits=told))
            see_pauses(context, self._gang.attempt, self._number, watch, now)
            see_slow_ranks(context, self._gang.attempt, self._number, watch)
            if trouble_at is None and watch.has_trouble(now, context.settings.timeouts):
                if is_hang(context, watch, now):
                    watch.see_hang(now)
                    context.channel.order(Orders(command="continue", root=Trouble(cause=Cause.HANG)))
                trouble_at = now if watch.has_trouble(now, context.settings.timeouts) else None
            if trouble_at is not None and watch.has_gathered(now, trouble_at, context.settings.timeouts):
                break
            if trouble_at is None and (more := growing.look(now)):
                return more
            context.pause(TICK_SECONDS if trouble_at is None else min(TICK_SECONDS, GATHER_SECONDS / 10))
        return 0

    def _feed(self, watch: Watch, seats: Mapping[str, int]) -> None:
        context, now = self._context, self._context.clock.now()
        for report in context.hear(self._gang.attempt):
            if report.restart == self._number:  # the last words of the restart before come late
                watch.feed(report, now)
        for pod, message in context.channel.check_ins().items():
            if message.last_restart >= self._number:
                watch.see_strangeness(pod)
        self._pods()
        watch.see_pods(as_ranks(self._states, seats))
        if self._spares:
            self._attendance.keep(self._states, seats, watch.steps_done > 0 or watch.ran(now) > AGAIN_SECONDS)
        context.faults.due(watch.step, watch.ran(now), context.record.log)

    def _outcome(self, watch: Watch, seats: Mapping[str, int]) -> Outcome:
        verdict = None
        if not watch.is_finished:
            # A pod says at once that SIGTERM ended it; that it was evicted, which the host knows, is younger than our
            # last look.
            self._pods(now=True)
            watch.see_pods(as_ranks(self._states, seats))
        if not watch.is_finished:
            verdict = watch.verdict(self._context.clock.now(), self._context.settings.timeouts)
            # A rank that made no step of its own stands where it was resumed.
            verdict = replace(verdict, step=verdict.step or watch.step)
        return Outcome(
            restart=self._number,
            verdict=verdict,
            step=watch.step,
            steps=watch.steps_done,
            unread=watch.unread,
            endings=tuple(watch.endings()),
            corrupt=tuple(sorted(watch.corrupt_digests)),
            uncommitted=watch.uncommitted,
        )

    def _pods(self, *, now: bool = False) -> None:
        if now or time.monotonic() - self._asked_at >= HOST_SECONDS:
            self._states = self._context.host.pods(self._gang.name)
            self._asked_at = time.monotonic()
