"""``argoproj.io`` Workflow and its templates: each template with a container is a pod of its own."""

from __future__ import annotations

from typing import Final

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.made import made_list, made_mapping
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload

# https://argo-workflows.readthedocs.io/en/latest/fields/: what a template says of its pod wins over the workflow.
_OF_BOTH: Final = (
    *("affinity", "automountServiceAccountToken", "hostAliases", "nodeSelector", "priorityClassName", "schedulerName"),
    *("securityContext", "serviceAccountName", "tolerations", "activeDeadlineSeconds"),
)
_OF_THE_WORKFLOW: Final = ("hostNetwork", "dnsPolicy", "dnsConfig", "imagePullSecrets")


def argo(document: Document) -> Workload:
    """A role per template that runs a container, a script or a container set."""
    spec = document.spec["workflowSpec"] or document.spec
    roles = [_role(each, spec, document) for each in spec["templates"] if _containers(each)]
    return Workload(document, "argo", roles, spec)


def _containers(template: Node) -> list[Node]:
    single = [template[key] for key in ("container", "script") if template[key].is_mapping]
    return [*single, *template.at("containerSet.containers")]


def _role(template: Node, workflow: Node, document: Document) -> Role:
    fields = {key: template[key] or workflow[key] for key in _OF_BOTH}
    fields |= {key: workflow[key] for key in _OF_THE_WORKFLOW}
    fields["containers"] = made_list(template, [*_containers(template), *template["sidecars"]])
    fields["initContainers"] = template["initContainers"]
    fields["volumes"] = made_list(template, [*template["volumes"], *workflow["volumes"]])
    metadata = template["metadata"] or workflow["podMetadata"]
    pod = made_mapping(template, {"spec": made_mapping(template, fields), "metadata": metadata})
    policy, replicas = (Node(None, template.origin, template, key) for key in ("restartPolicy", "replicas"))
    return Role(template["name"].text, template, 1, replicas, pod, policy, document)
