"""What the API asks of a Job's restarts."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import AddKey, Edit, Level, Problem, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.workload import Workload


@rule("RESTART005", Level.ERROR, on=Workload)
def never_always(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A Job ends, so its pods cannot restart always; and Always is what a pod template means without a word."""
    if bundle.is_named_patch(workload.document):
        return
    for role in workload.roles:
        if workload.family not in ("job", "jobset", "trainer") or not role.job:
            continue
        policy, spec = role.restart_policy, role.template["spec"]
        if policy.text == "Always":
            message = "restartPolicy: Always in a Job, which the API refuses: a Job's pods must be able to end"
            yield Problem(policy, message, "write restartPolicy: Never", [SetValue(policy, "Never")])
        elif workload.family == "job" and not policy and spec:
            edits: list[Edit] = (
                [SetValue(policy, "Never")] if policy.exists else [AddKey(spec, "restartPolicy", "Never")]
            )
            message = "a Job without a restartPolicy, which the API refuses: the default of a pod is Always"
            yield Problem(policy, message, "write restartPolicy: Never", edits if spec.is_mapping else [])
