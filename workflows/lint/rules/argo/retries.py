"""What runs again: retryStrategy, and schedules."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.argo_templates import ArgoWorkflow
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
                level=None if retry.entries else Level.NOTE,  # {} is how Argo's own examples write: until it succeeds
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
