"""What starts the ranks: which commands of a pod launch them, and whether the pods of a workload are one training."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launchers import LAUNCHERS, MPI, TORCH
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod, Role
from argosy.workflows.manifests.process import Process
from argosy.workflows.manifests.training import named_training, tells_only, trains
from argosy.workflows.manifests.workload import Workload

_RANK_VARIABLES: Final = ("MASTER_ADDR", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT", "PET_NNODES", "TF_CONFIG", "NNODES")
_GROUP_KEYS: Final = (
    *("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name", "scheduling.x-k8s.io/pod-group"),
    *("pod-group-name", "kueue.x-k8s.io/pod-group-name"),
)
_MEASURES: Final = re.compile(
    r"(?:^|[/=])(?:all_?|broadcast|gather|hypercube|reduce|scatter|sendrecv)\w*_perf\b|sleep[-_](?:forever|inf)"
)
_TESTS: Final = re.compile(r"(?:^|[-_.])(?:smoke|preflight|(?:nccl|gpu|rdma)[-_]?(?:\w+[-_])?tests?)(?:[-_.]|$)")
"""What tests of a cluster are called: somebody watches them, and nothing is lost with them but a minute."""
IDLE: Final = {"sleep", "tail", "echo", "nvidia-smi", "rocm-smi"}
"""What a pod does that only holds a GPU, or looks at it."""
_ELASTIC_BACKENDS: Final = ("c10d", "etcd", "etcd-v2")


def launches(pod: Pod, bundle: Bundle) -> Iterator[tuple[Container, Process]]:
    """(container, command) of every launcher that a pod starts."""
    for container in pod.containers:
        for process in bundle.processes(container):
            if process.program in LAUNCHERS and not tells_only(process.words):
                yield container, process


def torch_launch(pod: Pod, bundle: Bundle) -> tuple[Container, Process] | None:
    """The first torchrun of a pod; None without one."""
    found = ((each, process) for each, process in launches(pod, bundle) if process.program in TORCH)
    return next(found, None)


def stays(process: Process) -> bool:
    """Whether mpirun is told of no other host, and starts all ranks in its own pod."""
    return process.program in MPI and process.option("host", "H", "hostfile", "machinefile", "hosts", "f") is None


def waits_for_all(workload: Workload, bundle: Bundle) -> bool:
    """Whether its pods are ranks of one collective: they have GPUs, or a launcher starts them."""
    return workload.gpus != 0 or any(any(launches(role.pod, bundle)) for role in workload.roles)


def holds_only(role: Role, bundle: Bundle) -> bool:
    """Whether a role's pods do nothing but hold what they are given: ``sleep infinity``."""
    programs = {process.program for each in role.pod.containers for process in bundle.processes(each)}
    return bool(programs) and programs <= IDLE


def may_train(workload: Workload, bundle: Bundle) -> bool:
    """Whether anything says that it trains: its kind, a GPU, a command, a name. A demo's or a server's pod does not."""
    containers = [each for pod in workload.pods for each in pod.containers]
    processes = [process for each in containers for process in bundle.processes(each)]
    if processes and {process.program for process in processes} <= IDLE:
        return False
    names = [workload.document.name, *(each.name for each in containers)]
    launched = [each.words for each in processes if trains(each.words, each.program)]
    # A container beside the one that trains may look at the cluster, and a training's own options may be called so.
    if _TESTS.search(names[0]) or (containers and all(map(_TESTS.search, names[1:]))):
        return False
    if launched and all(any(map(_looks, words)) for words in launched):
        return False
    if workload.family == "other":  # what is started again when it ends serves, unless its script is named a training
        return any(named_training(process.words) for process in processes)
    if workload.family not in ("job", "pod", "argo") or workload.gpus != 0:
        return True
    names += [each.image.text for each in containers]
    if named_training(names) or any(_is_rank(role, bundle) for role in workload.roles):
        return True
    return any(trains(each.words, each.program) for each in processes)


def _looks(word: str) -> bool:
    return bool(
        _MEASURES.search(word)
        or (word.endswith((".py", ".sh")) and word[0] != "-" and _TESTS.search(word.rpartition("/")[2]))
    )


def option(process: Process, container: Container, bundle: Bundle, name: str) -> str | None:
    """An option of torchrun, or its twin in the environment (``--max-restarts``, ``PET_MAX_RESTARTS``)."""
    given = process.option(name)
    if given is not None:
        return given
    variable = bundle.environment_of(process, container).get("PET_" + name.upper().replace("-", "_"))
    return variable.value if variable is not None else None


def rejoins(process: Process, container: Container, bundle: Bundle) -> bool:
    """Whether a node that comes back is let in: a dynamic rendezvous, and agents that may start their ranks again."""
    restarts = option(process, container, bundle, "max-restarts")
    return meets_anew(process, container, bundle) and restarts not in (None, "0")


def meets_anew(process: Process, container: Container, bundle: Bundle) -> bool:
    """Whether its rendezvous is dynamic, so that agents that are started again meet in it."""
    return option(process, container, bundle, "rdzv-backend") in _ELASTIC_BACKENDS


def together(workload: Workload, bundle: Bundle) -> bool:
    """Whether the pods of a workload are the ranks of one training, and not independent pieces of work."""
    if not workload.gang or workload.family == "ray":
        return False
    if workload.family in ("job", "jobset", "volcano"):
        trains = workload.family == "jobset" and workload.gpus != 0
        return trains or _one_group(workload) or any(_is_rank(role, bundle) for role in workload.roles)
    ranks = [role.replicas for role in workload.roles if not alone(workload, role)]  # initializers run before them
    return workload.family != "trainer" or None in ranks or sum(number or 0 for number in ranks) > 1


def alone(workload: Workload, role: Role) -> bool:
    """Whether it is one pod that trains nothing (a driver, a data server, an initializer), restarted as it likes."""
    trainer = workload.family == "trainer" and role.name == "node"
    if any("sshd" in node.text for each in role.pod.containers for node in each.argv):
        return True  # it waits for mpirun, whose failure is the gang's
    return workload.family in ("jobset", "trainer") and role.replicas == 1 and role.pod.gpus == 0 and not trainer


def _one_group(workload: Workload) -> bool:
    """Whether pods with GPUs are asked for all at once: nobody does that to independent pieces of work."""
    if workload.gpus == 0:
        return False
    if workload.family == "volcano":
        return workload.spec["minAvailable"].number == workload.total
    metadata = [role.template["metadata"] for role in workload.roles]
    return any(each[place][key] for each in metadata for place in ("annotations", "labels") for key in _GROUP_KEYS)


def _is_rank(role: Role, bundle: Bundle) -> bool:
    for container, process in launches(role.pod, bundle):
        one_node = process.program in TORCH and (option(process, container, bundle, "nnodes") or "1") == "1"
        alone = one_node or ((role.replicas or 1) > 1 and stays(process))
        if not alone:
            return True
    main = role.pod.main
    if main is None:
        return False
    variables = bundle.environment(main)
    return "WORLD_SIZE" in variables or any(name in variables for name in _RANK_VARIABLES)


def argo_template(workload: Workload) -> Node | None:
    """The Argo template whose manifest the workload stands in; None for one that stands in no Workflow."""
    host = workload.document.host
    if host is None:
        return None
    spec = host.spec["workflowSpec"] or host.spec
    line = workload.document.root.line
    for template in spec["templates"]:
        manifest = template.at("resource.manifest")
        if manifest and manifest.line <= line <= manifest.last_line:
            return template
    return None
