"""``Pod``, ``Job``, ``CronJob``, and what keeps a number of pods alive."""

from __future__ import annotations

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload


def number(node: Node, default: int) -> int | None:
    """A count: the default when it is not written, None when it is filled in later."""
    return node.number if node else default


def job_role(name: str, node: Node, spec: Node, document: Document, times: int | None = 1) -> Role:
    """The role of a ``batch/v1`` JobSpec, of which there are ``times``."""
    template = spec["template"]
    completions = number(spec["completions"], 1)
    parallelism = number(spec["parallelism"], 1)
    each = None if completions is None or parallelism is None else min(parallelism, completions)
    if not spec["completions"]:  # a work queue: as many as run side by side
        each = parallelism
    return Role(
        name=name,
        node=node,
        replicas=None if each is None or times is None else each * times,
        replicas_node=spec["parallelism"],
        template=template,
        restart_policy=template.at("spec.restartPolicy"),
        document=document,
        completions=completions,
        job=spec,
    )


def job(document: Document) -> Workload:
    """``batch/v1`` Job."""
    spec = document.spec
    return Workload(document, "job", [job_role("", spec, spec, document)], spec)


def cron_job(document: Document) -> Workload:
    """``batch/v1`` CronJob."""
    spec = document.spec.at("jobTemplate.spec")
    return Workload(document, "job", [job_role("", spec, spec, document)], spec)


def plain_pod(document: Document) -> Workload:
    """``v1`` Pod."""
    root, spec = document.root, document.spec
    role = Role("", spec, 1, Node(None, root.origin, spec, "replicas"), root, spec["restartPolicy"], document)
    return Workload(document, "pod", [role], spec)


def replicated(document: Document) -> Workload:
    """``apps/v1`` Deployment, StatefulSet, DaemonSet, ReplicaSet."""
    spec = document.spec
    replicas = None if document.kind == "DaemonSet" else number(spec["replicas"], 1)
    template = spec["template"]
    role = Role("", spec, replicas, spec["replicas"], template, template.at("spec.restartPolicy"), document)
    return Workload(document, "other", [role], spec)
