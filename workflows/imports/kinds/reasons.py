"""Why argosy does otherwise what a kind's policy says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from argosy.workflows.imports.account import Account
from argosy.workflows.manifests.node import Node

OWNER: Final = "argosy's supervisor owns restarts: see [retry]"
CLEANED: Final = "the workflow and its gang are cleaned up by argosy"
SUBMITTED: Final = "Argo starts the workflow when it is submitted"
OWNED: Final = "the supervisor owns the gang"
MEET: Final = "ranks meet over argosy's channel"
ENDED: Final = "a run has succeeded when every rank ended well and a verified checkpoint reached its end"

_COMMON: Final = {"suspend": SUBMITTED, "ttlSecondsAfterFinished": CLEANED, "managedBy": OWNED, "backoffLimit": OWNER}
JOB: Final[Mapping[str, str]] = {
    **_COMMON,
    "completionMode": "every pod of a gang has its index",
    "backoffLimitPerIndex": OWNER,
    "maxFailedIndexes": OWNER,
    "podFailurePolicy": "argosy judges every failure by its cause: see [retry] exit_codes for the script's own codes",
    "podReplacementPolicy": "a new gang starts only when the old one's pods are gone",
    "successPolicy": ENDED,
    "manualSelector": "the gang's pods are found by argosy's labels",
    "selector": "the gang's pods are found by argosy's labels",
}
JOBSET: Final[Mapping[str, str]] = {
    **_COMMON,
    "failurePolicy": OWNER,
    "successPolicy": ENDED,
    "network": "argosy's gang has DNS names and publishes not-ready addresses",
    "startupPolicy": "a gang starts all at once",
    "coordinator": MEET,
}
RUN_POLICY: Final[Mapping[str, str]] = {
    **_COMMON,
    "cleanPodPolicy": "the supervisor deletes the gang when it ends; logs are kept in the run's store",
}
VOLCANO: Final[Mapping[str, str]] = {
    **_COMMON,
    "policies": OWNER,
    "maxRetry": OWNER,
    "plugins": "argosy's gang has names, ranks and ssh-free starts of its own",
    "minSuccess": ENDED,
    "runningEstimate": "Argo has no use for it",
}
RAY: Final[Mapping[str, str]] = {
    **_COMMON,
    "shutdownAfterJobFinishes": OWNED,
    "deletionStrategy": OWNED,
    "submissionMode": "the nodes run the entrypoint themselves",
    "submitterPodTemplate": "the nodes run the entrypoint themselves",
    "submitterConfig": "the nodes run the entrypoint themselves",
    "entrypointNumCpus": "the nodes run the entrypoint themselves",
    "entrypointNumGpus": "the nodes run the entrypoint themselves",
    "jobId": "a run's id is given when it is submitted",
    "clusterSelector": "no Ray is started",
}


def changed_all(account: Account, place: Node, reasons: Mapping[str, str]) -> None:
    """Say of each of these fields why argosy does it otherwise."""
    for key, why in reasons.items():
        account.changed(place[key], why)
