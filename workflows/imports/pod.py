"""The pod's template into ``[gang]`` and ``[gang.pod]``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.steps.contract.objects import RUN_LABEL
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.besides import STAGED, TRANSFERS
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.placement import GROUPED_BY, POD_MARKS
from argosy.workflows.imports.resources import take_resources
from argosy.workflows.imports.volumes import take_volumes, without_nulls
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod

_RESTRICTED: Final = "argosy's pods are Pod Security restricted: user 1000, no privileges; a fabric adds what it needs"
_CONTAINER: Final = {
    "ports": "ranks meet over argosy's channel, and pods need no declared port",
    "livenessProbe": "heartbeats over argosy's channel find a rank that hangs: see deadlines.hang_seconds",
    "readinessProbe": "no rank starts before all nodes have checked in",
    "startupProbe": "see deadlines.check_in_seconds",
    "tty": "output is kept line by line",
    "stdin": "a training reads no standard input",
    "stdinOnce": "a training reads no standard input",
    "terminationMessagePath": "argosy writes the verdict there",
    "terminationMessagePolicy": "argosy writes the verdict there",
    "securityContext": _RESTRICTED,
    "restartPolicy": "argosy's supervisor owns restarts: see [retry]",
}
_POD: Final = {
    "restartPolicy": "argosy's supervisor owns restarts: see [retry]",
    "subdomain": "argosy's gang has its own names",
    "hostname": "argosy's gang has its own names",
    "setHostnameAsFQDN": "argosy's gang has its own names",
    "schedulingGates": "gang.placement says who places the gang",
    "automountServiceAccountToken": "the gang's pods get no API token",
    "securityContext": _RESTRICTED,
    "enableServiceLinks": "the channel is named in the environment",
    "dnsPolicy": "ClusterFirst, or with gang.pod.host_network ClusterFirstWithHostNet",
    "hostIPC": "every pod has its own /dev/shm in memory: see gang.shm_size",
}
_LOST: Final = {
    "topologySpreadConstraints": "a gang is placed by gang.pod.affinity and gang.node_selector",
    "resourceClaims": "argosy asks for devices by gang.resources only",
    "hostAliases": "names come from the cluster's DNS",
    "dnsConfig": "names come from the cluster's DNS",
    "hostPID": "a gang's pods see their own processes only",
    "shareProcessNamespace": "a gang's pods have one container",
}
_NAMES: Final = {
    "serviceAccountName": "gang.service_account",
    "serviceAccount": "gang.service_account",
    "priorityClassName": "gang.priority_class",
    "schedulerName": "gang.pod.scheduler",
    "runtimeClassName": "gang.pod.runtime_class",
}
_OPERATORS: Final = (
    *("kueue.x-k8s.io/", "batch.kubernetes.io/", "training.kubeflow.org/", "jobset.sigs.k8s.io/", "ray.io/"),
    *("volcano.sh/", "scheduling.volcano.sh/", "scheduling.k8s.io/group-name", "scheduling.x-k8s.io/pod-group"),
    *("trainer.kubeflow.org/", "pod-group.scheduling.sigs.k8s.io", "kai.scheduler/", "scheduling.run.ai/"),
)
_UNPREFIXED: Final = ("job-name", "controller-uid", "pytorch-job-name")
_NAMING: Final = ("job-name", "jobset-name", "ray.io/cluster")
"""So do labels end that say which object's the pod is: another's may be meant, which keeps its name."""
_FINDING: Final = ("app", RUN_LABEL)


def take_pod(pod: Pod, container: Container, draft: Draft, account: Account) -> None:
    """Write everything of the template but the command and the environment."""
    _marks(pod, draft, account)
    _names(pod, draft, account)
    _flags(pod, draft, account)
    _scheduling(pod, draft, account)
    take_resources(container, draft, account)
    take_volumes(pod, container, draft, account)
    policy = container.node["imagePullPolicy"]
    if policy:
        draft.put("gang.pod.image_pull_policy", policy.text, policy)
        account.kept(policy, "gang.pod.image_pull_policy")
    for key, why in _CONTAINER.items():
        account.changed(container.node[key], why)
    account.lost(container.node["lifecycle"], "a run has no hooks: do it in the script, which gets SIGTERM")
    account.changed(
        container.node["name"], "the container that trains is named as gang.runtime wants it", "gang.runtime"
    )
    for each in pod.all_containers:
        if each.node.yaml is not container.node.yaml:
            _other(each, account)


def _marks(pod: Pod, draft: Draft, account: Account) -> None:
    wanted = {key for _, key, _ in _selected(pod)}
    for kind in ("labels", "annotations"):
        for key, value in pod.metadata[kind].entries.items():
            if key in POD_MARKS:
                continue
            if _of_controllers(key):
                account.changed(value, "set by its controller")
            elif kind == "labels" and key in _FINDING and key not in wanted:
                account.changed(value, "argosy's gang is found by its own labels")
            elif key == "sidecar.istio.io/inject" and kind == "annotations":
                draft.put_item("gang.pod.labels", key, value.text, value)
                account.changed(value, "Istio reads it as a label now", f"gang.pod.labels.{key}")
            elif value.is_scalar:
                draft.put_item(f"gang.pod.{kind}", key, value.text, value)
                account.kept(value, f"gang.pod.{kind}")
            else:
                account.by_hand(value, f"{kind} are text")
    account.changed(pod.metadata["name"], "argosy's gang has its own names")
    account.changed(pod.metadata["creationTimestamp"], "written by the cluster")


def _names(pod: Pod, draft: Draft, account: Account) -> None:
    for key, field in _NAMES.items():
        node = pod.spec[key]
        if key == "schedulerName" and node.text == "default-scheduler":
            account.changed(node, "that is the cluster's own")
        elif node.is_scalar and node.text not in GROUPED_BY:
            draft.put(field, node.text, node)
            account.kept(node, field)
    for each in pod.spec["imagePullSecrets"]:
        if each["name"].is_scalar:
            draft.append("gang.pod.image_pull_secrets", each["name"].text, each["name"])
            account.kept(each["name"], "gang.pod.image_pull_secrets")


def _flags(pod: Pod, draft: Draft, account: Account) -> None:
    node = pod.spec["hostNetwork"]
    if pod.host_network:
        draft.put("gang.pod.host_network", True, node)
    if node.flag is not None:
        account.kept(node, "gang.pod.host_network")
    for key, why in _POD.items():
        account.changed(pod.spec[key], why)
    for key, why in _LOST.items():
        account.lost(pod.spec[key], why)
    for key, field in (
        ("activeDeadlineSeconds", "deadlines.run_seconds"),
        ("terminationGracePeriodSeconds", "deadlines.grace_seconds"),
    ):
        number = pod.spec[key].number
        if number is not None and number > 0:
            draft.put(field, number, pod.spec[key])
            account.kept(pod.spec[key], field)


def _scheduling(pod: Pod, draft: Draft, account: Account) -> None:
    spec = pod.spec
    for key, value in spec["nodeSelector"].entries.items():
        if value.is_scalar:
            draft.put_item("gang.node_selector", key, value.text, value)
            account.kept(value, "gang.node_selector")
    if spec["affinity"].is_mapping and (held := without_nulls(spec["affinity"].data)):
        foreign = [(kind, key) for kind, key, value in _selected(pod) if _of_controllers(key)
                   and not (key.endswith(_NAMING) and not value.startswith(pod.document.name))]  # fmt: skip
        for kind, key in dict(foreign).items():
            held.pop(kind, None)
            why = f"no pod of the gang has {key}: write one of gang.pod.labels into gang.pod.affinity instead"
            account.by_hand(spec.at(f"affinity.{kind}"), why, "gang.pod.affinity")
        if held:
            draft.put("gang.pod.affinity", held, spec["affinity"])
        for part in [spec["affinity"]] if not foreign else [spec["affinity"][key] for key in held]:
            account.kept(part, "gang.pod.affinity")
    for each in spec["tolerations"]:
        _toleration(each, draft, account)


def _selected(pod: Pod) -> Iterator[tuple[str, str, str]]:
    """(podAffinity or podAntiAffinity, key, value) of the labels that required terms select; any value: ``""``."""
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in pod.spec["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"]:
            selector = term["labelSelector"]
            for key, value in selector["matchLabels"].entries.items():
                yield kind, key, value.text
            for each in selector["matchExpressions"]:
                if each["operator"].text in ("In", "Exists"):
                    yield kind, each["key"].text, next((value.text for value in each["values"]), "")


def _of_controllers(key: str) -> bool:
    """Whether the pods of a run cannot have this label, or not with the value that the manifest's had."""
    return key.startswith(_OPERATORS) or key in _UNPREFIXED


def _toleration(node: Node, draft: Draft, account: Account) -> None:
    found: dict[str, Any] = {key: node[key].text for key in ("key", "operator", "value", "effect") if node[key]}
    seconds = node["tolerationSeconds"]
    if seconds.number is not None:
        found["seconds"] = seconds.number
    if not found or any(node[key].exists and not node[key].is_scalar for key in found):
        return
    draft.append("gang.tolerations", found, node)
    for key in (*found, "tolerationSeconds"):
        account.kept(node[key], "gang.tolerations")


def _other(container: Container, account: Account) -> None:
    words = " ".join(node.text for node in container.argv)
    transfers = any(f"{tool} " in words for tool in TRANSFERS if tool not in ("git", "hf", "mc"))
    name = f"container {container.name!r}"
    if container.init and not container.sidecar and transfers:
        account.by_hand(container.node, f"{name}: {STAGED}")
    elif container.init and not container.sidecar:
        account.lost(container.node, f"{name}: a run has no init containers: do it in the image or in the script")
    else:
        account.lost(container.node, f"{name}: a run has no sidecars, but those of a fabric")
