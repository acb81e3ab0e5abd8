"""A PyTorchJob's ``elasticPolicy``, and a RayJob's and an MPIJob's retries."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.workload import Workload


@rule("RESTART019", Level.WARNING, on=Workload)
def elastic(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Bounds that contradict each other, and what an elastic job counts as a success."""
    del bundle
    policy = workload.spec["elasticPolicy"]
    if workload.family != "pytorch" or not policy:
        return
    least, most = policy["minReplicas"].number, policy["maxReplicas"].number
    if least is not None and most is not None and least > most:
        message = f"minReplicas {least} is above maxReplicas {most}"
        yield Problem(policy["minReplicas"], message, "write minReplicas <= maxReplicas", level=Level.ERROR)
    for role in workload.roles:
        if role.name.lower() != "worker" or role.replicas is None:
            continue
        if (least or 0) > role.replicas or (most or role.replicas) < role.replicas:
            yield Problem(
                role.replicas_node if role.replicas_node else role.node,
                f"{role.replicas} workers, outside elasticPolicy's {least or 1} to {most or role.replicas}",
                "write a number of replicas between minReplicas and maxReplicas",
            )
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


@rule("RESTART020", Level.NOTE, on=Workload)
def first_success(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """With elasticPolicy and no master, one worker that ends well makes the job Succeeded."""
    del bundle
    masters = [role for role in workload.roles if role.name.lower() == "master"]
    policy = workload.spec["elasticPolicy"]
    if workload.family == "pytorch" and policy and not masters and workload.gang:
        yield Problem(
            policy,
            "with elasticPolicy the job is Succeeded as soon as any one worker ends well, whatever the others do",
            "read the success from a checkpoint or a marker that the last step writes, not from the job's condition",
        )


@rule("RESTART021", Level.NOTE, on=Workload)
def launcher_retries(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The MPI Operator's launcher is a Job: seven attempts unless it is told otherwise."""
    del bundle
    limit = workload.spec.at("runPolicy.backoffLimit")
    launcher = next((role for role in workload.roles if role.name == "Launcher"), None)
    if workload.family == "mpi" and launcher is not None and not limit and workload.document.version == "v2beta1":
        yield Problem(
            limit,
            "runPolicy.backoffLimit is not written, which means 6: a training that fails is started 7 times",
            "write runPolicy.backoffLimit, and waitForWorkersReady if the launcher's first attempts come too early",
        )
