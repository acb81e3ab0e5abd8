"""How many ranks a node starts, and how many GPUs it has for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launch import Launch
from argosy.workflows.manifests.launchers import TORCH
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.process import program_of
from argosy.workflows.manifests.workload import Workload
from argosy.workflows.manifests.world import processes_field

_STARTERS = (*TORCH, "accelerate", "deepspeed", "bash", "sh")
_RUNTIMES = ("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime")


@rule("REND050", Level.ERROR, on=Workload)
def processes(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Processes per node that are not the node's GPUs."""
    for each in bundle.launches(workload):
        gpus = each.container.gpus
        if not gpus or each.variable("CUDA_VISIBLE_DEVICES") is not None:
            continue
        if each.torch:
            given, name = each.setting("nproc-per-node"), "--nproc-per-node"
        elif each.program == "deepspeed":
            given, name = each.option("num-gpus"), "--num_gpus"
        else:
            continue
        if given is not None and given.number is not None:
            found = list(_against(given.node, given.inside, f"{name} {given.number}", given.number, gpus))
            on_cpu = any(
                word.partition("=")[2] in ("gloo", "cpu") or word in ("gloo", "cpu") for word in each.process.words
            )
            yield from (replace(problem, level=Level.WARNING) if on_cpu else problem for problem in found)
        elif given is None and each.torch and gpus > 1 and _defaults_to_one(each):
            yield Problem(
                each.process.node,
                f"torchrun starts one process unless it is told otherwise: {gpus - 1} of {gpus} GPUs stay idle",
                f"give --nproc-per-node={gpus}",
                level=Level.WARNING,
                inside=each.program if each.process.in_shell and each.program in each.process.text else "",
            )


def _defaults_to_one(launch: Launch) -> bool:
    set_elsewhere = processes_field(launch.workload) or launch.workload.document.kind in (*_RUNTIMES, "PyTorchJob")
    return not set_elsewhere and not launch.container.node["envFrom"]


def _against(node: Node, inside: str, what: str, number: int, gpus: int) -> Iterator[Problem]:
    if number > gpus:
        yield Problem(
            node,
            f"{what} and {gpus} GPU{'s' if gpus > 1 else ''}: those behind them end with invalid device ordinal",
            f"write {gpus}, or limit {number} GPUs",
            inside=inside,
        )
    elif number < gpus:
        yield Problem(
            node,
            f"{what} and {gpus} GPUs: {gpus - number} of them stay idle",
            f"write {gpus}, or limit {number}",
            level=Level.WARNING,
            inside=inside,
        )


@rule("REND051", Level.ERROR, on=Workload)
def of_the_kind(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``nprocPerNode``, ``numProcPerNode``, ``slotsPerWorker`` against the GPUs of a pod."""
    field = processes_field(workload)
    number = field.number
    if number is None or (workload.family == "mpi" and number == 1 and _one_starts_more(workload, bundle)):
        return
    for role in workload.roles:
        gpus = role.pod.gpus if role.template and not role.launcher else None
        if gpus and number != gpus and role.name != "Launcher":
            # More slots than GPUs is one way to share them, and who writes the option does not ask the field.
            given = any(each.option("nproc-per-node") or each.program == "python" for each in bundle.launches(workload))
            more = workload.family == "mpi" or given
            if any(each.option("N", "npernode", "map-by") for each in bundle.launches(workload)):
                return  # mpirun is told how many of a worker's slots it may take
            for problem in _against(field, "", f"{field.key} {number}", number, gpus):
                yield replace(problem, level=Level.WARNING if more else problem.level)
            return


def _one_starts_more(workload: Workload, bundle: Bundle) -> bool:
    """Whether mpirun starts a script or a launcher, which makes the ranks of its node itself."""
    started = [each.process.words for each in bundle.launches(workload) if each.program in ("mpirun", "mpiexec")]
    return any(
        word.endswith(".sh") or program_of(words[at:]) in _STARTERS
        for words in started
        for at, word in enumerate(words[1:], 1)
    )
