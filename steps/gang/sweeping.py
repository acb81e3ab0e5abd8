"""The last look: what is left of a workflow's gangs when the workflow has ended, whoever should have deleted it."""

from __future__ import annotations

from argosy.steps.cluster.api import Api, ApiError
from argosy.steps.cluster.kinds import POD_GROUPS, SERVICE
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.objects import UID_LABEL, channel_name
from argosy.steps.gang.runtimes import RUNTIMES

_PATIENCE = 30.0


def sweep_gangs(api: Api, workflow_uid: str) -> list[str]:
    """Delete the workflow's gangs, and its Service; ``Kind NAME`` of each gang.

    A kind that is not served, or not ours to list, is none.
    """
    swept = []
    holders = [runtime.holder for runtime in RUNTIMES if runtime.holder is not None]
    for kind in (*(runtime.kind for runtime in RUNTIMES), *holders, *POD_GROUPS):
        try:
            found = api.list(kind, selector=f"{UID_LABEL}={workflow_uid}", patience=_PATIENCE)["items"]
        except (ApiError, StepError):
            continue
        for each in found:
            if each["metadata"].get("ownerReferences", [{}])[0].get("kind") == "Workflow":  # a JobSet's Jobs go with it
                api.delete(kind, each["metadata"]["name"], patience=_PATIENCE)
                swept.append(f"{kind.kind} {each['metadata']['name']}")
    # It counts for a quota; the rest of the channel goes with the workflow, so that nobody may delete Secrets, or the
    # namespace's policies.
    api.delete(SERVICE, channel_name(workflow_uid), patience=_PATIENCE)
    return swept
