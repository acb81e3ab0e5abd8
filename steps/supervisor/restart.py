"""One restart of a gang: all nodes check in, ranks are assigned, the restart is watched until it ends."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment, CheckIn, Ending
from argosy.steps.gang.host import PodState
from argosy.steps.supervisor.context import Context, Gang
from argosy.steps.supervisor.watch import GATHER_SECONDS, Watch
from argosy.steps.verdict import PodFact, Verdict, judge

TICK_SECONDS = 0.2
HOST_SECONDS = 0.5
"""How often the host is asked for the pods."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a restart ended: ``verdict`` None means that every rank ended well."""

    restart: int
    verdict: Verdict | None
    step: int = 0
    steps: int = 0
    endings: tuple[Ending, ...] = ()
    corrupt: tuple[str, ...] = ()


class Restart:
    """Restart number ``number`` of ``gang``."""

    def __init__(self, context: Context, gang: Gang, number: int) -> None:
        self._context = context
        self._gang = gang
        self._number = number
        self._asked_at = 0.0
        self._states: list[PodState] = []

    def run(self) -> Outcome:
        """From the check-in to the end.

        Raises:
            Stopped: SIGTERM arrived.
            StepError: the store or the host failed for good.
        """
        found = self._gather()
        if isinstance(found, Verdict):
            return Outcome(restart=self._number, verdict=found)
        entry = self._begin(found)
        self._assign(entry)
        return self._watch(entry)

    def adopt(self, entry: Mapping[str, Any]) -> Outcome:
        """Go on with a restart that a supervisor before us began; its ledger entry is ``entry``."""
        self._context.channel.expect(self._gang.name, frozenset(entry["pods"]), self._number)
        self._assign(entry, released=False)
        return self._watch(entry, adopted=True)

    # Check-in.

    def _gather(self) -> dict[str, CheckIn] | Verdict:
        """Check-ins of all pods, or why they never came."""
        context, began, known = self._context, time.monotonic(), set[str]()
        self._pods(now=True)
        context.channel.expect(self._gang.name, frozenset(state.name for state in self._states), self._number)
        while True:
            ready = {
                name: message
                for name, message in context.channel.check_ins().items()
                if message.last_restart < self._number
            }
            missing = [state for state in self._states if state.name not in ready]
            for name in sorted(set(ready) - known):
                known.add(name)
                self._checked_in(ready[name], missing)
            if not missing:
                return ready
            self._pods()
            if any(state.has_ended for state in self._states):
                return self._ended_early()
            if time.monotonic() - began > context.settings.args.check_in_timeout_seconds:
                return self._never_came(missing)
            context.pause(TICK_SECONDS)

    def _checked_in(self, message: CheckIn, missing: list[PodState]) -> None:
        self._context.record.log.append(
            "checked_in",
            attempt=self._gang.attempt,
            node=message.node,
            pod=message.pod,
            missing=[state.node or state.name for state in missing],
        )

    def _never_came(self, missing: list[PodState]) -> Verdict:
        seconds = self._context.settings.args.check_in_timeout_seconds
        who = ", ".join(f"{state.node or 'no node'} (pod {state.name}, {state.phase})" for state in missing)
        first = missing[0]
        error = {
            "cause": str(Cause.RENDEZVOUS_TIMEOUT),
            "quote": f"not all nodes checked in within {seconds} s; missing: {who}",
            "node": first.node,
            "pod": first.name,
        }
        return judge([], [error], [self._fact(state) for state in missing if state.reason])

    def _ended_early(self) -> Verdict:
        """A pod ended before the restart began; it may have said why on the channel."""
        context = self._context
        watch = Watch(self._states, context.nproc, 0, time.monotonic())
        for report in context.record.kept(self._gang.name, self._number):
            watch.feed(report, time.monotonic())
        return watch.verdict(time.monotonic(), context.settings.timeouts)

    @staticmethod
    def _fact(state: PodState) -> PodFact:
        return PodFact(name=state.name, node=state.node, phase=state.phase, reason=state.reason, message=state.message)

    # Assignment.

    def _begin(self, ready: Mapping[str, CheckIn]) -> dict[str, Any]:
        """Claim a generation, choose the checkpoint, and write down what everybody will be told."""
        context, gang = self._context, self._gang
        order = sorted(ready.values(), key=lambda message: message.pod_index)
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
            "tells_steps": context.ledger.tells_steps(),
            "master_addr": order[0].address,
            "master_port": order[0].free_port,
            "pods": {message.pod: rank for rank, message in enumerate(order)},
        }
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
        context.record.log.flush()
        return entry

    def _assign(self, entry: Mapping[str, Any], *, released: bool = True) -> None:
        context, args = self._context, self._context.settings.args
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
                    tells_steps=bool(entry.get("tells_steps")),
                    run_id=args.effective_run_id,
                    workflow=args.workflow,
                    dataset_digest=args.dataset_digest,
                    args=context.settings.script_args,
                    fault=context.faults.for_node(rank),
                )
                for pod, rank in entry["pods"].items()
            },
            released=released,
        )

    # Watch.

    def _watch(self, entry: Mapping[str, Any], *, adopted: bool = False) -> Outcome:
        context = self._context
        self._pods(now=True)
        watch = Watch(self._states, context.nproc, entry["resume_step"], time.monotonic())
        if adopted:
            for report in context.record.kept(self._gang.name, self._number):
                watch.feed(report, time.monotonic())
        trouble_at: float | None = None
        while not watch.is_finished:
            self._feed(watch)
            now = time.monotonic()
            if trouble_at is None and watch.has_trouble(now, context.settings.timeouts):
                trouble_at = now
            if trouble_at is not None and watch.has_gathered(now, trouble_at, context.settings.timeouts):
                break
            context.pause(TICK_SECONDS if trouble_at is None else min(TICK_SECONDS, GATHER_SECONDS / 10))
        return self._outcome(watch)

    def _feed(self, watch: Watch) -> None:
        context, now = self._context, time.monotonic()
        for report in context.channel.drain():
            if report.restart == self._number:  # the last words of the restart before come late
                watch.feed(report, now)
            context.record.report(report, self._gang.attempt)
            for event in report.events:
                if event.get("kind") == "injected":
                    context.faults.said(event, context.record.log)
        for pod, message in context.channel.check_ins().items():
            if message.last_restart >= self._number:
                watch.see_strangeness(pod)
        self._pods()
        watch.see_pods(self._states)
        context.faults.at_step(watch.step, context.record.log)

    def _outcome(self, watch: Watch) -> Outcome:
        now, timeouts = time.monotonic(), self._context.settings.timeouts
        finished = watch.is_finished
        return Outcome(
            restart=self._number,
            verdict=None if finished else watch.verdict(now, timeouts),
            step=watch.step,
            steps=watch.steps_done,
            endings=tuple(watch.endings()),
            corrupt=tuple(sorted(watch.corrupt_digests)),
        )

    def _pods(self, *, now: bool = False) -> None:
        if now or time.monotonic() - self._asked_at >= HOST_SECONDS:
            self._states = self._context.host.pods(self._gang.name)
            self._asked_at = time.monotonic()
