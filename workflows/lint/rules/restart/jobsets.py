"""A JobSet's restarts: whether there are any, that they leave nothing of the old gang, rules that match nothing."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import AddKey, Edit, Level, Problem, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.ranks import argo_template
from argosy.workflows.manifests.workload import Workload


def _spec(workload: Workload) -> Node:
    if workload.family == "jobset":
        return workload.spec
    return workload.spec.at("template.spec")  # of a TrainingRuntime; missing for a TrainJob


@rule("RESTART013", Level.NOTE, on=Workload)
def no_restarts(workload: Workload) -> Iterator[Problem]:
    """Without a failure policy the first failed Job ends a JobSet."""
    policy = _spec(workload)["failurePolicy"]
    if workload.family != "jobset" or not workload.gang or argo_template(workload) is not None:
        return
    restarts = policy["maxRestarts"]
    if restarts.open or (restarts.number or 0) > 0 or policy["rules"]:
        return
    what = "maxRestarts is 0" if policy else "no failurePolicy"
    yield Problem(
        restarts if restarts else policy,
        f"{what}: the first pod that fails ends the JobSet, and a lost node ends the training",
        "write failurePolicy: {maxRestarts: 3, restartStrategy: BlockingRecreate}, and resume from a checkpoint",
    )


def _ends_first(workload: Workload, role: Role) -> bool:
    """Whether others of the JobSet start when it has completed, so that no rank of it is left."""
    name = role.name
    waited = (each for other in workload.roles for each in other.node["dependsOn"] if each["name"].text == name)
    return any(each["status"].text == "Complete" for each in waited)


@rule("RESTART014", Level.NOTE, on=Workload)
def overlap(workload: Workload) -> Iterator[Problem]:
    """Recreate makes each Job anew as soon as its own pods are gone."""
    policy = _spec(workload)["failurePolicy"]
    strategy = policy["restartStrategy"]
    jobs = sum(role.node["replicas"].number or 1 for role in workload.roles if not _ends_first(workload, role))
    if (policy["maxRestarts"].number or 0) < 1 or jobs < 2 or strategy.open:
        return
    if (strategy.text or "Recreate") == "Recreate":
        edits: list[Edit] = [SetValue(strategy, "BlockingRecreate")] if strategy else []
        if not strategy.exists and policy.is_mapping:
            edits = [AddKey(policy, "restartStrategy", "BlockingRecreate")]
        yield Problem(
            strategy,
            f"restartStrategy Recreate with {jobs} Jobs: each is made anew while pods of the others still run, so new "
            "ranks meet old ones at the rendezvous and at the checkpoint",
            "write restartStrategy: BlockingRecreate",
            edits,
        )


@rule("RESTART016", Level.WARNING, on=Workload)
def any_success(workload: Workload) -> Iterator[Problem]:
    """``operator: Any`` without targets: the first Job that completes ends all."""
    policy = _spec(workload)["successPolicy"]
    jobs = sum(role.node["replicas"].number or 1 for role in workload.roles)
    if policy["operator"].text == "Any" and not policy["targetReplicatedJobs"] and jobs > 1:
        yield Problem(
            policy["operator"],
            f"the first of {jobs} Jobs that completes makes the JobSet a success, and the others are deleted",
            "write operator: All, or name the job that ends last in targetReplicatedJobs",
        )
