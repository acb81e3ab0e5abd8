"""Which rank a pod takes itself for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem, Remove
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.injected import has_master, injected
from argosy.workflows.manifests.launch import Given, Launch
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Role
from argosy.workflows.manifests.workload import Workload

_SETS_RANK: Final = ("PyTorchJob", "TrainJob", "TrainingRuntime", "ClusterTrainingRuntime")
_RANKS: Final = ("RANK", "NODE_RANK", "GROUP_RANK", "PET_NODE_RANK", "MACHINE_RANK", "PROCESS_ID", "DMLC_WORKER_ID")
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
OWN_FIELDS: Final = ("metadata.name", "metadata.uid", "status.podIP", "status.hostIP", "spec.nodeName")
# Labels that controllers set and that hold a name; their sisters with -index hold a number.
_NAMES: Final = re.compile(
    r"metadata\.labels\['[^']*(pod-name|job-name|controller-uid|jobset-name|replicatedjob-name)'\]"
)


@rule("REND020", Level.ERROR, on=Workload)
def one_rank(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Several pods of one template, which all take the same node rank."""
    if workload.family in ("argo", "pod", "ray"):
        return
    for each in bundle.launches(workload):
        if (
            single(each.role)
            or not each.several_nodes
            or not (each.torch or each.program in ("accelerate", "deepspeed"))
        ):
            continue
        if each.torch and each.backend != "static":
            continue
        if each.program == "accelerate" and (each.option("rdzv-backend") or each.option("rdzv-conf")):
            continue
        given = each.node_rank
        if given is not None and given.number is not None:
            yield _constant(each, given)
        elif given is None and each.program != "deepspeed" and workload.document.kind not in _SETS_RANK:
            if each.container.node["envFrom"] or _branches(each) or each.option("config-file") is not None:
                continue
            nodes = each.nodes
            yield Problem(
                nodes[0].node if nodes is not None else each.process.node,
                f"no {_option(each)}: {_pods(each.role)} take rank 0, the default, and wait for the others for ever",
                f"give {_option(each)}={_source(workload, each)}",
                level=Level.WARNING if each.role.replicas is None or workload.family == "other" else None,
                inside=nodes[0].inside if nodes is not None else "",
            )


def _option(launch: Launch) -> str:
    return "--machine_rank" if launch.program == "accelerate" else "--node-rank"


def _constant(launch: Launch, given: Given) -> Problem:
    return Problem(
        given.node,
        f"{_pods(launch.role)} of one template say that they are node {given.value}",
        f"write {_source(launch.workload, launch)} instead of {given.value}",
        level=Level.WARNING if launch.role.replicas is None else None,
        inside=given.inside,
    )


def single(role: Role) -> bool:
    """Whether it is one pod at most."""
    return role.replicas is not None and role.replicas < 2


def _pods(role: Role) -> str:
    return f"all {role.replicas} pods" if role.replicas is not None else "all pods"


def _source(workload: Workload, launch: Launch) -> str:
    name = {"job": "JOB_COMPLETION_INDEX", "jobset": "JOB_COMPLETION_INDEX", "volcano": "VC_TASK_INDEX"}.get(
        workload.family
    )
    if name is None:
        return "the pod's index"
    return f"${name}" if launch.process.in_shell else f"$({name})"


def _branches(launch: Launch) -> bool:
    text = launch.process.node.text if launch.process.in_shell else ""
    return re.search(r"\b(if|case)\b", text) is not None


@rule("REND021", Level.ERROR, on=Workload)
def rank_variable(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A rank as a constant in the ``env`` of several pods."""
    if workload.family in ("argo", "pod") or (workload.document.kind == "PyTorchJob" and has_master(workload.document)):
        return
    for each in bundle.launches(workload):
        if single(each.role) or each.container.init:
            continue
        told = each.node_rank
        world = each.variable("WORLD_SIZE")
        for name in _RANKS:
            given = each.variable(name)
            found = each.environment.get(name)
            if given is None or given.number is None or found is None or found.how not in ("env", "envFrom"):
                continue
            read = each.program == "python" and name in ("RANK", "PROCESS_ID") and not (world and world.value == "1")
            through = (told is not None and name in told.written) or (
                name == "PET_NODE_RANK" and each.backend == "static"
            )
            if (read or name == "DMLC_WORKER_ID") and not through:
                yield _constant(each, given)


@rule("REND022", Level.WARNING, on=Workload)
def ignored_rank(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``--node-rank`` beside a rendezvous that gives ranks itself."""
    for each in bundle.launches(workload):
        given = each.option("node-rank") if each.torch else None
        backend = each.backend
        if given is None or backend in (None, "static"):
            continue
        whole = not each.process.in_shell and "=" in given.node.text
        yield Problem(
            given.node,
            f"torchrun ignores --node-rank with rdzv-backend {backend}: nodes get their ranks in the order in which "
            "they come, another one after each restart",
            "leave it out; for fixed ranks use --master-addr with the static backend",
            edits=[Remove(given.node)] if whole else (),
            inside=given.inside,
        )


@rule("REND023", Level.ERROR, on=Workload)
def completion_index(workload: Workload) -> Iterator[Problem]:
    """The completion index in a Job that has none."""
    for role in workload.roles:
        mode = role.job["completionMode"]
        indexed = mode.text == "Indexed" or (workload.family in ("jobset", "trainer") and not mode)
        if not role.job or indexed or mode.open:
            continue
        for container in role.pod.all_containers:
            own = any(item["name"].text == "JOB_COMPLETION_INDEX" for item in container.node["env"])
            used = next((each for each in _uses_of_index(container) if not own or each[1] == _INDEX), None)
            if used is None:
                continue
            yield Problem(
                used[0],
                f"{used[1]} exists only in an Indexed Job, and this one is not: "
                + ("every pod gets an empty value" if used[1] == _INDEX else "nothing sets it"),
                "write completionMode: Indexed, with completions",
                inside=used[1] if used[0] is container.script else "",
            )
            break


def _uses_of_index(container: Container) -> Iterator[tuple[Node, str]]:
    for node in container.argv:
        if "JOB_COMPLETION_INDEX" in node.text:
            yield node, "JOB_COMPLETION_INDEX"
    for item in container.node["env"]:
        path = item.at("valueFrom.fieldRef.fieldPath")
        if _INDEX in path.text:
            yield path, _INDEX
        if "JOB_COMPLETION_INDEX" in item["value"].text:
            yield item["value"], "JOB_COMPLETION_INDEX"


@rule("REND025", Level.ERROR, on=Workload)
def no_number(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A rank that is the pod's name, or nothing."""
    for each in bundle.launches(workload):
        rank = each.node_rank
        option = re.fullmatch(r"\$[({]?(\w+)[)}]?", rank.written) if rank is not None and rank.how == "option" else None
        if rank is not None and option is not None and _set_by_nobody(option[1], each, bundle):
            yield Problem(
                rank.node,
                f"nothing that is known here sets {option[1]}: {rank.inside or _option(each)} is empty, and "
                f"{each.program} refuses it",
                f"write {_source(workload, each)}, or set {option[1]}",
                level=Level.WARNING,  # an image or a webhook may set it
                inside=rank.inside,
            )
        for name in dict.fromkeys((*_RANKS, "WORLD_SIZE", *([option[1]] if option is not None else ()))):
            found = each.environment.get(name)
            path = found.node.at("valueFrom.fieldRef.fieldPath") if found is not None and found.how == "env" else None
            text = each.process.node.text if each.process.in_shell else ""
            if path is not None and _is_text(path.text) and f"{{{name}" not in text:
                yield Problem(
                    path,
                    f"{name} is {path.text}, a text: what reads it wants a number",
                    "take the index: metadata.annotations['batch.kubernetes.io/job-completion-index'], or in a "
                    "StatefulSet metadata.labels['apps.kubernetes.io/pod-index']",
                    level=Level.WARNING if each.program == "python" else None,  # a program may take it apart
                )


def _set_by_nobody(name: str, launch: Launch, bundle: Bundle) -> bool:
    """Whether a rank that a shell fills in is a variable of nobody's."""
    text, document = launch.process.node.text, launch.workload.document
    elsewhere = re.search(rf"\b{name}=|\b(source|eval|read|for)\b|(^|[;&]) *\. ", text, re.MULTILINE)
    if (
        name not in _RANKS
        or launch.nodes is None
        or name in launch.environment
        or injected(name, launch.container)
        or document.host
    ):
        return False
    known = launch.workload.family in ("job", "jobset", "pytorch", "volcano", "other")
    open_sources = bool(launch.container.node["envFrom"]) or document.file in bundle.filled_in
    return known and launch.process.in_shell and elsewhere is None and not open_sources


def _is_text(path: str) -> bool:
    return path in OWN_FIELDS or _NAMES.fullmatch(path) is not None


@rule("REND027", Level.WARNING, on=Workload)
def no_rank(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Several pods that know a master and a world size, and nothing that tells one from the other."""
    if workload.document.kind not in ("Job", "CronJob", "Deployment") or workload.family not in ("job", "other"):
        return
    yield from _without_command(workload, bundle)
    for each in bundle.launches(workload):
        master = each.variable("MASTER_ADDR")
        mode = each.role.job["completionMode"]
        if each.program != "python" or master is None or single(each.role) or mode.text == "Indexed" or mode.open:
            continue
        if any(name in each.environment for name in (*_RANKS, "JOB_COMPLETION_INDEX", "POD_INDEX")):
            continue
        if each.container.node["envFrom"] or (each.process.in_shell and "RANK" in each.process.node.text):
            continue
        yield Problem(
            master.node,
            f"{_pods(each.role)} are told a master and no RANK, and have no index to take one from: "
            "init_process_group wants it",
            "write completionMode: Indexed and RANK from $(JOB_COMPLETION_INDEX), or start torchrun",
            inside=master.inside if master.how != "env" else "",
        )


def _without_command(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """An image's own entrypoint in several pods: no shell of the manifest can make a RANK of anything."""
    for role in workload.roles:
        main = role.pod.main
        if single(role) or main is None or main.argv or main.node["envFrom"]:
            continue
        held = bundle.environment(main)
        master, world = held.get("MASTER_ADDR"), held.get("WORLD_SIZE")
        if master is None or world is None or world.value == "1" or any(name in held for name in _RANKS):
            continue
        yield Problem(
            master.node,
            f"{_pods(role)} are told a master and a WORLD_SIZE and no RANK, and no command makes one",
            "write completionMode: Indexed and RANK from the annotation batch.kubernetes.io/job-completion-index",
        )


@rule("REND026", Level.ERROR, on=Workload)
def index_of_one_job(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A JobSet's replicas are Jobs of their own, and the completion index begins at 0 in each of them."""
    if workload.family != "jobset":
        return
    for each in bundle.launches(workload):
        jobs, given, nodes = each.role.node["replicas"].number, each.node_rank, each.nodes
        size = each.role.completions
        if jobs is None or jobs < 2 or given is None or nodes is None or size is None or nodes[2] <= size:
            continue
        name = re.fullmatch(r"\$[({]?(\w+)[)}]?", given.written)
        found = each.environment.get(name[1]) if name is not None else None
        path = found.node.at("valueFrom.fieldRef.fieldPath").text if found is not None and found.how == "env" else ""
        if name is not None and (name[1] == "JOB_COMPLETION_INDEX" or _INDEX in path):
            yield Problem(
                given.node,
                f"the completion index begins at 0 in each of the {jobs} Jobs of {each.role.name}, so ranks repeat",
                f"write replicas: 1 and completions: {nodes[2]}, or take the label jobset.sigs.k8s.io/job-index",
                inside=given.inside,
            )
