"""What an operator asks of its kinds beyond the fields: names of containers and roles, how many of a role."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from argosy.steps.contract.objects import RUN_LABEL
from argosy.workflows.lint.finding import Level, Problem, RenameKey, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.workload import Workload

_CONTAINERS: Final = {
    "PyTorchJob": "pytorch",
    "TFJob": "tensorflow",
    "XGBoostJob": "xgboost",
    "PaddleJob": "paddle",
    "JAXJob": "jax",
}
_ROLES: Final = {
    "PyTorchJob": ("Master", "Worker"),
    "TFJob": ("Chief", "Master", "Worker", "PS", "Evaluator"),
    "XGBoostJob": ("Master", "Worker"),
    "PaddleJob": ("Master", "Worker"),
    "JAXJob": ("Worker",),
    "MPIJob": ("Launcher", "Worker"),
}
_ONE: Final = {"PyTorchJob": "Master", "XGBoostJob": "Master", "MPIJob": "Launcher", "TFJob": "Chief"}


@rule("API012", Level.ERROR, on=Workload)
def container_name(workload: Workload) -> Iterator[Problem]:
    """The Training Operator looks for its container by name, to set the environment of the ranks."""
    wanted = _CONTAINERS.get(workload.document.kind)
    # In a run of argosy's, launch gives the ranks their variables.
    ours = bool(workload.document.labels[RUN_LABEL])
    if workload.document.kind in ("TrainingRuntime", "ClusterTrainingRuntime") and not ours:
        yield from _of_runtime(workload)
    if wanted is None or workload.document.group != "kubeflow.org":
        return
    for role in workload.roles:
        containers = role.pod.containers
        if containers and not any(each.name == wanted or each.node["name"].open for each in containers):
            name = containers[0].node["name"]
            edits = [SetValue(name, wanted)] if name and len(containers) == 1 else []
            yield Problem(
                name,
                f"{role.name}: no container is named {wanted}: the operator refuses the {workload.document.kind}",
                f"name the container that trains {wanted}",
                edits,
            )


def _of_runtime(workload: Workload) -> Iterator[Problem]:
    """Trainer finds the job that trains by a label of its template and the container by its name."""
    label = "trainer.kubeflow.org/trainjob-ancestor-step"
    if not workload.roles or workload.document.root.at("metadata.labels")["trainer.kubeflow.org/support"].text:
        return
    trainers = [each for each in workload.roles if each.node.at("template.metadata.labels")[label].text == "trainer"]
    whole = all(each.node["command"] or each.node["args"] for role in workload.roles for each in role.pod.containers)
    if not trainers and not any(each.node.at("template.metadata.labels")[label].open for each in workload.roles):
        yield Problem(
            workload.roles[0].node,
            f"no replicated job of the runtime has the label {label}: trainer in template.metadata: what a TrainJob "
            "says of nodes, command and variables reaches no pod",
            f"write template: {{metadata: {{labels: {{{label}: trainer}}}}}} in the job that trains",
            # Without a policy of torch's a TrainJob has nothing to say to one that holds all commands.
            level=Level.NOTE if whole and not workload.spec.at("mlPolicy.torch").exists else Level.WARNING,
        )
    for role in trainers or [each for each in workload.roles if each.name == "node"]:
        containers = role.pod.containers
        if containers and not any(each.name == "node" or each.node["name"].open for each in containers):
            yield Problem(
                containers[0].node["name"],
                f"no container of {role.name} is named node: Trainer gives the ranks' variables to none",
                "name the container that trains node",
                level=Level.WARNING,
            )


@rule("API013", Level.ERROR, on=Workload)
def role_names(workload: Workload) -> Iterator[Problem]:
    """A replica type that the operator does not know."""
    known = _ROLES.get(workload.document.kind, ())
    if not known or workload.document.group != "kubeflow.org":
        return
    for role in workload.roles:
        # The operator mends the case of its types by itself.
        if role.name.lower() not in [each.lower() for each in known] and "{" not in role.name:
            near = get_close_matches(role.name.capitalize(), known, 1, 0.6)
            free = bool(near) and near[0] not in [each.name for each in workload.roles]
            yield Problem(
                role.node,
                f"{role.name} is no replica type of a {workload.document.kind}, and the operator refuses it",
                f"write {near[0] if near else ' or '.join(known)}",
                [RenameKey(role.node, near[0])] if free else [],
                level=None if near else Level.WARNING,  # a fork's operator may know it
            )


@rule("API014", Level.ERROR, on=Workload)
def one_of_a_role(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """There is one master, one launcher, one chief; XGBoost and MPI cannot be without."""
    kind = workload.document.kind
    name = _ONE.get(kind, "")
    if not name or workload.document.group != "kubeflow.org":
        return
    role = next((each for each in workload.roles if each.name.lower() == name.lower()), None)
    if role is not None and role.replicas is not None and role.replicas != 1:
        more = "the others belong to the workers" if role.replicas > 1 else "write 1"
        level = Level.WARNING if kind == "TFJob" else None
        message = f"{role.replicas} replicas of {name}: a {kind} has one, and the operator refuses another number"
        yield Problem(role.replicas_node, message, f"write replicas: 1; {more}", level=level)
    if role is None and workload.roles and kind in ("XGBoostJob", "MPIJob"):
        yield Problem(
            workload.roles[0].node,
            f"a {kind} without a {name}, which the operator refuses",
            f"add {name} with replicas: 1",
        )
    launches = bundle.launches(workload) if role is None and kind == "PyTorchJob" else []
    # Of a torchrun that is told of several nodes and of no master speaks REND011.
    told = any(each.master_given or each.option("standalone") or each.several_nodes for each in launches)
    if launches and not told and (workload.total or 0) > 1 and not workload.spec["elasticPolicy"]:
        yield Problem(
            workload.roles[0].node,
            "a PyTorchJob without a Master and without elasticPolicy: the operator tells its pods neither a master nor "
            "their ranks",
            "name one pod's role Master, or write elasticPolicy",
            level=Level.WARNING,
        )
