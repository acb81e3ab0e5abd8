"""What runs again: retryStrategy, and schedules."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.argo_templates import ArgoWorkflow
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.duration import seconds


@rule("ARGO015", Level.WARNING, on=ArgoWorkflow)
def without_end(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """A retryStrategy without limit retries for ever."""
    for template in workflow.templates:
        retry = template.retry
        if retry.exists and not retry["limit"] and not retry["expression"] and not retry.at("backoff.maxDuration"):
            yield Problem(
                retry if retry else template.node["name"] or template.node,
                "retried without a limit: a step that cannot succeed runs for ever",
                "set limit, the number of retries after the first attempt",
            )


@rule("ARGO016", Level.WARNING, on=ArgoWorkflow)
def deadline(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """``maxDuration`` counts from the first attempt and becomes the deadline of the later ones."""
    for template in workflow.templates:
        node = template.retry.at("backoff.maxDuration")
        if node and template.kind in ("container", "script", "resource", "containerSet"):
            active = template.field("activeDeadlineSeconds").number
            length = seconds(node.text)
            if active is not None and length is not None and length > 2 * active:
                continue  # long enough for a second attempt of full length
            yield Problem(
                node,
                f"maxDuration: {node.text} counts from the start of the first attempt and cuts off every later one: a "
                "training that ran as long before it failed is not retried",
                "use cap for the longest pause, and limit for the number of attempts",
            )


@rule("ARGO017", Level.WARNING, on=ArgoWorkflow)
def lost_pods(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """A pod that is evicted, or whose node dies, is an Error and no Failure."""
    for template in workflow.templates:
        retry = template.retry
        leaf = template.kind in ("container", "script", "resource", "containerSet")
        policy = retry["retryPolicy"]
        if not retry or not leaf or policy.open:
            continue
        if policy.text == "OnFailure" or (not policy and not retry["expression"]):
            yield Problem(
                policy or retry,
                f"retried {'OnFailure' if policy else 'OnFailure (the default)'}: an evicted pod or a lost node is an "
                "Error, and is not retried",
                "set retryPolicy: Always, or an expression that tells which ends are worth another attempt",
                level=Level.WARNING if policy else Level.NOTE,
            )


@rule("ARGO018", Level.WARNING, on=ArgoWorkflow)
def each_rank(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """Ranks as items of a loop, each of which is retried alone."""
    for template in workflow.templates:
        for call in template.calls:
            target = workflow.of(call)
            if not call.loop or target is None or not target.joins_others:
                continue
            alone = target.retry.exists
            yield Problem(
                target.retry if target.retry else call.loop,
                f"the ranks of {target.name!r} are pods of their own"
                + (
                    ", retried one by one: the others hang until their timeout"
                    if alone
                    else ": nothing starts them together, and one that waits for room holds up the rest"
                ),
                "make the gang one object (a JobSet by a resource template), and retry that",
            )


@rule("ARGO039", Level.WARNING, on=Document)
def side_by_side(document: Document) -> Iterator[Problem]:
    """A schedule that starts a second run while the first still trains."""
    if not document.is_a("CronWorkflow", "argoproj.io"):
        return
    policy = document.spec["concurrencyPolicy"]
    if not policy or policy.text == "Allow":
        yield Problem(
            policy,
            "concurrencyPolicy Allow"
            + ("" if policy else ", the default")
            + ": a run that takes longer than its interval "
            "is joined by the next, on the same data and checkpoints",
            "set concurrencyPolicy: Forbid (or Replace)",
        )
