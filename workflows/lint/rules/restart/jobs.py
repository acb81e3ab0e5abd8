"""What the API asks of a Job's restarts, and how a Job counts successes and replaces pods."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import AddKey, Edit, Level, Problem, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.ranks import together
from argosy.workflows.lint.view.workload import Workload


@rule("RESTART005", Level.ERROR, on=Workload)
def never_always(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A Job ends, so its pods cannot restart always; and Always is what a pod template means without a word."""
    if bundle.is_patch(workload.document):
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


@rule("RESTART006", Level.WARNING, on=Workload)
def per_index(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A budget per index is for pieces of work that do not need one another."""
    for role in workload.roles:
        limit = role.job["backoffLimitPerIndex"]
        if limit and role.job["completionMode"].text != "Indexed" and workload.family == "job":
            message = "backoffLimitPerIndex without completionMode: Indexed, which the API refuses"
            yield Problem(limit, message, "write completionMode: Indexed", level=Level.ERROR)
        elif limit and limit.number != 0 and together(workload, bundle):
            yield Problem(
                limit,
                f"backoffLimitPerIndex: {limit.text} in a gang: a failed rank is started again, and a rank that has "
                "used its budget is left out while the others wait for it",
                "write backoffLimit: 0 and restart the whole gang",
            )


@rule("RESTART007", Level.NOTE, on=Workload)
def replacement(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """By default a pod is replaced while the old one still ends."""
    if workload.family != "job" or not together(workload, bundle):
        return
    for role in workload.roles:
        job = role.job
        replaced = job["backoffLimit"].number != 0 and not job["podFailurePolicy"]
        if replaced and not job["podReplacementPolicy"] and not job["backoffLimit"].open:
            yield Problem(
                job["podReplacementPolicy"],
                "podReplacementPolicy is not written: a pod is replaced while the old one still ends, and two pods "
                "hold the same index, host name and checkpoint for a while",
                "write podReplacementPolicy: Failed",
            )


@rule("RESTART008", Level.WARNING, on=Workload)
def success(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A success that is declared while ranks still work kills them, the last checkpoint with them."""
    del bundle
    for role in workload.roles:
        for each in role.job.at("successPolicy.rules"):
            count, completions = each["succeededCount"], role.completions
            if count.number is not None and completions is not None and count.number < completions and workload.gang:
                yield Problem(
                    count,
                    f"succeededCount: {count.text} of {completions}: the other pods are killed when so many have ended",
                    "remove the rule, so that all ranks must end, or name index 0 when it ends last",
                )
        if role.job["successPolicy"] and role.job["completionMode"].text != "Indexed" and workload.family == "job":
            message = "successPolicy without completionMode: Indexed, which the API refuses"
            yield Problem(role.job["successPolicy"], message, "write completionMode: Indexed", level=Level.ERROR)
