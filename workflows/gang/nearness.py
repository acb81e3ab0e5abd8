"""The pods of a gang near each other: in Kueue's annotations, a PodGroup's constraint, or what a pod says itself."""

from __future__ import annotations

from typing import Any

from argosy.steps.contract.objects import GANG_LABEL, KUEUE_TOPOLOGY, RUN_LABEL
from argosy.workflows.spec.gang import Gang
from argosy.workflows.spec.run import TrainingRun

_MOST = 100
"""Weight of what is preferred: the largest that Kubernetes knows."""


def topology_annotations(gang: Gang) -> dict[str, str]:
    """Of the pods, for Kueue, which places the whole gang."""
    if gang.placement != "kueue":
        return {}
    levels = {"required": gang.topology.required, "preferred": gang.topology.preferred}
    return {KUEUE_TOPOLOGY.format(how): label for how, label in levels.items() if label}


def group_constraints(gang: Gang) -> dict[str, Any]:
    """``schedulingConstraints`` of the PodGroup; it knows nothing that is merely preferred."""
    required = gang.topology.required
    return {"schedulingConstraints": {"topology": [{"key": required}]}} if required else {}


def nearness(run: TrainingRun) -> dict[str, Any]:
    """The affinity of a pod to those of its own gang; empty where whoever places the gang does more.

    The first pod goes anywhere, since it is one of those that it wants to be near; the others follow it.
    """
    gang = run.gang
    if gang.placement == "kueue":
        return {}
    terms: dict[str, Any] = {}
    if gang.topology.required and gang.placement != "native":
        terms["requiredDuringSchedulingIgnoredDuringExecution"] = [_near(run.name, gang.topology.required)]
    if gang.topology.preferred:
        preferred = {"weight": _MOST, "podAffinityTerm": _near(run.name, gang.topology.preferred)}
        terms["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
    return {"podAffinity": terms} if terms else {}


def _near(name: str, label: str) -> dict[str, Any]:
    # The gang's name is made by the supervisor: a pod looks for those of the run that have the same.
    run = {"matchLabels": {RUN_LABEL: name}}
    return {"labelSelector": run, "matchLabelKeys": [GANG_LABEL], "topologyKey": label}
