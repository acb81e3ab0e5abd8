"""The workflow as a whole: how it is submitted, kept and repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule

_AN_HOUR: Final = 3600


@rule("ARGO037", Level.NOTE, on=Document)
def gone_too_soon(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A failed workflow that is deleted before anybody looks."""
    workflow = bundle.argo(document)
    if workflow is None:
        return
    strategy = workflow.spec["ttlStrategy"]
    for key in ("secondsAfterFailure", "secondsAfterCompletion"):
        number = strategy[key].number
        if (
            number is not None
            and number < _AN_HOUR
            and not (key.endswith("Completion") and strategy["secondsAfterFailure"])
        ):
            yield Problem(
                strategy[key],
                f"a failed workflow is deleted after {number} seconds, and what it owns with it",
                "keep failed ones for days: secondsAfterFailure: 604800",
            )


@rule("ARGO038", Level.NOTE, on=Document)
def default_account(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Pods of a workflow report their results to the API, which the default account may not."""
    workflow = bundle.argo(document)
    if workflow is None or workflow.refers or document.host is not None:
        return
    each_own = workflow.templates and all(
        template.field("serviceAccountName") or template.kind in ("dag", "steps", "suspend")
        for template in workflow.templates
    )
    if not workflow.spec["serviceAccountName"] and not each_own:
        yield Problem(
            workflow.spec["serviceAccountName"],
            "no serviceAccountName: pods run as default, which as a rule may not create workflowtaskresults, nor the "
            "objects of a resource template",
            "name an account with the rights that the executor needs",
        )


@rule("ARGO039", Level.WARNING, on=Document)
def side_by_side(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A schedule that starts a second run while the first still trains."""
    del bundle
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


@rule("ARGO040", Level.NOTE, on=Document)
def dropped(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """``argo submit FILE`` makes the workflows of a file and nothing else."""
    if document.kind != "Workflow" or document.host is not None or document.group != "argoproj.io":
        return
    others = [each for each in bundle.beside(document) if each.host is None]
    mixed = sorted({each.kind for each in others if each.group != "argoproj.io" and each.kind})
    if mixed and document is next(each for each in others if each.kind == "Workflow"):
        yield Problem(
            document.root["kind"],
            f"argo submit takes the Workflow of this file and drops its {', '.join(mixed)}",
            "use kubectl create -f, or keep them in another file that is applied first",
        )
