"""Job, JobSet, Volcano Job."""

from __future__ import annotations

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.source import Source, count
from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.workload import Role, Workload

_OWNER = "argosy's supervisor owns restarts: see [retry]"
_JOB_FIELDS = {
    "completionMode": "every pod of a gang has its index",
    "backoffLimit": _OWNER,
    "backoffLimitPerIndex": _OWNER,
    "maxFailedIndexes": _OWNER,
    "podFailurePolicy": "argosy judges every failure by its cause: see [retry] exit_codes for the script's own codes",
    "podReplacementPolicy": "a new gang starts only when the old one's pods are gone",
    "successPolicy": "a run has succeeded when every rank ended well and a verified checkpoint reached its end",
    "ttlSecondsAfterFinished": "the workflow and its gang are cleaned up by argosy",
    "suspend": "Argo starts the workflow when it is submitted",
    "manualSelector": "the gang's pods are found by argosy's labels",
    "selector": "the gang's pods are found by argosy's labels",
}


def job(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """A Job: its pods are the nodes."""
    del bundle
    role = workload.roles[0]
    nodes = _job(role, account)
    return Source(workload, [role], (nodes, nodes))


def jobset(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """The replicated job with the GPUs trains, else the largest; the others have no place in a gang."""
    del bundle
    if not workload.roles:
        raise InputError(f"JobSet {workload.document.name!r}: spec.replicatedJobs is empty")
    training = max(workload.roles, key=lambda role: ((role.pod.gpus or 0) > 0, role.replicas or 0))
    for role in workload.roles:
        if role is not training:
            account.lost(role.node, "a gang has nodes of one kind: this replicated job has no place in it")
    nodes = _job(training, account)
    account.known(training.node["name"])
    _change(account, training.node["replicas"], "a gang is one Job with a pod per node", "gang.nnodes")
    spec = workload.spec
    reasons = {
        "failurePolicy": _OWNER,
        "successPolicy": "a run has succeeded when every rank ended well and a verified checkpoint reached its end",
        "network": "argosy's gang has DNS names and publishes not-ready addresses",
        "startupPolicy": "a gang starts all at once",
        "suspend": "Argo starts the workflow when it is submitted",
        "ttlSecondsAfterFinished": "the workflow and its gang are cleaned up by argosy",
        "coordinator": "ranks meet over argosy's channel",
        "managedBy": "the supervisor owns the gang",
    }
    for key, why in reasons.items():
        _change(account, spec[key], why)
    return Source(workload, [training], (nodes, nodes))


def volcano(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Tasks are nodes: a master is a rank like the others."""
    del bundle
    if not workload.roles:
        raise InputError(f"Volcano Job {workload.document.name!r}: spec.tasks is empty")
    with_gpus = [role for role in workload.roles if role.pod.gpus]
    training = with_gpus or workload.roles
    for role in workload.roles:
        if role not in training:
            account.lost(role.node, "a gang has nodes of one kind: this task has no place in it")
    for role in training:
        account.known(role.node["name"])
        for key in ("policies", "maxRetry", "minAvailable", "dependsOn"):
            _change(account, role.node[key], _OWNER)
    spec = workload.spec
    for key in ("policies", "maxRetry"):
        _change(account, spec[key], _OWNER)
    for key in ("plugins", "minSuccess", "ttlSecondsAfterFinished"):
        _change(account, spec[key], "argosy's gang has names, ranks and an end of its own")
    for key in ("minAvailable", "queue", "networkTopology", "schedulerName"):
        if spec[key]:
            account.lost(spec[key], "gang.placement is none for now: nodes are waited for by the channel")
    nodes = sum(count(role, account) for role in training)
    return Source(workload, training, (nodes, nodes))


def _job(role: Role, account: Account) -> int:
    for key, why in _JOB_FIELDS.items():
        _change(account, role.job[key], why)
    account.kept(role.job["completions"], "gang.nnodes")
    return count(role, account)


def _change(account: Account, node: Node, why: str, into: str = "") -> None:
    if node.exists:
        account.changed(node, why, into)
