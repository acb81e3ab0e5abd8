"""Restarts inside the pod that the other pods know nothing of."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.ranks import option, rejoins, together, torch_launch
from argosy.workflows.manifests.workload import Workload


@rule("RESTART018", Level.WARNING, on=Workload)
def static_restarts(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """With a static rendezvous an agent that starts its ranks again meets nobody."""
    if not together(workload, bundle):
        return
    seen: set[int] = set()
    for role in workload.roles:
        found = torch_launch(role.pod, bundle)
        if found is None or workload.spec["elasticPolicy"]:
            continue
        container, process = found
        restarts = option(process, container, bundle, "max-restarts")
        nodes = option(process, container, bundle, "nnodes") or "1"
        backend = option(process, container, bundle, "rdzv-backend") or "static"
        if not restarts or not restarts.isdecimal() or restarts == "0" or nodes == "1":
            continue
        if backend == "static" and not rejoins(process, container, bundle) and id(process.node.yaml) not in seen:
            seen.add(id(process.node.yaml))
            yield Problem(
                process.node,
                f"--max-restarts={restarts} with a static rendezvous over several pods: the agent of the failed rank "
                "starts its own ranks again, and the other agents know nothing of it",
                "write --max-restarts=0 and restart the gang, or --rdzv-backend=c10d with an endpoint",
                inside="max-restarts" if "max-restarts" in process.node.text else "max_restarts",
            )
