"""Job, CronJob, JobSet, Volcano Job."""

from __future__ import annotations

from typing import Final

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.kinds.reasons import JOB, JOBSET, OWNER, VOLCANO, changed_all
from argosy.workflows.imports.source import Source, count, present
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload


def job(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """A Job: its pods are the nodes."""
    del bundle
    role = workload.roles[0]
    nodes = _job(role, account)
    document = workload.document
    if document.kind == "CronJob":
        why = "a run is started once: argo cron with the compiled workflow, or a Sensor, starts it again"
        account.by_hand(document.spec["schedule"], why)
        for key in ("timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "suspend"):
            account.lost(document.spec[key], "of a CronJob's schedule: say it in the CronWorkflow")
        for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
            account.changed(document.spec[key], "finished workflows stay for a week")
        account.lost(document.spec.at("jobTemplate.metadata"), "a run has no labels and annotations of its own")
    if role.completions and role.replicas and role.completions > role.replicas:
        why = f"{role.completions} completions by {role.replicas} pods at once is a queue of tasks, not a gang"
        raise InputError(f"{document.kind} {document.name!r} (line {role.replicas_node.line}): {why}; keep the Job")
    return Source(workload, [role], (nodes, nodes))


def jobset(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """The replicated job with the GPUs trains, else the largest; the others have no place in a gang."""
    del bundle
    roles = present(workload.roles, account)
    if not roles:
        raise InputError(f"JobSet {workload.document.name!r}: spec.replicatedJobs has no pods, so nothing trains")
    same = [role for role in roles if role.pod.main is not None and _alike(role, roles[0])]
    for role in roles:
        if role not in same:
            account.lost(role.node, f"a gang has nodes of one kind: replicated job {role.name!r} has no place in it")
    nodes = 0
    for role in same:
        nodes += _job(role, account)
        account.changed(role.node["name"], "a gang is one Job with a pod per node")
        account.changed(role.node["groupName"], "a gang is one Job with a pod per node")
        account.changed(role.node["dependsOn"], "a gang starts all at once")
        account.changed(role.node["replicas"], "a gang is one Job with a pod per node", "gang.nnodes")
        account.lost(role.node.at("template.metadata"), "a gang's Job has argosy's own labels")
    changed_all(account, workload.spec, JOBSET)
    return Source(workload, same, (nodes, nodes))


def _alike(one: Role, other: Role) -> bool:
    """Whether both do the same work: the same GPUs and the same image."""
    left, right = one.pod.main, other.pod.main
    return (
        left is not None
        and right is not None
        and one.pod.gpus == other.pod.gpus
        and (left.image.text == right.image.text)
    )


_TRAIN_NOTHING: Final = ("mpimaster", "launcher", "ps", "scheduler", "evaluator")
"""Tasks that hold parameters, or start and judge what others train: no ranks."""


def volcano(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Tasks are nodes: a master is a rank like the others."""
    del bundle
    roles = present(workload.roles, account)
    with_gpus = [role for role in roles if role.pod.gpus != 0]
    training = with_gpus or [role for role in roles if role.name not in _TRAIN_NOTHING] or roles
    if not training:
        raise InputError(f"Volcano Job {workload.document.name!r}: spec.tasks has no pods, so nothing trains")
    # mpimaster runs mpirun, mpiworker runs sshd: https://volcano.sh/en/docs/user-guide/how_to_use_mpi_plugin/
    starts = next((role for role in roles if role not in training and "mpi" in role.name), None)
    for role in roles:
        if role is starts:
            account.changed(role.node, "no launcher pod: argosy starts the ranks, without ssh")
        elif role not in training:
            account.lost(role.node, f"a gang has nodes of one kind: task {role.name!r} has no place in it")
    for role in training:
        account.changed(role.node["name"], "a gang's nodes are node-0, node-1, …")
        for key in ("policies", "maxRetry", "minAvailable", "dependsOn", "partitionPolicy", "topologyPolicy"):
            account.changed(role.node[key], OWNER if key in ("policies", "maxRetry") else "a gang starts all at once")
    changed_all(account, workload.spec, VOLCANO)
    nodes = sum(count(role, account) for role in training)
    return Source(workload, training, (nodes, nodes), starts=starts)


def _job(role: Role, account: Account) -> int:
    changed_all(account, role.job, JOB)
    account.number(role.job["completions"], "gang.nnodes")
    return count(role, account)
