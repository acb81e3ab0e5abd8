"""Pods and GPUs that no launcher brings together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launch import Launch
from argosy.workflows.manifests.training import named_training
from argosy.workflows.manifests.workload import Workload


@rule("REND054", Level.WARNING, on=Workload)
def independent(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Several pods that train without knowing of each other."""
    if workload.document.kind == "TrainJob" and "torch" in workload.document.spec.at("runtimeRef.name").text:
        yield from _without_torchrun(workload, bundle)
    if workload.family not in ("job", "jobset", "volcano", "other"):
        return
    if workload.family == "volcano" and set(workload.spec["plugins"].entries) & {"pytorch", "tensorflow", "mpi"}:
        return
    for each in bundle.launches(workload):
        replicas = each.role.replicas
        if replicas is None or replicas < 2 or each.several_nodes:
            continue
        if each.torch and each.master is not None and not each.master[1].loopback and each.setting("nnodes") is None:
            yield _one_node(each, replicas)
            continue
        if not each.container.gpus or not named_training(each.process.words):
            continue
        if each.program not in ("python", "torchrun") or _knows_its_rank(each) or each.option("standalone") is not None:
            continue
        yield Problem(
            each.process.node,
            f"{replicas} pods run {_shown(each)} and are told neither a rank nor of each other: {replicas} trainings, "
            "each on its own",
            "start it with torchrun --nnodes, --node-rank and --master-addr, or run one pod",
            # A script may do its pod's piece of the work, where the pods of a Job have an index to tell it from.
            level=None if each.program == "torchrun" or _alike(each) else Level.NOTE,
            inside=each.program if each.process.in_shell and each.program in each.process.text else "",
        )


def _without_torchrun(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A TrainJob's nodes are told of each other by PET_ variables, which torchrun reads and Python does not."""
    for each in bundle.launches(workload):
        nodes = each.role.replicas or 1
        if each.program == "python" and named_training(each.process.words) and nodes > 1:
            message = f"{nodes} nodes run {_shown(each)}: the runtime's variables are read by torchrun alone, and each "
            yield Problem(each.process.node, message + "node trains for itself", "start it with torchrun")


def _alike(launch: Launch) -> bool:
    """Whether nothing tells one pod of a Job from another: no index, no variable, nothing in the command."""
    mode = launch.role.job["completionMode"]
    told = launch.environment or launch.process.in_shell or mode.text == "Indexed" or mode.open
    return launch.workload.document.kind == "Job" and launch.workload.family == "job" and not told


def _one_node(launch: Launch, replicas: int) -> Problem:
    given = launch.master_given
    return Problem(
        given.node if given is not None else launch.process.node,
        f"torchrun is told a master and not --nnodes, whose default is 1: the {replicas} pods train {replicas} models, "
        "each on its own",
        f"give --nnodes={replicas} and --node-rank",
        inside=given.inside if given is not None else "",
    )


def _knows_its_rank(launch: Launch) -> bool:
    ranked = re.compile(
        r"(\w*_)?(RANK|WORLD_SIZE|MASTER_ADDR|INDEX|NNODES|TASK_ID|POD_NAME|HOSTS?|PEERS|SHARD\w*)|TF_CONFIG|"
        r"PET_\w+|DMLC_\w+|COORDINATOR\w*|JAX_\w+|NUM_(NODES|PROCESSES|PROCS)"
    )
    if any(ranked.fullmatch(name) for name in launch.environment) or launch.container.node["envFrom"]:
        return True
    written = " ".join(node.text for node in launch.container.argv) + launch.process.node.text
    return re.search(r"_INDEX|RANK|HOSTNAME|hostname|dist[-_]url|init[-_]method|shard", written) is not None


def _shown(launch: Launch) -> str:
    script = next((word for word in launch.process.words if word.endswith(".py")), "")
    return f"{launch.program} {script}".strip()


@rule("REND055", Level.NOTE, on=Workload)
def one_process(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """One Python process and several GPUs."""
    if workload.family in ("ray", "mpi", "trainer"):
        return
    for each in bundle.launches(workload):
        gpus = each.container.gpus
        apart = len(bundle.launches(workload)) == 1 or workload.family == "pytorch"
        alone = apart and named_training(each.process.words)
        world = each.variable("WORLD_SIZE")
        one_a_pod = world is not None and world.number == each.role.replicas != 1
        if each.program == "python" and gpus is not None and gpus > 1 and alone:
            yield Problem(
                each.process.node,
                f"one process and {gpus} GPUs: unless {_shown(each)} starts the others itself, one of them works",
                f"start it with torchrun --nproc-per-node={gpus}",
                level=Level.WARNING if one_a_pod or (workload.family == "pytorch" and workload.gang) else None,
                inside="python" if each.process.in_shell else "",
            )


@rule("REND056", Level.NOTE, on=Workload)
def old_launcher(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``python -m torch.distributed.launch``."""
    for each in bundle.launches(workload):
        if each.program == "torch.distributed.launch":
            yield Problem(
                each.process.node,
                "torch.distributed.launch is deprecated, and since torch 2.0 it passes --local-rank with a dash, which "
                "scripts that look for --local_rank refuse",
                "write torchrun, and read LOCAL_RANK in the script",
                inside="torch.distributed.launch" if each.process.in_shell else "",
            )


@rule("REND015", Level.WARNING, on=Workload)
def standalone(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``--standalone`` in several pods: as many trainings as pods."""
    for each in bundle.launches(workload):
        given = each.option("standalone") if each.torch else None
        if given is None or (each.role.replicas or 1) < 2 or workload.family == "argo":
            continue
        yield Problem(
            given.node,
            f"--standalone ignores all other pods: the {each.role.replicas} pods train {each.role.replicas} models, "
            "each on its own",
            "give --nnodes, --rdzv-backend=c10d and --rdzv-endpoint instead",
            inside=given.inside or "--standalone",
            level=Level.ERROR if each.several_nodes else None,
        )
