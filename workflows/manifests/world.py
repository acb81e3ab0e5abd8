"""How many nodes and ranks a launch has, as far as the files say."""

from __future__ import annotations

from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launch import Launch
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.workload import Workload


def pods_of(launch: Launch, workload: Workload, bundle: Bundle) -> int | None:
    """Pods that run this launch together; None when that cannot be known here."""
    document = workload.document
    if document.kind in ("PyTorchJob", "PaddleJob"):
        return workload.total
    if document.kind == "TrainJob":
        return document.spec.at("trainer.numNodes").number
    if workload.family in ("job", "other") and document.kind != "LeaderWorkerSet":
        return launch.role.replicas
    if workload.family in ("jobset", "volcano", "other"):
        roles = {id(each.role): each.role for each in bundle.launches(workload) if each.program == launch.program}
        numbers = [role.replicas for role in roles.values()]
        return None if None in numbers else sum(number or 0 for number in numbers)
    return None


def processes_field(workload: Workload) -> Node:
    """Where the kind itself says how many processes a node has; missing where it does not."""
    field = {"PyTorchJob": "nprocPerNode", "TrainJob": "trainer.numProcPerNode", "MPIJob": "slotsPerWorker"}
    path = field.get(workload.document.kind, "")
    return workload.document.spec.at(path) if path else Node(None, workload.document.root.origin)


def processes_of(launch: Launch) -> int | None:
    """Ranks of one node; None when it is not known here."""
    gpus = launch.container.gpus
    if launch.torch:
        given = launch.setting("nproc-per-node")
        field = processes_field(launch.workload)
        if given is None and not field:
            return 1 if launch.workload.family != "trainer" else None
        value = given.value if given is not None else field.text
        if value is not None and value.isdigit():
            return int(value)
        return gpus if value in ("gpu", "auto") and gpus else None
    if launch.program == "deepspeed":
        given = launch.option("num-gpus")
        return given.number if given is not None else gpus or None
    return None


def ranks_of(launch: Launch, workload: Workload, bundle: Bundle) -> int | None:
    """Ranks of the whole training; None when it is not known here."""
    if launch.program == "accelerate":
        total = launch.option("num-processes")
        return total.number if total is not None else None
    each = processes_of(launch)
    nodes = launch.nodes
    if nodes is not None and nodes[1] != nodes[2]:
        return None
    number = nodes[1] if nodes is not None else pods_of(launch, workload, bundle)
    if (
        nodes is None
        and launch.torch
        and not launch.several_nodes
        and workload.document.kind not in ("PyTorchJob", "TrainJob")
    ):
        number = 1
    return each * number if each is not None and number is not None else None
