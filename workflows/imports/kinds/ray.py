"""RayJob."""

from __future__ import annotations

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.kinds.reasons import RAY, changed_all
from argosy.workflows.imports.source import Source, count
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload

_RAY = (
    "the entrypoint runs once on each rank under torchrun, without Ray; where it is a script of Ray Train "
    '(TorchTrainer), write gang.launcher = "ray" and leave gang.nproc_per_node out'
)
_HEAD = "no Ray runs while the ranks do: the RayJob's head is the gang's first node, made as the others are"
_RUNTIME = "no Ray is started: build its working_dir and pip packages into the image, write env_vars into [env]"


def ray(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """Pods with GPUs are the nodes; the entrypoint is what each of them runs."""
    del bundle
    document = workload.document
    entrypoint = document.spec["entrypoint"]
    if not entrypoint.is_scalar:
        raise InputError(
            f"{document.kind} {document.name!r}: no spec.entrypoint, so nothing says what is trained; name a RayJob "
            "that has one"
        )
    roles = [role for role in workload.roles if not role.launcher]
    training = _training(roles)
    for role in roles:
        if role not in training:
            why = _HEAD if role.name == "head" else _other(role)
            (account.changed if role.name == "head" or not role.replicas else account.lost)(role.node, why)
            if role.name == "head":
                _beside_the_head(role, training[0], account)
            continue
        account.changed(role.node["groupName"], "a gang's nodes are node-0, node-1, …")
        account.changed(role.node["rayStartParams"], "no Ray is started: torchrun starts the ranks")
        for key in ("minReplicas", "maxReplicas", "numOfHosts", "scaleStrategy", "idleTimeoutSeconds"):
            account.changed(role.node[key], "the gang has a fixed number of nodes", "gang.nnodes")
        for key in ("serviceType", "headService", "enableIngress"):
            account.changed(role.node[key], "no Ray is started: torchrun starts the ranks")
    nodes = sum(count(role, account) for role in training)
    cluster = document.spec["rayClusterSpec"]
    for key in ("rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "gcsFaultToleranceOptions", "suspend"):
        account.changed(cluster[key], "no Ray is started")
    changed_all(account, document.spec, RAY)
    account.by_hand(document.spec["runtimeEnvYAML"], _RUNTIME)
    account.lost(document.spec["entrypointResources"], "no Ray is started")
    account.advise(document.root["kind"], _RAY, "gang.launcher")
    return Source(workload, training, (nodes, nodes), entrypoint=entrypoint)


def _beside_the_head(head: Role, trained: Role, account: Account) -> None:
    """What the entrypoint had in the head's pod, and a gang's nodes do not have."""
    one, other = head.pod.main, trained.pod.main
    if one is None or other is None:
        return
    names = {each["name"].text for each in other.node["env"]}
    for item in one.node["env"]:
        if item["name"].text not in names:
            account.by_hand(item, "the entrypoint ran in the head: write it into [env] if the script reads it")
    for path, mount in one.mounts.items():
        if path not in other.mounts:
            account.by_hand(mount, "the entrypoint ran in the head: write [[gang.pod.volumes]] if the script needs it")


def _training(roles: list[Role]) -> list[Role]:
    """Groups with GPUs, else workers, else the head alone; a group of another number of GPUs is another kind."""
    workers = [role for role in roles if role.name != "head" and role.replicas != 0]
    with_gpus = [role for role in [*workers, *roles[:1]] if role.pod.gpus != 0 and role.replicas != 0]
    found = with_gpus or workers or roles[:1]
    if not found:
        raise InputError("a RayJob without rayClusterSpec runs on another cluster; name the pods that train")
    most = max(found, key=lambda role: (role.pod.gpus or 0, role.replicas or 0))
    return [most, *(role for role in found if role is not most and role.pod.gpus == most.pod.gpus)]


def _other(role: Role) -> str:
    if not role.replicas:
        return f"{role.name} has 0 replicas: it has no pods"
    return f"a gang has nodes of one kind: group {role.name!r} has no place in it"
