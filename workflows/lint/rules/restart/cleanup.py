"""What is left when a training has ended: pods that hold their GPUs, or no pod to read the log of."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.contract.objects import RUN_LABEL
from argosy.workflows.lint.finding import AddKey, Edit, Level, Problem, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.workload import Workload


@rule("RESTART031", Level.WARNING, on=Workload)
def workers_stay(workload: Workload) -> Iterator[Problem]:
    """An MPIJob's workers run sshd, which never ends: without a policy they stay when the launcher is done."""
    run = workload.spec["runPolicy"]
    policy = run["cleanPodPolicy"] or workload.spec["cleanPodPolicy"]
    workers = [role for role in workload.roles if not role.launcher]
    if workload.family != "mpi" or policy.open or policy.text not in ("", "None") or not workers:
        return
    if workload.document.labels[RUN_LABEL]:  # its supervisor deletes it, and reads the pods' logs before
        return
    edits: list[Edit] = [SetValue(policy, "Running")] if policy.exists else []
    if not policy.exists and run.is_mapping:
        edits = [AddKey(run, "cleanPodPolicy", "Running")]
    elif not run.exists and workload.document.version == "v2beta1":
        edits = [AddKey(workload.spec, "runPolicy", {"cleanPodPolicy": "Running"})]
    holds = "with their GPUs " if any(role.pod.gpus != 0 for role in workers) else ""
    written = "cleanPodPolicy: None" if policy else "no cleanPodPolicy, which means None"
    yield Problem(
        policy if policy.exists else run["cleanPodPolicy"],
        f"{written}: the workers {holds}run on when the launcher has ended, until somebody deletes the MPIJob",
        "write runPolicy: {cleanPodPolicy: Running}",
        edits,
        level=Level.NOTE if policy and not holds else None,  # who writes the default has thought of it
    )


@rule("RESTART033", Level.WARNING, on=Workload)
def cluster_stays(workload: Workload) -> Iterator[Problem]:
    """A RayJob keeps its cluster unless it is told to shut it down."""
    spec, node = workload.spec, workload.spec["shutdownAfterJobFinishes"]
    if workload.document.kind != "RayJob" or spec["clusterSelector"] or spec["deletionStrategy"] or node.open:
        return
    if node.flag is True:
        return
    ttl = spec["ttlSecondsAfterFinished"]
    if (ttl.number or 0) > 0:
        message = "ttlSecondsAfterFinished without shutdownAfterJobFinishes, which current KubeRay refuses"
        yield Problem(ttl, message, "write shutdownAfterJobFinishes: true")
        return
    asked = [{**each.limits.entries, **each.requests.entries} for pod in workload.pods for each in pod.containers]
    sample = bool(asked) and not any("/" in name for names in asked for name in names)  # on processors alone
    meant = node.flag is False or spec["submissionMode"].text == "InteractiveMode"
    yield Problem(
        node,
        "shutdownAfterJobFinishes is not true: the Ray cluster stays, and holds its nodes, when the job has ended",
        "write shutdownAfterJobFinishes: true and ttlSecondsAfterFinished",
        level=Level.NOTE if meant or sample else None,
    )
