"""``podFailurePolicy``: what the API refuses, and what never matches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import AddKey, Edit, Level, Problem, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.ranks import torch_launch
from argosy.workflows.manifests.workload import Workload

_ACTIONS: Final = ("FailJob", "Ignore", "Count", "FailIndex")
# What a container whose main process is torchrun exits with: 1, or 137 when the kernel kills all of it.
_OF_TORCHRUN: Final = (1, 137)
_OWN_EXIT: Final = re.compile(r"\bexit\s+[^0\s]|\btrap\b")


def _rules(workload: Workload) -> Iterator[tuple[Role, Node]]:
    for role in workload.roles:
        for each in role.job.at("podFailurePolicy.rules"):
            yield role, each


@rule("RESTART010", Level.ERROR, on=Workload)
def refused(workload: Workload) -> Iterator[Problem]:
    """A policy, and rules of it, that the API refuses."""
    yield from _needs_never(workload)
    for role, each in _rules(workload):
        action, codes = each["action"], each["onExitCodes"]
        yield from _action(role, action)
        if codes and each["onPodConditions"].items:  # an empty list counts for nothing
            yield Problem(each, "a rule with onExitCodes and onPodConditions, which the API refuses", "write two rules")
        names = [container.name for container in role.pod.all_containers]
        name = codes["containerName"]
        if name.text and not name.open and names and name.text not in names:
            yield Problem(
                name,
                f"the rule asks for the exit code of {name.text!r}, and no container of the template has that name: "
                "the API refuses it",
                f"write {' or '.join(names)}",
            )
        for value in codes["values"] if codes["operator"].text == "In" else []:
            if value.number == 0:
                yield Problem(value, "exit code 0 is no failure, and the API refuses it here", "remove it")


def _needs_never(workload: Workload) -> Iterator[Problem]:
    """A container that the kubelet restarts in place never fails its pod: the API wants Never."""
    for role in workload.roles:
        policy, spec = role.restart_policy, role.template["spec"]
        if not role.job["podFailurePolicy"] or policy.open or policy.text in ("Never", "Always"):
            continue
        if not policy and workload.family == "job":
            continue  # RESTART005: refused for that alone
        has = f"restartPolicy: {policy.text}" if policy else "JobSet's default restartPolicy, OnFailure"
        edits: list[Edit] = [SetValue(policy, "Never")] if policy.exists else [AddKey(spec, "restartPolicy", "Never")]
        yield Problem(
            policy,
            f"podFailurePolicy with {has}: the API refuses it, for a container that restarts in place fails no pod",
            "write restartPolicy: Never",
            edits if spec.is_mapping else [],
        )


def _action(role: Role, action: Node) -> Iterator[Problem]:
    if action.is_scalar and not action.open and action.text not in _ACTIONS:
        near = next((each for each in _ACTIONS if each.lower() == action.text.lower()), "")
        edits = [SetValue(action, near)] if near else []
        yield Problem(action, f"{action.text!r} is no action of a rule", f"write {near or ', '.join(_ACTIONS)}", edits)
    elif action.text == "FailIndex" and not role.job["backoffLimitPerIndex"]:
        message = "FailIndex without backoffLimitPerIndex, which the API refuses"
        yield Problem(action, message, "write FailJob: the ranks of a gang do not go on without one of them")


@rule("RESTART011", Level.WARNING, on=Workload)
def never_returned(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Exit codes that torchrun never returns."""
    for role, each in _rules(workload):
        codes = each["onExitCodes"]
        found = torch_launch(role.pod, bundle)
        if found is None or codes["operator"].text != "In" or _OWN_EXIT.search(found[1].node.text):
            continue
        name = codes["containerName"].text
        values = [value.number for value in codes["values"]]
        if (
            values
            and (not name or name == found[0].name)
            and not set(values) & set(_OF_TORCHRUN)
            and None not in values
        ):
            yield Problem(
                codes["values"],
                f"{found[1].program} exits with 1 whatever its ranks exit with, so a rule for "
                f"{', '.join(map(str, values))} never matches",
                "match 1, or start the ranks by something that keeps their exit code",
            )
