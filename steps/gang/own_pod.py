"""The supervisor's own pod, as its cluster sees it."""

from __future__ import annotations

import os

from argosy.steps.cluster.api import Api, ApiError
from argosy.steps.cluster.containers import condition
from argosy.steps.cluster.kinds import EVENT, POD
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.objects import ROLE_LABEL, WORKFLOW_LABEL

NODE_ID = "workflows.argoproj.io/node-id"
SECONDS = 5.0
"""How long it is asked for: the gang's time to save begins after the answer."""
_EVICTED = ("Evicted", "Preempting")
"""Reasons of a kubelet: too little memory or disk; room for a critical pod."""


def is_evicted(api: Api, workflow: str) -> bool:
    """Whether it is taken from its node: drained, preempted, tainted, or evicted by the node itself, which lacks
    memory, disk, or room for a critical pod.

    ``argo stop``, and who deletes the Workflow or the pod, leave no such word. The pod is found by Argo's id of its
    node: a host name is cut after 63 letters.
    """
    own = os.environ.get("ARGO_NODE_ID", "")
    try:
        found = api.list(POD, selector=f"{WORKFLOW_LABEL}={workflow},{ROLE_LABEL}=supervisor", patience=SECONDS)
        pods = [pod for pod in found["items"] if (pod["metadata"].get("annotations") or {}).get(NODE_ID) == own]
        if not own or not pods:
            return False
        if condition(pods[0].get("status", {}), "DisruptionTarget").get("status") == "True":
            return True
        # Of its own evictions a kubelet writes the condition once the pod has ended; the event comes first.
        events = api.list(EVENT, fields=f"involvedObject.uid={pods[0]['metadata']['uid']}", patience=SECONDS)
        return any(each.get("reason") in _EVICTED for each in events["items"])
    except (ApiError, StepError):
        return False
