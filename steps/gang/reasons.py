"""What a gang waits for, in the words of whoever makes it wait: the scheduler, Kueue, the Job controller."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.steps.cluster.api import UNHOOKED, Api, ApiError
from argosy.steps.cluster.kinds import EVENT, WORKLOAD
from argosy.steps.contract.errors import StepError
from argosy.steps.gang.runtimes import Runtime

ASK_SECONDS = 20.0
"""How often events and queues are asked; the pods' own conditions come with the watch."""
FIRST_SECONDS = 3.0
"""Before the second question, doubled until somebody says something: a queue looks at a new gang a little later."""
UNMADE_SECONDS = 15.0
"""So long a workload may be without any pod before its controller is doubted."""
_PATIENCE = 5.0
REFUSED = re.compile(rf"Error creating: (?!.*exceeded (\w+ )?quota).*(is forbidden: |denied the request|{UNHOOKED})")
"""The Job controller's word of what an API server says; a quota over several namespaces is a webhook's."""


class Reasons:
    """Asks rarely, and takes no for an answer: an explanation is not worth a failure."""

    def __init__(self, api: Api, runtime: Runtime) -> None:
        self._api, self._runtime = api, runtime
        self._asked_at = 0.0
        self._pause = FIRST_SECONDS
        self._said = ""
        self._first = ("", 0.0)
        self._queued = False

    def why(self, workload: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> str:
        """One line; "" when nobody says anything."""
        conditions = [each for pod in pods for each in pod.get("status", {}).get("conditions") or []]
        waiting = [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]
        if waiting:  # Volcano says of some that there is a node for them, if only the others had one
            return str(min(waiting, key=lambda each: each.get("reason") == "Schedulable").get("message", ""))
        now = time.monotonic()
        if (queued := self._runtime.suspended(workload)) != self._queued:  # what a queue said is over with it
            self._queued, self._said, self._asked_at = queued, "", 0.0
        if now - self._asked_at > self._pause or not self._asked_at:
            self._asked_at = now
            self._said = next(self._told(workload), "") or self._unheard(workload, pods, now)
            self._pause = ASK_SECONDS if self._said else min(2 * self._pause, ASK_SECONDS)
        return self._said

    def _unheard(self, workload: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], now: float) -> str:
        """Nobody says a word of a workload whose controller is not there, nor of pods whose scheduler is not."""
        name, kind = workload["metadata"]["name"], self._runtime.kind.kind
        self._first = self._first if self._first[0] == name else (name, now)
        if now - self._first[1] < UNMADE_SECONDS or self._runtime.suspended(workload):
            return ""
        if not pods:
            by_turns = self._runtime.name == "volcano"  # none before its turn
            return "" if by_turns else f"no pod of {kind} {name} was made: does the controller of {kind}s run?"
        if any(pod.get("spec", {}).get("nodeName") for pod in pods):
            return ""
        scheduler = pods[0].get("spec", {}).get("schedulerName", "default-scheduler")
        queue = ", and is the gang's queue there" * (scheduler == "volcano")
        return f"no scheduler says a word of pod {pods[0]['metadata']['name']}: does {scheduler} run{queue}?"

    def _told(self, workload: Mapping[str, Any]) -> Iterator[str]:
        uid = workload["metadata"]["uid"]
        try:
            if self._runtime.suspended(workload):
                selector = f"kueue.x-k8s.io/job-uid={uid}"
                for admission in self._api.list(WORKLOAD, selector=selector, patience=_PATIENCE)["items"]:
                    for condition in admission.get("status", {}).get("conditions") or []:
                        if condition["type"] == "QuotaReserved" and condition["status"] == "False":
                            yield str(condition.get("message", ""))
            jobs = [each["name"] for each in workload["spec"].get("replicatedJobs", [])]
            name = workload["metadata"]["name"]
            cluster = workload.get("status", {}).get("rayClusterName")  # KubeRay's: of it is said which pod was refused
            for job in [f"{name}-{each}-0" for each in jobs] or [name, *([cluster] if cluster else [])]:
                fields = f"type=Warning,involvedObject.name={job}"
                for event in reversed(self._api.list(EVENT, fields=fields, patience=_PATIENCE)["items"]):
                    # Each try has another name, which is no news.
                    yield re.sub(rf'"{re.escape(name)}-[^"]*"', f'"{name}-*"', str(event.get("message", "")))
        except (StepError, ApiError):
            return
