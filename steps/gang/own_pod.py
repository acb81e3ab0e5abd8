"""The supervisor's own pod, as its cluster sees it."""

from __future__ import annotations

import os

from argosy.steps.cluster.api import Api, ApiError
from argosy.steps.cluster.containers import condition
from argosy.steps.cluster.kinds import POD
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.objects import ROLE_LABEL, WORKFLOW_LABEL

NODE_ID = "workflows.argoproj.io/node-id"
SECONDS = 5.0
"""How long it is asked for: the gang's time to save begins after the answer."""


def is_evicted(api: Api, workflow: str) -> bool:
    """Whether it is taken from its node: drained, preempted, tainted.

    ``argo stop``, and who deletes the Workflow or the pod, leave no such condition. The pod is found by Argo's id of
    its node: a host name is cut after 63 letters.
    """
    own = os.environ.get("ARGO_NODE_ID", "")
    try:
        found = api.list(POD, selector=f"{WORKFLOW_LABEL}={workflow},{ROLE_LABEL}=supervisor", patience=SECONDS)
    except (ApiError, StepError):
        return False
    return bool(own) and any(
        condition(pod.get("status", {}), "DisruptionTarget").get("status") == "True"
        for pod in found["items"]
        if (pod["metadata"].get("annotations") or {}).get(NODE_ID) == own
    )
