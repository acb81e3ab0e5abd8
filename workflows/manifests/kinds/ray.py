"""``ray.io``: a head, groups of workers, and perhaps a submitter."""

from __future__ import annotations

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.kinds.core import number
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload


def ray_cluster(document: Document) -> Workload:
    """``RayCluster`` and ``RayService``."""
    spec = document.spec["rayClusterConfig"] or document.spec
    return Workload(document, "ray", _roles(spec, document), document.spec)


def ray_job(document: Document) -> Workload:
    """``RayJob``: a cluster of its own, and a pod that submits the entrypoint."""
    roles = _roles(document.spec["rayClusterSpec"], document)
    submitter = document.spec["submitterPodTemplate"]
    if submitter:
        policy = submitter.at("spec.restartPolicy")
        missing = Node(None, submitter.origin, submitter, "replicas")
        roles.append(Role("submitter", submitter, 1, missing, submitter, policy, document, launcher=True))
    return Workload(document, "ray", roles, document.spec)


def _roles(spec: Node, document: Document) -> list[Role]:
    found = []
    head = spec["headGroupSpec"]
    if head:
        template = head["template"]
        policy = template.at("spec.restartPolicy")
        found.append(Role("head", head, 1, head["replicas"], template, policy, document))
    for group in spec["workerGroupSpecs"]:
        template = group["template"]
        replicas = number(group["replicas"] or group["minReplicas"], 1)
        hosts = number(group["numOfHosts"], 1)
        total = None if replicas is None or hosts is None else replicas * hosts
        policy = template.at("spec.restartPolicy")
        found.append(Role(group["groupName"].text, group, total, group["replicas"], template, policy, document))
    return found
