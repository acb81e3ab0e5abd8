"""The gang, rendered: who makes its pods, and what has to be there before them.

The supervisor reads it from a raw artifact and changes only identity (names, labels, the channel's address and
token), excluded nodes and, when elastic, the number of nodes. One owner of restarts: a runtime's own are off, always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy.steps.contract.objects import KAI_QUEUE, KUEUE_PRIORITY, KUEUE_QUEUE, RUN_LABEL, SPARES_ANNOTATION
from argosy.workflows.gang.nearness import group_constraints
from argosy.workflows.gang.node import SCHEDULERS, node_template
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.yaml_text import to_yaml

_TRAINER = "trainer.kubeflow.org/v1alpha1"
REPLACED_PODS = 20
"""So many lost pods a gang with spares outlives: the Job makes each again, which then stands by; it starts no rank."""


def gang_yaml(run: TrainingRun, code_digest: str = "") -> str:
    """:func:`gang_documents` as YAML text: printable ASCII without Argo placeholders."""
    return "---\n".join(to_yaml(document) for document in gang_documents(run, code_digest))


def gang_documents(run: TrainingRun, code_digest: str = "") -> list[dict[str, Any]]:
    """PodGroup (native, volcano, coscheduling), Service (job), TrainingRuntime (trainjob), the workload: in the order
    of creation.

    ``metadata.name`` is a stand-in that the supervisor replaces for every gang. ``code_digest`` is the SHA-256 of the
    code archive; empty: the code is in the image.
    """
    groups = {"native": _pod_group, "volcano": _volcano_group, "coscheduling": _coscheduling_group}
    grouped = run.gang.placement in groups and run.gang.runtime != "volcano"  # its Jobs make groups of their own
    found = [groups[run.gang.placement](run)] if grouped else []
    if run.gang.runtime == "job":
        found.append(_service(run))
    if run.gang.runtime == "trainjob":
        found.append(_training_runtime(run, code_digest))
    return [*found, _WORKLOADS[run.gang.runtime](run, code_digest)]


def _job_set(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    spec = {**_replicated_job(run, code_digest, failurePolicy={"maxRestarts": 0}), **_suspended(run)}
    return _workload(run, "jobset.x-k8s.io/v1alpha2", "JobSet", spec)


def _replicated_job(run: TrainingRun, code_digest: str, **policy: Any) -> dict[str, Any]:
    return {
        # Ranks find each other before any of them is ready.
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        **policy,
        "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": _job(run, code_digest)}}],
    }


def _training_runtime(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    """The gang's own: nobody else's runtime is looked up, and nothing of ours is left in the cluster.

    Without a failurePolicy a JobSet never restarts; Trainer 2.1 drops a 0 in one, and may not write the rest back then.
    """
    spec = {"template": {"spec": _replicated_job(run, code_digest)}}
    return _object(run, _TRAINER, "TrainingRuntime", spec)


def _train_job(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    reference = {"apiGroup": _TRAINER.partition("/")[0], "kind": "TrainingRuntime", "name": run.name}
    spec = {"runtimeRef": reference, "trainer": {"numNodes": run.gang.max_nnodes}, **_suspended(run)}
    return _workload(run, _TRAINER, "TrainJob", spec)


def _indexed_job(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    return _workload(run, "batch/v1", "Job", {**_job(run, code_digest), **_suspended(run)})


def _job(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    return {
        "completionMode": "Indexed",
        "completions": run.gang.max_nnodes + run.gang.spares,
        "parallelism": run.gang.max_nnodes + run.gang.spares,
        "backoffLimit": REPLACED_PODS if run.gang.spares else 0,
        "template": node_template(run, code_digest),
    }


def _pytorch_job(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    """Workers only: beside a Master the operator gives them an init container, which *restricted* refuses."""
    workers = _replicas(run, code_digest, run.gang.max_nnodes, "pytorch")
    spec = {"runPolicy": _run_policy(run), "pytorchReplicaSpecs": {"Worker": workers}}
    return _workload(run, "kubeflow.org/v1", "PyTorchJob", spec)


def _tf_job(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    """Workers only: one of them is the chief anyway."""
    workers = _replicas(run, code_digest, run.gang.max_nnodes, "tensorflow")
    spec = {"runPolicy": _run_policy(run), "tfReplicaSpecs": {"Worker": workers}}
    return _workload(run, "kubeflow.org/v1", "TFJob", spec)


def _xgboost_job(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    """Its Master is the first node; the operator insists on exactly one."""
    spec = {
        "runPolicy": _run_policy(run),
        "xgbReplicaSpecs": _first_and_others(run, code_digest, "Master", "xgboost"),
    }
    return _workload(run, "kubeflow.org/v1", "XGBoostJob", spec)


def _mpi_job(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    """The launcher is the first node and runs what the workers run; nobody logs in by ssh."""
    spec = {
        "runPolicy": _run_policy(run),
        "runLauncherAsWorker": True,
        "slotsPerWorker": run.gang.nproc_per_node,
        "sshAuthMountPath": "/argosy/ssh",  # root's home is not ours to hide
        "mpiReplicaSpecs": _first_and_others(run, code_digest, "Launcher"),
    }
    return _workload(run, "kubeflow.org/v2beta1", "MPIJob", spec)


def _volcano_job(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    """One task without policies: Volcano restarts only what a policy names, and places all of ``minAvailable``."""
    spec = {
        "schedulerName": SCHEDULERS["volcano"],
        **_volcano_wants(run, "minAvailable"),
        "tasks": [{"name": "node", "replicas": run.gang.max_nnodes, "template": node_template(run, code_digest)}],
    }
    return _workload(run, "batch.volcano.sh/v1alpha1", "Job", spec)


def _ray_job(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    """Its head is the first node, its only group the others; InteractiveMode: nobody submits but the supervisor.

    launch is the command in all of them. A suspended RayJob has to be one that KubeRay shuts down, and KubeRay looks
    at ``suspend`` again only in one that has a ``jobId``.
    """
    others = run.gang.max_nnodes - 1
    group = {"groupName": "node", "replicas": others, "minReplicas": others, "maxReplicas": others}
    suspended = _suspended(run)
    spec = {
        "submissionMode": "InteractiveMode",
        "backoffLimit": 0,
        **suspended,
        **({"shutdownAfterJobFinishes": True, "jobId": run.name} if suspended else {}),
        "rayClusterSpec": {
            "headGroupSpec": _ray_node(run, code_digest),
            "workerGroupSpecs": [group | _ray_node(run, code_digest)] if others else [],
        },
    }
    document = _workload(run, "ray.io/v1", "RayJob", spec)
    document["metadata"]["annotations"] = {"ray.io/overwrite-container-cmd": "true"}
    return document


def _ray_node(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    """The probes stand in the place of KubeRay's own, which ask Ray's dashboard; the channel knows who lives.

    On a busy node a probe may come too late: then the pod must not be killed, nor count as not ready for long, which a
    queue that waits for ready pods would not stand.
    """
    template = node_template(run, code_digest)
    probe = {"exec": {"command": ["true"]}, "timeoutSeconds": 30}
    often = {"livenessProbe": 3600, "readinessProbe": 30}
    template["spec"]["containers"][0] |= {name: {**probe, "periodSeconds": each} for name, each in often.items()}
    return {"rayStartParams": {}, "template": template}


def _run_policy(run: TrainingRun) -> dict[str, Any]:
    return {"backoffLimit": 0, "cleanPodPolicy": "None", **_suspended(run)}


def _first_and_others(
    run: TrainingRun, code_digest: str, first: str, container: str = "main"
) -> dict[str, dict[str, Any]]:
    """``first`` is one pod; without other nodes there are no Workers."""
    others = run.gang.max_nnodes - 1
    counts = {first: 1} | ({"Worker": others} if others else {})
    return {role: _replicas(run, code_digest, count, container) for role, count in counts.items()}


def _replicas(run: TrainingRun, code_digest: str, count: int, container: str = "main") -> dict[str, Any]:
    """Kubeflow's: the Training Operator knows the ranks' container by its name."""
    template = node_template(run, code_digest, container)
    del template["spec"]["restartPolicy"]  # the operator warns of one beside its own
    return {"replicas": count, "restartPolicy": "Never", "template": template}


_WORKLOADS: Mapping[str, Callable[[TrainingRun, str], dict[str, Any]]] = {
    "jobset": _job_set,
    "job": _indexed_job,
    "pytorchjob": _pytorch_job,
    "tfjob": _tf_job,
    "xgboostjob": _xgboost_job,
    "mpijob": _mpi_job,
    "trainjob": _train_job,
    "volcano": _volcano_job,
    "rayjob": _ray_job,
}


def _suspended(run: TrainingRun) -> dict[str, bool]:
    return {"suspend": True} if run.gang.placement == "kueue" else {}


def _workload(run: TrainingRun, api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    queue = KAI_QUEUE if run.gang.placement == "kai" else KUEUE_QUEUE
    labels = {queue: run.gang.queue, KUEUE_PRIORITY: run.gang.queue_priority}
    document = _object(run, api_version, kind, spec)
    if run.gang.placement in ("kueue", "kai"):
        document["metadata"]["labels"] |= {name: value for name, value in labels.items() if value}
    if run.gang.spares:
        document["metadata"]["annotations"] = {SPARES_ANNOTATION: str(run.gang.spares)}
    return document


def _service(run: TrainingRun) -> dict[str, Any]:
    # Ranks find each other before any of them is ready.
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {RUN_LABEL: run.name}}
    return _object(run, "v1", "Service", spec)


def _pod_group(run: TrainingRun) -> dict[str, Any]:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": run.gang.max_nnodes}},
        # A part of a gang is of no use: whoever needs its nodes takes all of them.
        "disruptionMode": {"all": {}},
        **group_constraints(run.gang),
        **_priority(run),
    }
    return _object(run, "scheduling.k8s.io/v1beta1", "PodGroup", spec)


def _coscheduling_group(run: TrainingRun) -> dict[str, Any]:
    """How long its pods wait for each other, on nodes that nobody else gets meanwhile, is its scheduler's affair."""
    return _object(run, "scheduling.x-k8s.io/v1alpha1", "PodGroup", {"minMember": run.gang.max_nnodes})


def _volcano_group(run: TrainingRun) -> dict[str, Any]:
    return _object(run, "scheduling.volcano.sh/v1beta1", "PodGroup", _volcano_wants(run, "minMember"))


def _volcano_wants(run: TrainingRun, least: str) -> dict[str, Any]:
    """Of a group of Volcano's: its queue, ``least`` pods or none of them, and whom it may preempt."""
    return {"queue": run.gang.queue or "default", least: run.gang.min_nnodes, **_priority(run)}


def _priority(run: TrainingRun) -> dict[str, str]:
    return {"priorityClassName": run.gang.priority_class} if run.gang.priority_class else {}


def _object(run: TrainingRun, api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": run.name, "labels": {RUN_LABEL: run.name}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
