"""Launchers that are told the ranks of all nodes: mpirun and accelerate."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launch import Given, Launch
from argosy.workflows.manifests.launchers import MPI
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.training import named_training
from argosy.workflows.manifests.workload import Workload
from argosy.workflows.manifests.world import pods_of


@rule("REND052", Level.ERROR, on=Workload)
def mpi(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``mpirun -np`` against the slots of the workers."""
    if workload.document.kind != "MPIJob":
        return
    workers = next((role for role in workload.roles if role.name == "Worker"), None)
    slots_node = workload.document.spec["slotsPerWorker"]
    slots = slots_node.number if slots_node else 1
    if workers is None or workers.replicas is None or slots is None:
        return
    with_launcher = workload.document.spec["runLauncherAsWorker"].flag is True
    total = (workers.replicas + int(with_launcher)) * slots
    starters = {each.program for each in bundle.launches(workload) if each.role.launcher}
    for each in bundle.launches(workload):
        silent = workload.document.version == "v2beta1" and not any("sshd" in word.text for word in each.container.argv)
        if each.role is workers and silent:
            message = f"the workers run {each.program} and no sshd, by which the Launcher's mpirun starts ranks on them"
            yield Problem(each.process.node, message, "take it away: the operator starts sshd", level=Level.WARNING)
        if each.role.launcher and starters == {"python"} and named_training(each.process.words):
            message = f"the Launcher trains itself: nothing starts ranks on the {workers.replicas} workers"
            yield Problem(each.process.node, message, "start it with mpirun", level=Level.WARNING)
        given = each.option("np", "n", "c")
        said = " ".join([*each.process.words, *each.environment]).upper()
        elsewhere = workload.document.spec["mpiImplementation"].text not in ("", "OpenMPI") or "OVERSUBSCRIBE" in said
        elsewhere = elsewhere or bool(each.option("host", "H", "hostfile", "machinefile"))
        if given is None or given.number is None or each.program not in MPI:
            continue
        if given.number > total and not elsewhere:
            yield Problem(
                given.node,
                f"-np {given.number} and {total} slots ({_slots(workers, slots, slots_node)}): mpirun refuses to start",
                f"write {total}, or make slotsPerWorker x Worker replicas {given.number}",
                inside=given.inside,
            )
        elif given.number < total and not each.option(
            "N", "npernode", "map-by"
        ):  # so many of each worker are asked for
            yield Problem(
                given.node,
                f"-np {given.number} leaves {total - given.number} of {total} slots idle "
                f"({_slots(workers, slots, slots_node)})",
                f"write {total}",
                level=Level.WARNING,
                inside=given.inside,
            )


def _slots(workers: Role, slots: int, written: Node) -> str:
    default = "" if written else ", the default"
    return f"{workers.replicas} workers with slotsPerWorker {slots}{default}"


@rule("REND053", Level.ERROR, on=Workload)
def accelerate(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``accelerate --num_processes`` counts the ranks of all machines."""
    for each in bundle.launches(workload):
        given = each.option("num-processes") if each.program == "accelerate" else None
        gpus = each.container.gpus
        machines = _machines(each, workload, bundle)
        if given is None or given.number is None or not gpus or machines is None:
            continue
        total = gpus * machines
        if given.number == total:
            continue
        yield Problem(
            given.node,
            f"--num_processes {given.number} counts the processes of all machines, and {machines} machines with {gpus} "
            f"GPUs have {total}"
            if machines > 1
            else f"--num_processes {given.number} and {gpus} GPUs",
            f"write {total}",
            level=None if given.number > total and each.option("cpu", "use-cpu") is None else Level.WARNING,
            inside=given.inside,
        )


def _machines(launch: Launch, workload: Workload, bundle: Bundle) -> int | None:
    nodes: tuple[Given, int, int] | None = launch.nodes
    if nodes is not None:
        return nodes[2]
    if launch.option("num-machines") is not None or launch.option("config-file") is not None:
        return None
    pods = pods_of(launch, workload, bundle)
    return 1 if pods == 1 else None
