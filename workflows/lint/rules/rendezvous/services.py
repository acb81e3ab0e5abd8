"""The headless Service that gives pods their names."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.workload import Workload


@rule("REND001", Level.ERROR, on=Workload)
def subdomain(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """An Indexed Job sets its pods' hostname and not their subdomain: without one there is no DNS record."""
    del bundle
    for role in workload.roles:
        job = role.job
        if workload.family != "job" or job["completionMode"].text != "Indexed" or not workload.gang:
            continue
        spec = role.template["spec"]
        if not spec["subdomain"]:
            yield Problem(
                spec["subdomain"],
                "an Indexed Job of several pods without a subdomain: its pods have no DNS names",
                "set spec.template.spec.subdomain to the name of a headless Service that selects these pods",
            )
