"""A PyTorchJob's ``elasticPolicy``, and a RayJob's and an MPIJob's retries."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.workload import Workload


@rule("RESTART019", Level.WARNING, on=Workload)
def elastic(workload: Workload) -> Iterator[Problem]:
    """Whether a lost worker comes back, and the ranks with it; of its bounds REND041 speaks."""
    policy = workload.spec["elasticPolicy"]
    if workload.family != "pytorch" or not policy:
        return
    least, most = policy["minReplicas"].number, policy["maxReplicas"].number
    for role in workload.roles:
        if role.name.lower() != "worker" or role.replicas is None:
            continue
        if role.restart_policy.text == "Never" and (most or 0) > (least or 0):
            yield Problem(
                role.restart_policy,
                "restartPolicy: Never in an elastic job: a worker that is lost does not come back, so the job only "
                "shrinks",
                "write restartPolicy: OnFailure, or fix the number of workers",
            )
    if policy["maxRestarts"].number in (None, 0) and not policy["maxRestarts"].open:
        yield Problem(
            policy["maxRestarts"],
            "elasticPolicy without maxRestarts: torchrun starts its ranks again 0 times, so the first change of "
            "membership ends the job",
            "write maxRestarts: as many failures and changes of membership as the job may see",
        )
