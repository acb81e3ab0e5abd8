"""``batch.volcano.sh`` Job."""

from __future__ import annotations

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.kinds.core import number
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload


def volcano_job(document: Document) -> Workload:
    """A template per task."""
    roles = []
    for node in document.spec["tasks"]:
        template = node["template"]
        replicas = number(node["replicas"], 1)
        policy = template.at("spec.restartPolicy")
        roles.append(Role(node["name"].text, node, replicas, node["replicas"], template, policy, document))
    return Workload(document, "volcano", roles, document.spec)
