"""What a cluster knows of a gang that failed: conditions of its pods, events about them, the state of their nodes, and
what a pod wrote in which argosy never began.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from argosy.steps.cluster.api import Api, ApiError
from argosy.steps.cluster.containers import main_container
from argosy.steps.cluster.kinds import EVENT
from argosy.steps.cluster.logs import last_lines
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.objects import GANG_LABEL
from argosy.steps.gang.host import PodState

_PATIENCE = 3.0
MOST_EVENTS = 500
MOST_NODES = 64
LAST_LINES = 40
WORDS_SECONDS = 10.0
"""How long the pods of one gang may be asked for their logs, all together."""
_TOLD = {*ExitCode} - {ExitCode.USAGE}
"""Who ends with one of these has told the supervisor why; Python, too, ends with 2."""


class LastWords:
    """Asks for the log of a pod that failed and left no word: an image without argosy, or with another one."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._heard: dict[str, str] = {}
        self._spent: dict[str, float] = {}
        """Seconds, by gang: the supervisor waits, and a thousand pods fail alike."""

    def of(self, state: PodState, pod: Mapping[str, Any]) -> PodState:
        """The state with what it wrote last; each pod is asked once."""
        explained = state.reason or state.message or state.signal is not None or state.exit_code in _TOLD
        if state.phase != "Failed" or explained:
            return state
        if state.name not in self._heard:
            began, gang = time.monotonic(), pod["metadata"].get("labels", {}).get(GANG_LABEL, "")
            left = WORDS_SECONDS - self._spent.get(gang, 0.0)
            self._heard[state.name] = "\n".join(self._asked(state.name, pod, left)) if left > 0 else ""
            self._spent[gang] = self._spent.get(gang, 0.0) + time.monotonic() - began
        return replace(state, log=self._heard[state.name])

    def _asked(self, name: str, pod: Mapping[str, Any], seconds: float) -> list[str]:
        try:
            return last_lines(self._api, name, main_container(pod), LAST_LINES, seconds=seconds)
        except StepError:  # forbidden
            return []


def cluster_evidence(api: Api, name: str, pods: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of gang ``name``; what may not be asked is said to be so."""
    return {"pods": [_pod(each) for each in pods], "events": _events(api, name), "nodes": _nodes(api, pods)}


def _pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": pod["metadata"]["name"],
        "node": pod.get("spec", {}).get("nodeName", ""),
        "deleted": pod["metadata"].get("deletionTimestamp", ""),
        "status": pod.get("status", {}),
    }


def _events(api: Api, name: str) -> list[Any] | str:
    """About the gang and whatever bears its name: its Jobs, its pods."""
    try:
        found = api.list(EVENT, patience=_PATIENCE)["items"]
    except (StepError, ApiError) as error:
        return str(error)
    mine = [each for each in found if str(each.get("involvedObject", {}).get("name", "")).startswith(name)]
    kept = ("type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "eventTime")
    told = [{**{key: each.get(key) for key in kept}, "about": each["involvedObject"].get("name", "")} for each in mine]
    return told[-MOST_EVENTS:]


def _nodes(api: Api, pods: Sequence[Mapping[str, Any]]) -> list[Any] | str:
    """Conditions, taints and whether pods may come; the supervisor's own rights may not reach so far."""
    names = sorted({str(each.get("spec", {}).get("nodeName", "")) for each in pods} - {""})
    found = []
    try:
        for name in names[:MOST_NODES]:
            node = api.read(f"/api/v1/nodes/{name}")
            status, spec = node.get("status", {}), node.get("spec", {})
            told = {"name": name, "unschedulable": spec.get("unschedulable", False), "taints": spec.get("taints", [])}
            found.append({**told, "conditions": status.get("conditions", []), "info": status.get("nodeInfo", {})})
    except (StepError, ApiError) as error:
        return str(error)
    return found
