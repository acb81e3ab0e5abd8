"""PyTorchJob, TFJob, XGBoostJob, MPIJob."""

from __future__ import annotations

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.kinds.reasons import MEET, OWNER, RUN_POLICY, changed_all
from argosy.workflows.imports.source import Source, count, present
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload

_MPI = "a script for Horovod or MPI reads its rank from MPI: use torch.distributed, or RANK, LOCAL_RANK, WORLD_SIZE"


def pytorch(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Master and Worker are one gang: rank 0 is a rank like the others."""
    del bundle
    spec = workload.spec
    roles = _roles(workload, workload.roles, account)
    nodes = _replicas(roles, account)
    ranks, elastic = spec["nprocPerNode"], spec["elasticPolicy"]
    low, high = nodes, nodes
    if elastic:
        low = min(max(elastic["minReplicas"].number or nodes, 1), nodes)
        account.number(elastic["minReplicas"], "gang.nnodes")
        if elastic["maxReplicas"].number == nodes:
            account.kept(elastic["maxReplicas"], "gang.nnodes")
        else:
            account.changed(elastic["maxReplicas"], "a gang has at most the nodes that it starts with", "gang.nnodes")
        for key in ("rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId", "rdzvConf", "standalone"):
            account.changed(elastic[key], MEET)
        account.changed(elastic["maxRestarts"], OWNER)
        account.lost(elastic["metrics"], "the gang's size follows its nodes, not a metric")
        account.number(elastic["nProcPerNode"], "gang.nproc_per_node")
        ranks = ranks or elastic["nProcPerNode"]
    account.number(ranks, "gang.nproc_per_node")
    changed_all(account, spec["runPolicy"], RUN_POLICY)
    return Source(workload, roles, (min(low, high), max(low, high)), ranks.text, placing=_placing(workload))


def tensorflow(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Chief and Worker train by collectives; parameter servers have no like."""
    del bundle
    servers = next((role for role in workload.roles if role.name.upper() == "PS" and role.replicas != 0), None)
    if servers is not None:
        raise InputError(
            f"TFJob with parameter servers ({servers.node.path}, line {servers.node.line}): argosy trains by "
            "collectives; write the script for MultiWorkerMirroredStrategy, or keep the TFJob"
        )
    judging = [role for role in workload.roles if role.name == "Evaluator"]
    for role in judging:
        account.by_hand(role.node, "the evaluation becomes a step of its own: write [evaluation]", "evaluation")
    roles = _roles(workload, [role for role in workload.roles if role not in judging], account)
    nodes = _replicas(roles, account)
    changed_all(account, workload.spec["runPolicy"], RUN_POLICY)
    account.changed(workload.spec["successPolicy"], "a run has succeeded when every rank ended well")
    account.changed(workload.spec["enableDynamicWorker"], 'write gang.nnodes = "min:max"')
    return Source(workload, roles, (nodes, nodes), "1", launcher="plain", placing=_placing(workload))


def xgboost(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Master and Worker are one gang."""
    del bundle
    roles = _roles(workload, workload.roles, account)
    nodes = _replicas(roles, account)
    changed_all(account, workload.spec["runPolicy"], RUN_POLICY)
    return Source(workload, roles, (nodes, nodes), "1", launcher="plain", placing=_placing(workload))


def mpi(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """The workers train; what the launcher's ``mpirun`` starts is the script."""
    del bundle
    spec = workload.spec
    launcher = next((role for role in workload.roles if role.name == "Launcher"), None)
    training = [role for role in workload.roles if role.name == "Worker"]
    if launcher is None or not training:
        raise InputError(f"MPIJob {workload.document.name!r}: needs a Launcher and a Worker in spec.mpiReplicaSpecs")
    roles = _roles(workload, training, account)
    nodes = _replicas(roles, account)
    slots = spec["slotsPerWorker"]
    account.number(slots, "gang.nproc_per_node")
    account.changed(launcher.node, "no launcher pod: argosy starts the ranks, without ssh")
    if spec["runLauncherAsWorker"].flag:
        nodes += 1
        account.changed(spec["runLauncherAsWorker"], "the launcher's pod is one more node", "gang.nnodes")
    for key in ("sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation", "mpiDistribution", "mainContainer"):
        account.changed(spec[key], "argosy starts the ranks, without ssh")
    # v1 has these beside runPolicy: https://github.com/kubeflow/mpi-operator/tree/master/pkg/apis/kubeflow
    changed_all(account, spec, RUN_POLICY)
    changed_all(account, spec["runPolicy"], RUN_POLICY)
    other = (spec["mpiImplementation"].text or "OpenMPI") != "OpenMPI"  # argosy's mpirun is Open MPI's
    if other:
        account.advise(workload.document.root["kind"], _MPI, "script")
    starts_ranks = "torchrun" if other else ""
    found = Source(workload, roles, (nodes, nodes), slots.text or "1", starts=launcher, launcher=starts_ranks)
    found.placing = _placing(workload)
    return found


def _placing(workload: Workload) -> Node:
    return workload.spec.at("runPolicy.schedulingPolicy")


def _roles(workload: Workload, roles: list[Role], account: Account) -> list[Role]:
    found = present(roles, account)
    if not found:
        document = workload.document
        raise InputError(f"{document.kind} {document.name!r}: no replicas, so nothing trains; write their number")
    return found


def _replicas(roles: list[Role], account: Account) -> int:
    for role in roles:
        _policy(role.node, account)
    return sum(count(role, account) for role in roles)


def _policy(node: Node, account: Account) -> None:
    account.changed(node["restartPolicy"], OWNER)
