"""``JobSet``, and Kubeflow Trainer's kinds, which become one."""

from __future__ import annotations

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.kinds.core import job_role, number
from argosy.workflows.manifests.made import made_list, made_mapping, made_text
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload


def jobset(document: Document) -> Workload:
    """``jobset.x-k8s.io`` JobSet: a Job template per replicated job."""
    return Workload(document, "jobset", _roles(document.spec, document), document.spec)


def trainer_runtime(document: Document) -> Workload:
    """``TrainingRuntime``: a JobSet's spec; the policy's ``numNodes`` is the number of the trainer's pods."""
    spec = document.spec.at("template.spec")
    roles = _roles(spec, document)
    nodes = document.spec.at("mlPolicy.numNodes")
    for role in roles:
        if role.name == "node" and nodes:
            role.replicas, role.replicas_node = nodes.number, nodes
    return Workload(document, "trainer", roles, document.spec)


def trainjob(document: Document) -> Workload:
    """``TrainJob``: the trainer is one container's worth of a pod; the runtime it names has the rest."""
    trainer = document.spec["trainer"]
    replicas = number(trainer["numNodes"], 1)
    fields = {key: trainer[key] for key in ("image", "command", "args", "env")}
    fields |= {"name": made_text(trainer, "node"), "resources": trainer["resourcesPerNode"]}
    containers = made_list(trainer, [made_mapping(trainer, fields)])
    pod = made_mapping(trainer, {"spec": made_mapping(trainer, {"containers": containers})})
    policy = Node(None, trainer.origin, trainer, "restartPolicy")
    role = Role("node", trainer, replicas, trainer["numNodes"], pod, policy, document)
    return Workload(document, "trainer", [role], document.spec)


def _roles(spec: Node, document: Document) -> list[Role]:
    found = []
    for node in spec["replicatedJobs"]:
        times = number(node["replicas"], 1)
        found.append(job_role(node["name"].text, node, node.at("template.spec"), document, times))
    return found
