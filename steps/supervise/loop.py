"""Gang after gang of a user's own until one succeeds or a rule stops it. What is known is kept in memory."""

from __future__ import annotations

import random
import re
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from queue import Empty, SimpleQueue

from argosy.steps.cluster.api import Api, ApiError
from argosy.steps.cluster.containers import main_container
from argosy.steps.contract.arguments import SuperviseArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.objects import UID_LABEL, WORKFLOW_LABEL
from argosy.steps.gang.channel_objects import Owner
from argosy.steps.gang.host import PodState
from argosy.steps.gang.kubernetes import KubernetesHost
from argosy.steps.gang.manifest import GangManifest
from argosy.steps.gang.runtimes import job_specs
from argosy.steps.supervise.evidence import failed, verdict_of
from argosy.steps.supervise.manifest import NAME_CHARACTERS, rendered
from argosy.steps.supervise.rank_logs import RankLogs
from argosy.steps.supervisor.budget import Decision, Failure, Limits, decide
from argosy.steps.supervisor.placing import QUIET_SECONDS, STUCK, STUCK_SECONDS, PlacementClock, Refusal, cannot_begin
from argosy.steps.verdict import PodFact, Verdict, judge

TICK_SECONDS = 0.3
GATHER_SECONDS = 3.0
"""After the first failure: for the ends of the other pods, of which one may be the root."""


_OF_CHECKPOINTS = re.compile(r" (since the last|without a new|and no new) checkpoint( in between)?")


class Stopped(Exception):
    """A signal arrived."""


def say(text: str) -> None:
    """One line of progress."""
    print(f"argosy: {text}", file=sys.stderr, flush=True)


class Loop:
    """Supervise one gang; ``name`` is the user's."""

    def __init__(
        self, api: Api, host: KubernetesHost, owner: Owner, manifest: GangManifest, name: str, args: SuperviseArgs
    ) -> None:
        self._api, self._host, self._owner, self._manifest, self._args = api, host, owner, manifest, args
        self._base = name[:NAME_CHARACTERS].strip("-.").replace(".", "-")
        self._failures: list[Failure] = []
        self._excluded: set[str] = set()
        self._avoid = ""
        self._told = ""
        self._signals = SimpleQueue[int]()
        specs = [job["template"]["spec"] for _, job in job_specs(manifest.workload)]
        self._grace = max(float(each.get("terminationGracePeriodSeconds") or 30) for each in specs)
        # argo logs shows containers called main of pods that carry the workflow's name; else we print them.
        self._prints = not owner.name or any("main" not in [c["name"] for c in each["containers"]] for each in specs)
        self._limits = Limits(
            max_same_failure=args.max_same_failure,
            max_restarts=args.max_restarts,
            max_preemptions=args.max_preemptions,
            backoff_seconds=args.backoff_seconds,
            backoff_cap_seconds=args.backoff_cap_seconds,
        )

    def stop(self, number: int) -> None:
        """A signal arrived: for its handler, which may interrupt :meth:`pause`, where an Event would hold its lock."""
        self._signals.put(number)

    def pause(self, seconds: float) -> None:
        """Wait. Raises: Stopped: a signal arrived, now or before."""
        try:
            self._signals.get(timeout=seconds)
        except Empty:
            return
        raise Stopped

    def run(self) -> tuple[int, Verdict | None]:
        """The exit code, and why it is not 0.

        Raises:
            InputError: the cluster cannot make sense of the documents; nothing was created.
            StepError: it refuses them, or stays away.
            Stopped: a signal arrived; the gang is gone.
        """
        for record in self._host.gangs():
            if re.fullmatch(rf"{re.escape(self._base)}-[0-9a-f]{{6}}-a\d+", record.name):
                say(f"gang {record.name} of a supervisor before this one is deleted")
                self._host.delete(record.name, self._grace)
        attempt, own = 1, secrets.token_hex(3)
        while True:
            verdict = self._attempt(f"{self._base}-{own}-a{attempt}", attempt)
            if verdict is None:
                return int(ExitCode.OK), None
            decision = self._decide(verdict, attempt)
            say(f"{decision.action}: {decision.reason}")
            if decision.action == "stop":
                return decision.exit_code, verdict
            self.pause(decision.pause * random.uniform(0.5, 1.0))
            attempt += 1

    def _attempt(self, name: str, attempt: int) -> Verdict | None:
        """One gang from its creation to its deletion; None when it succeeded."""
        labels = {UID_LABEL: self._owner.uid, **({WORKFLOW_LABEL: self._owner.name} if self._owner.name else {})}
        excluded = tuple(sorted({*self._excluded, *filter(None, [self._avoid])}))
        documents = rendered(self._manifest, name, attempt, excluded, labels)
        if attempt == 1:
            for document in documents:
                self._dry_run(document)
        without = f", not on {', '.join(excluded)}" if excluded else ""
        say(f"attempt {attempt}: {self._manifest.workload['kind']} {name}, {self._manifest.nnodes} pods{without}")
        logs = RankLogs(self._api, name)
        try:
            self._host.put(documents)
            verdict = self._placed(name, logs)
            if verdict is None:
                verdict = self._followed(name, logs)
            logs.finish()
            if verdict is not None:
                _tell(verdict)
            return verdict
        finally:
            self._host.delete(name, self._grace)
            say(f"gang {name} is deleted")

    def _dry_run(self, document: dict[str, object]) -> None:
        try:
            self._api.create(document, dry_run=True)
        except ApiError as error:
            if error.status in (400, 422):
                raise InputError(f"gang = {self._args.gang!r}: {error}") from error
            raise

    def _looks(self, name: str, logs: RankLogs) -> Iterator[list[PodState]]:
        while True:
            if self._prints:
                logs.follow(self._host.documents_of(name))
            yield self._host.pods(name)
            self.pause(TICK_SECONDS)

    def _placed(self, name: str, logs: RankLogs) -> Verdict | None:
        """Queued for as long as it holds nothing; then its nodes have to come in time."""
        began, clock = time.monotonic(), PlacementClock(self._args.placement_timeout_seconds)
        refusal = Refusal(clock.limit_seconds)
        staged = any(each.get("dependsOn") for each in self._manifest.workload["spec"].get("replicatedJobs", []))
        for states in self._looks(name, logs):
            standing, now = self._host.standing(name), time.monotonic()
            if self._host.outcome(name) or any(state.has_ended for state in states) or standing.phase == "placed":
                break
            if standing.phase == "lost":
                return judge([], [], [PodFact(name=name, reason="Deleted", message=standing.why)])
            placed = sum(bool(state.node) for state in states)
            text = f"{standing.phase}, {placed} of {self._manifest.nnodes} pods have a node"
            text += f": {standing.why}" if standing.why else ""
            if clock.is_over(standing, now) and not staged:
                return Verdict(cause=Cause.UNSCHEDULABLE, exit_code=int(ExitCode.TRANSIENT), quote=text)
            if now - began > QUIET_SECONDS and text != self._told:
                self._told = text
                say(f"gang {name} is {text}")
            if refusal.is_over(standing, now):
                return refusal.verdict(standing)
        return None

    def _followed(self, name: str, logs: RankLogs) -> Verdict | None:
        failed_at = stuck_at = 0.0
        running = False
        for states in self._looks(name, logs):
            now, outcome = time.monotonic(), self._host.outcome(name)
            if outcome is not None and outcome.succeeded:
                say(f"gang {name} succeeded")
                return None
            if not running and sum(state.phase == "Running" for state in states) == self._manifest.nnodes:
                running = True
                say(f"running on {', '.join(sorted({state.node for state in states}))}")
            lost = self._host.standing(name).phase == "lost"
            failed_at = failed_at or (now if failed(states) or lost or outcome is not None else 0.0)
            if failed_at and (now - failed_at > GATHER_SECONDS or all(state.has_ended for state in states)):
                break
            stuck = [state for state in states if state.reason in STUCK]
            if stuck and not stuck_at:
                say(f"gang {name} is starting: {cannot_begin(stuck).why}")
            stuck_at = (stuck_at or now) if stuck else 0.0
            if stuck_at and now - stuck_at > STUCK_SECONDS:
                return judge([], [], [_fact(state) for state in stuck])
        containers = {pod["metadata"]["name"]: main_container(pod) for pod in self._host.documents_of(name)}
        states, outcome = self._host.pods(name), self._host.outcome(name)
        if not failed(states) and outcome is None:
            return judge([], [], [PodFact(name=name, reason="Deleted", message="the gang was deleted by somebody")])
        return verdict_of(self._api, name, states, containers, outcome)

    def _decide(self, verdict: Verdict, attempt: int) -> Decision:
        failure = Failure(
            cause=verdict.cause,
            exit_code=verdict.exit_code,
            quote=verdict.quote,
            time=time.time(),
            attempt=attempt,
            restart=0,
            step=0,
            steps=0,
            commit_step=-1,
            node=verdict.node,
        )
        decision = decide(failure, self._failures, self._limits)
        # Checkpoints are the user's affair: nobody here knows whether one was made.
        decision = replace(decision, reason=_OF_CHECKPOINTS.sub("", decision.reason))
        if verdict.cause == Cause.USER_EXCEPTION and decision.action == "stop":
            decision = replace(decision, reason="an exception of the script would come again; its steps are not known")
        self._failures.append(failure)
        self._excluded |= {*filter(None, [decision.exclude])}
        self._avoid = decision.avoid
        return decision


def _tell(verdict: Verdict) -> None:
    pod = f" (pod {verdict.pod}{f' on {verdict.node}' if verdict.node else ''})" if verdict.pod else ""
    say(f"{verdict.cause}{pod}: {verdict.quote}")
    for line in verdict.consequences[:3]:
        say(f"  a consequence: {line}")


def _fact(state: PodState) -> PodFact:
    return PodFact(name=state.name, node=state.node, reason=state.reason, message=state.message)
