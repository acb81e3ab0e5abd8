"""The workload that is imported, whatever kind describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node, Origin
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload
from argosy.workflows.spec.gang import MAX_NODES

FAMILIES: Final = ("pytorch", "tensorflow", "xgboost", "mpi", "trainer", "jobset", "job", "volcano", "ray")
RUNTIMES: Final = ("TrainingRuntime", "ClusterTrainingRuntime")
MISSING: Final = Node(None, Origin(""))
IMPORTED: Final = ("PyTorchJob", "TFJob", "XGBoostJob", "MPIJob", "TrainJob", "JobSet", "Job", "RayJob")
_REFUSED: Final = {
    "PaddleJob": "Paddle starts its ranks itself",
    "JAXJob": "jax.distributed starts its ranks itself",
    "MXJob": "MXNet has parameter servers, and Kubeflow has removed it",
    "RayService": "it serves and does not end",
    "RayCluster": "it has no entrypoint, so nothing says what is trained; name a RayJob",
    "Deployment": "it serves and does not end",
    "StatefulSet": "it serves and does not end; a training in it belongs in a Job or a JobSet",
    "DaemonSet": "it serves and does not end",
    "ReplicaSet": "it serves and does not end",
    "Workflow": "argosy compiles to one itself; import the object that trains in it",
    "WorkflowTemplate": "argosy compiles to one itself; import the object that trains in it",
    "CronWorkflow": "argosy compiles to one itself; import the object that trains in it",
    "Pod": "nothing gathers several of them; write a Job around it",
}


@dataclass(slots=True)
class Source:
    """What a reader of a kind found.

    Args:
        workload: the object.
        training: roles whose pods train; all run the same, the first one's template is taken.
        nodes: pods that train; ``(min, max)`` for an elastic gang.
        ranks_per_node: where the kind says it (nprocPerNode, slotsPerWorker): a number, ``auto``, ``gpu``, ``cpu``;
            ``""``: the launcher's options do.
        starts: the role whose command starts the ranks: MPI's launcher; else the first training role.
        entrypoint: a command line in the object's own spec (Ray).
        launcher: where the kind decides it; ``""``: the command does.
        placing: what the kind says of placing its pods together; missing where it says nothing.
    """

    workload: Workload
    training: list[Role]
    nodes: tuple[int, int]
    ranks_per_node: str = ""
    starts: Role | None = None
    entrypoint: Node | None = None
    launcher: str = ""
    placing: Node = MISSING


def find_workload(bundle: Bundle, name: str | None) -> Workload:
    """The one training among the documents.

    Args:
        bundle: all documents.
        name: which, where there are several.

    Raises:
        InputError: there is none, or there are several and none is named.
    """
    found = [each for each in bundle.workloads if each.family in FAMILIES and each.document.host is None]
    found = [each for each in found if each.document.kind not in (*RUNTIMES, *_REFUSED)]
    if not found:
        raise InputError(_none(bundle))
    named = [each for each in found if name is None or each.document.name == name]
    kinds = ", ".join(f"{each.document.kind} {each.document.name!r}" for each in found)
    if not named:
        raise InputError(f"--workload {name}: there is no such object; there are {kinds}")
    if len(named) > 1:
        alike = len({each.document.name for each in named}) < len(named)
        remedy = "name the file or write the one alone into a file" if alike else "choose one with --workload NAME"
        raise InputError(f"several trainings in it: {kinds}; {remedy}")
    return named[0]


def _none(bundle: Bundle) -> str:
    for each in bundle.documents:
        if each.kind in _REFUSED:
            place = f"{each.file}, line {each.root.line}"
            return f"{each.kind} {each.name!r} ({place}) cannot be imported: {_REFUSED[each.kind]}"
    for each in bundle.documents:
        place = f"{each.kind} {each.name!r} ({each.file}, line {each.root.line})"
        if each.kind in IMPORTED and bundle.workload(each) is None:
            version = each.api_version or "no apiVersion"
            return f"{place} is of {version}, which is not read; argosy lint names the right one"
        if each.kind in IMPORTED and each.host is not None:
            return f"{place} stands in a {each.host.kind}; write its manifest into a file of its own and name that"
    others = sorted({each.kind for each in bundle.documents if each.kind})
    if "Kustomization" in others:
        return (
            f"{bundle.names[0]}: a list of manifests to be built, no manifest; kustomize build FOLDER | argosy import -"
        )
    held = f" (it holds {', '.join(others)})" if others else ""
    where = bundle.names[0] if len(bundle.names) == 1 else f"{len(bundle.names)} files"
    return (
        f"{where}: no training in it{held}; name a file with a PyTorchJob, TFJob, XGBoostJob, MPIJob, TrainJob, "
        "JobSet, Job, Volcano Job or RayJob"
    )


def count(role: Role, account: Account) -> int:
    """A role's replicas; what is filled in later is one, and said to be."""
    account.kept(role.replicas_node, "gang.nnodes")
    node = role.replicas_node
    place = f"{node.origin.file}, line {node.line}: {role.name or 'it'} has {node.text!r} replicas"
    if role.replicas is None and node.is_scalar and not node.open and not node.placed:
        raise InputError(f"{place}, which is no whole number; write how many pods it has")
    if role.replicas is None:
        account.by_hand(role.replicas_node, "the number is filled in later: write gang.nnodes", "gang.nnodes")
        return 1
    if not 0 <= role.replicas <= MAX_NODES:
        raise InputError(f"{place}; a run has at least 1 and at most {MAX_NODES} nodes")
    return role.replicas


def present(roles: list[Role], account: Account) -> list[Role]:
    """The roles that have pods, the one whose template is taken first: most GPUs, then most pods."""
    for role in roles:
        if role.replicas == 0:
            account.changed(role.node, f"{role.name or 'it'} has 0 replicas: it has no pods")
    held = [role for role in roles if role.replicas != 0]
    return sorted(held, key=lambda role: (-(role.pod.gpus or 0), -(role.replicas or 0)))
