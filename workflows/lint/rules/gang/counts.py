"""A gang is as many pods as run side by side: completions, parallelism, minimum."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.ranks import launches, option, together
from argosy.workflows.manifests.workload import Workload


def _nodes(role: Role, bundle: Bundle) -> int | None:
    """The number of nodes that the launcher of a role waits for; None when it is not known, or is a range."""
    for container, process in launches(role.pod, bundle):
        text = option(process, container, bundle, "nnodes") or ""
        if text.isdecimal():
            return int(text)
    return None


@rule("GANG019", Level.WARNING, on=Workload)
def side_by_side(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Pods beyond ``parallelism`` start when others have ended, and those wait for them."""
    for role in workload.roles if workload.family != "trainer" else []:  # Trainer writes both numbers itself
        job = role.job
        completions, parallel = job["completions"], job["parallelism"]
        if workload.family == "job" and job["successPolicy"] and job["completionMode"].text != "Indexed":
            message = "successPolicy without completionMode: Indexed, which the API refuses"
            yield Problem(job["successPolicy"], message, "write completionMode: Indexed", level=Level.ERROR)
        # Without both numbers each is 1: kubernetes pkg/apis/batch/v1/defaults.go.
        if job["completionMode"].text == "Indexed" and not completions and parallel:
            message = "an Indexed Job without completions, which the API refuses"
            yield Problem(completions, message, "write completions: the number of pods", level=Level.ERROR)
            continue
        many, width = completions.number, parallel.number if parallel else 1
        if many is None or width is None or many == width or parallel.open:
            continue
        if workload.family == "job" and not _ranks(role, workload, bundle):
            continue
        if workload.family != "job" and not (many > width and (role.pod.gpus or _ranks(role, workload, bundle))):
            continue
        nodes = _nodes(role, bundle)
        stuck = nodes is not None and width < nodes
        written = f"parallelism {width}" if parallel else "parallelism is not written, which means 1"
        if many > width:
            message = f"completions {many} and {written}: at most {width} of the gang's {many} pods ever run together"
        else:
            message = f"parallelism {width} and completions {many}: {width - many} of the pods are never made"
        level = Level.ERROR if stuck and many > width else None
        yield Problem(parallel, message, f"write parallelism: {many}", level=level)


def _ranks(role: Role, workload: Workload, bundle: Bundle) -> bool:
    nodes = _nodes(role, bundle)
    return together(workload, bundle) or (nodes is not None and nodes > 1)
