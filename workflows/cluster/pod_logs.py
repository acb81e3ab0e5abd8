"""What the pods of a Workflow and of its gang write, through the API."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from argosy.steps.cluster.containers import main_container
from argosy.steps.cluster.kinds import POD
from argosy.steps.cluster.logs import LOOK_SECONDS, Reader, container_state
from argosy.steps.cluster.logs import last_lines as container_lines
from argosy.steps.contract.objects import GANG_LABEL

if TYPE_CHECKING:
    from argosy.steps.cluster.api import Api

WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
NODE_ID = "workflows.argoproj.io/node-id"
LEAVING_SECONDS = 10.0
"""After the Workflow's end, for lines that are still on the way."""
QUOTED_LINES = 50
LISTENED_LINES = 500
LISTEN_SECONDS = 5.0
"""A node that is silent holds nobody up who asks how the run stands."""
QUOTE_LENGTH = 500
_ITS_END = re.compile(r"Error: exit status \d+")
"""The executor's last line, of whatever ended."""


def pods_of(api: Api, workflow: str) -> list[dict[str, Any]]:
    """Pods that carry the Workflow's name, those of its gangs included; oldest first."""
    found: list[dict[str, Any]] = api.list(POD, selector=f"{WORKFLOW_LABEL}={workflow}")["items"]
    return sorted(found, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))


def pods_of_steps(api: Api, workflow: str) -> list[dict[str, Any]]:
    """Pods of the Workflow's own steps, without those of its gangs, which may be thousands."""
    found: list[dict[str, Any]] = api.list(POD, selector=f"{WORKFLOW_LABEL}={workflow},!{GANG_LABEL}")["items"]
    return [pod for pod in found if NODE_ID in pod["metadata"].get("annotations", {})]


def written(api: Api, pod: Mapping[str, Any], tail: int | None = None) -> list[str]:
    """The lines that a pod has written so far; none of one that has not started or is gone."""
    found = container_lines(api, pod["metadata"]["name"], main_container(pod), tail)
    return [line for line in found if not _of_argo(line)]


def last_lines(api: Api, pods: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Node id -> the line that its pod's end rests on: our own, else the last one; ``pods``: of steps."""
    found = {}
    for pod in pods:
        node = pod["metadata"]["annotations"][NODE_ID]
        if pod.get("status", {}).get("phase") != "Failed":
            continue
        lines = [line for line in written(api, pod, QUOTED_LINES) if line.strip()]
        # What was asked again was answered, or its last refusal stands below.
        lines = [line for line in lines if not (line.startswith("argosy: ") and "asked again" in line)]
        ours = [line for line in lines if line.startswith("argosy: ")]
        found[node] = (ours or lines or [""])[-1].strip()[:QUOTE_LENGTH]
    return found


def with_supervisors(api: Api, state: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The state, with the last lines of the supervisor that runs, where one may read them; ``pods``: of steps."""
    running = {node["id"] for node in state["nodes"] if (node["templateName"], node["phase"]) == ("train", "Running")}
    lines = {
        node: container_lines(api, pod["metadata"]["name"], main_container(pod), LISTENED_LINES, seconds=LISTEN_SECONDS)
        for pod in pods
        if (node := pod["metadata"]["annotations"][NODE_ID]) in running
    }
    return {**state, "nodes": [{**node, "written": lines.get(node["id"], [])} for node in state["nodes"]]}


def followed(
    api: Api, workflow: str, wanted: Callable[[str], bool], tail: int | None, ended: Callable[[], bool]
) -> Iterator[tuple[str, str]]:
    """(pod, line) as they come, of pods that are there and of those that come, until ``ended`` and all is said.

    After a lost connection no line comes twice.
    """
    lines: queue.Queue[tuple[str, str]] = queue.Queue(maxsize=10_000)
    readers: dict[str, threading.Thread] = {}
    given_up = 0.0
    while True:
        over = ended()
        for pod in pods_of(api, workflow):
            name = pod["metadata"]["name"]
            if wanted(name) and name not in readers and _has_started(pod):
                reader = Reader(api, name, main_container(pod), _Into(lines, name), tail)
                readers[name] = threading.Thread(target=reader.run, daemon=True)
                readers[name].start()
        given_up = given_up or (time.monotonic() + LEAVING_SECONDS if over else 0.0)
        yield from _come(lines, LOOK_SECONDS)
        if over and (not any(each.is_alive() for each in readers.values()) or time.monotonic() > given_up):
            yield from _come(lines, 0.0)
            return


def _come(lines: queue.Queue[tuple[str, str]], seconds: float) -> Iterator[tuple[str, str]]:
    until = time.monotonic() + seconds
    while True:
        try:
            yield lines.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return


class _Into:
    """Where a pod's lines go."""

    def __init__(self, lines: queue.Queue[tuple[str, str]], pod: str) -> None:
        self._lines, self._pod = lines, pod

    def __call__(self, line: str) -> None:
        if not _of_argo(line):
            self._lines.put((self._pod, line))


def _of_argo(line: str) -> bool:
    """Written by the executor around our process; ``argo logs`` leaves these lines out too."""
    return (line.startswith("time=") and " argo=true" in line) or bool(_ITS_END.fullmatch(line))


def _has_started(pod: Mapping[str, Any]) -> bool:
    return bool({"running", "terminated"} & {*container_state(pod, main_container(pod))})
