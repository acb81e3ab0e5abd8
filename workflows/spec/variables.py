"""The run's environment under the rules of ``argosy lint``: what NCCL and torch make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argosy.steps.nccl.checks import check_environment
from argosy.steps.nccl.facts import Facts
from argosy.steps.nccl.finding import EnvironmentFinding
from argosy.steps.nccl.hardware import gpu_model
from argosy.workflows.spec.refusal import Refusal

if TYPE_CHECKING:
    from argosy.workflows.spec.run import TrainingRun


def judge_variables(run: TrainingRun) -> list[EnvironmentFinding]:
    """What is to be said of ``[env]``, with what the run says of its nodes."""
    gang, selected, fabric = run.gang, run.gang.node_selector, run.fabric
    facts = Facts(
        gpu=gpu_model(selected.items()),
        gpus_per_pod=gang.resources.gpu or None,
        nodes=gang.max_nnodes,
        host_network=gang.pod.host_network or fabric.host_network,
        non_root=not fabric.root,
        resources=frozenset({*gang.resources.requests(), *fabric.resources}),
        annotations=frozenset({*gang.pod.annotations, *fabric.annotations}),
        labels=frozenset({*gang.pod.labels, *selected, *(f"{key}={value}" for key, value in selected.items())}),
        image=run.image,
        fabric=fabric.name or None,
        process="ranks",
    )
    return check_environment(run.env, facts)


def check_variables(run: TrainingRun) -> None:
    """Accept an environment without errors.

    Raises:
        Refusal: a variable that does nothing although people believe it does, or with which nothing works.
    """
    for found in judge_variables(run):
        if found.level == "error":
            name = next((name for name in found.variables if name in run.env), found.variables[0])
            rule = f"{found.message} ({found.rule})"
            raise Refusal(rule, found.remedy, field=f"env.{name}", value=run.env.get(name, ""))


def variable_warnings(run: TrainingRun) -> list[str]:
    """What is likely to harm, a sentence each."""
    return [
        f"env.{found.variables[0]}: {found.message}; {found.remedy} ({found.rule})"
        for found in judge_variables(run)
        if found.level == "warning"
    ]
