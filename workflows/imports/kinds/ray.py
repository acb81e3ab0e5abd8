"""RayJob and RayCluster."""

from __future__ import annotations

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.source import Source, count
from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.view.workload import Workload


def ray(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Pods with GPUs are the nodes; the entrypoint is what each of them runs."""
    del bundle
    document = workload.document
    entrypoint = document.spec["entrypoint"]
    if not entrypoint:
        raise InputError(
            f"{document.kind} {document.name!r}: no spec.entrypoint, so nothing says what is trained; name a RayJob"
        )
    roles = [role for role in workload.roles if not role.launcher]
    groups = [role for role in roles if role.name != "head"]
    with_gpus = [role for role in roles if role.pod.gpus]
    training = with_gpus or groups or roles
    for role in roles:
        account.known(role.node["groupName"])
        if role.node["rayStartParams"]:
            account.changed(role.node["rayStartParams"], "no Ray is started: torchrun starts the ranks")
        for key in ("minReplicas", "maxReplicas", "numOfHosts", "scaleStrategy"):
            if role.node[key].exists:
                account.changed(role.node[key], "the gang has a fixed number of nodes", "gang.nnodes")
        if role not in training:
            account.changed(role.node, "no Ray head: torchrun's ranks need none")
    nodes = sum(count(role, account) for role in training)
    cluster = document.spec["rayClusterSpec"]
    for key in ("rayVersion", "enableInTreeAutoscaling", "autoscalerOptions"):
        if cluster[key].exists:
            account.changed(cluster[key], "no Ray is started")
    for key in ("submissionMode", "submitterPodTemplate", "submitterConfig", "entrypointNumCpus", "entrypointNumGpus"):
        if document.spec[key].exists:
            account.changed(document.spec[key], "the nodes run the entrypoint themselves")
    for key in ("shutdownAfterJobFinishes", "ttlSecondsAfterFinished", "suspend", "backoffLimit", "deletionStrategy"):
        if document.spec[key].exists:
            account.changed(document.spec[key], "argosy's supervisor owns the gang's life")
    hint = (
        "the entrypoint runs once on each rank under torchrun, without Ray: a script for ray.train needs its "
        "TorchTrainer taken out (init_process_group with RANK and WORLD_SIZE does its work), or keep the RayJob"
    )
    account.by_hand(document.root["kind"], hint)
    return Source(workload, training, (nodes, nodes), entrypoint=entrypoint)
