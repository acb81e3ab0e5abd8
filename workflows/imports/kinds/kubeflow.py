"""PyTorchJob, TFJob, XGBoostJob, MPIJob."""

from __future__ import annotations

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.source import Source, count
from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.workload import Role, Workload

_OWNER = "argosy's supervisor owns restarts: see [retry]"


def pytorch(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Master and Worker are one gang: rank 0 is a rank like the others."""
    del bundle
    spec = workload.spec
    nodes = _replicas(workload.roles, account)
    ranks = spec["nprocPerNode"]
    elastic = spec["elasticPolicy"]
    low, high = nodes, nodes
    if elastic:
        low, high = elastic["minReplicas"].number or nodes, elastic["maxReplicas"].number or nodes
        for key in ("minReplicas", "maxReplicas"):
            account.kept(elastic[key], "gang.nnodes")
        for key in ("rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId", "rdzvConf", "standalone"):
            _changed(account, elastic[key], "ranks meet over argosy's channel")
        _changed(account, elastic["maxRestarts"], _OWNER)
        if elastic["metrics"]:
            account.lost(elastic["metrics"], "the gang's size follows its nodes, not a metric")
        ranks = ranks or elastic["nProcPerNode"]
    account.kept(ranks, "gang.nproc_per_node")
    _run_policy(workload, account)
    return Source(workload, workload.roles, (low, high), ranks.number)


def tensorflow(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Chief and Worker train by collectives; parameter servers have no like."""
    del bundle
    servers = next((role for role in workload.roles if role.name == "PS" and role.replicas != 0), None)
    if servers is not None:
        raise InputError(
            f"TFJob with parameter servers ({servers.node.path}, line {servers.node.line}): argosy trains by "
            "collectives; write the script for MultiWorkerMirroredStrategy, or keep the TFJob"
        )
    training = [role for role in workload.roles if role.name != "Evaluator"]
    for role in workload.roles:
        if role.name == "Evaluator":
            account.by_hand(role.node, "the evaluation becomes a step of its own: write [evaluation]")
    nodes = _replicas(training, account)
    _run_policy(workload, account)
    hint = (
        "torchrun starts the ranks and sets no TF_CONFIG: build it in the script from RANK, WORLD_SIZE, MASTER_ADDR "
        "and MASTER_PORT before the strategy is made"
    )
    account.by_hand(workload.document.root["kind"], hint)
    return Source(workload, training, (nodes, nodes), 1)


def xgboost(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Master and Worker are one gang."""
    del bundle
    nodes = _replicas(workload.roles, account)
    _run_policy(workload, account)
    hint = (
        "torchrun starts the ranks and sets no DMLC_*: start xgboost's tracker on rank 0 at MASTER_ADDR and pass it to "
        "xgboost.collective.CommunicatorContext"
    )
    account.by_hand(workload.document.root["kind"], hint)
    return Source(workload, workload.roles, (nodes, nodes), 1)


def mpi(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """The workers train; what the launcher's ``mpirun`` starts is the script."""
    del bundle
    launcher = next((role for role in workload.roles if role.name == "Launcher"), None)
    training = [role for role in workload.roles if role.name == "Worker"]
    if launcher is None or not training:
        raise InputError(f"MPIJob {workload.document.name!r}: needs a Launcher and a Worker in spec.mpiReplicaSpecs")
    nodes = _replicas(training, account)
    slots = workload.spec["slotsPerWorker"]
    account.kept(slots, "gang.nproc_per_node")
    account.changed(launcher.node, "no launcher pod: torchrun starts the ranks on each node, without ssh")
    account.known(launcher.node)
    for key in ("sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation", "runLauncherAsWorker"):
        _changed(account, workload.spec[key], "torchrun starts the ranks, without ssh and MPI")
    _run_policy(workload, account)
    hint = "a script for Horovod or MPI reads its rank from MPI: use torch.distributed, or RANK, LOCAL_RANK, WORLD_SIZE"
    account.by_hand(workload.document.root["kind"], hint)
    return Source(workload, training, (nodes, nodes), slots.number or 1, starts=launcher)


def _replicas(roles: list[Role], account: Account) -> int:
    for role in roles:
        _changed(account, role.node["restartPolicy"], _OWNER)
    return sum(count(role, account) for role in roles)


def _run_policy(workload: Workload, account: Account) -> None:
    policy = workload.spec["runPolicy"]
    reasons = {
        "cleanPodPolicy": "the supervisor deletes the gang when it ends; logs are kept in the run's store",
        "ttlSecondsAfterFinished": "the workflow and its gang are cleaned up by argosy",
        "backoffLimit": _OWNER,
        "suspend": "Argo starts the workflow when it is submitted",
        "managedBy": "the supervisor owns the gang",
    }
    for key, why in reasons.items():
        _changed(account, policy[key], why)
    if policy["schedulingPolicy"]:
        account.lost(policy["schedulingPolicy"], "gang.placement is none for now: nodes are waited for by the channel")


def _changed(account: Account, node: Node, why: str) -> None:
    if node.exists:
        account.changed(node, why)
