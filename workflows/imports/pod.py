"""The pod's template into ``[gang]``, ``[gang.resources]`` and ``[gang.pod]``."""

from __future__ import annotations

from typing import Any, Final

from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.pod import Pod

_RESTRICTED: Final = (
    "argosy's pods are Pod Security restricted: user 1000, no privileges; a fabric profile adds what it needs"
)
_CONTAINER: Final = {
    "ports": "ranks meet over argosy's channel, and pods need no declared port",
    "livenessProbe": "heartbeats over argosy's channel find a rank that hangs: see deadlines.hang_seconds",
    "readinessProbe": "no rank starts before all nodes have checked in",
    "startupProbe": "see deadlines.check_in_seconds",
    "tty": "output is kept line by line",
    "stdin": "a training reads no standard input",
    "terminationMessagePath": "argosy writes the verdict there",
    "terminationMessagePolicy": "argosy writes the verdict there",
    "securityContext": _RESTRICTED,
}
_POD: Final = {
    "restartPolicy": "argosy's supervisor owns restarts: see [retry]",
    "subdomain": "argosy's gang has its own names",
    "hostname": "argosy's gang has its own names",
    "setHostnameAsFQDN": "argosy's gang has its own names",
    "schedulingGroup": "gang.placement is none for now: nodes are waited for by the channel",
    "automountServiceAccountToken": "the gang's pods get no API token",
    "securityContext": _RESTRICTED,
    "enableServiceLinks": "the channel is named in the environment",
    "dnsPolicy": "ClusterFirst, or with gang.pod.host_network ClusterFirstWithHostNet",
    "terminationMessagePath": "argosy writes the verdict there",
}
_NAMES: Final = {
    "serviceAccountName": "gang.service_account",
    "serviceAccount": "gang.service_account",
    "priorityClassName": "gang.priority_class",
    "schedulerName": "gang.pod.scheduler",
    "runtimeClassName": "gang.pod.runtime_class",
}
_MADE_BY_OTHERS: Final = ("kueue.x-k8s.io/", "batch.kubernetes.io/", "training.kubeflow.org/", "jobset.sigs.k8s.io/")


def take_pod(pod: Pod, container: Container, draft: Draft, account: Account) -> None:
    """Write everything of the template but the command and the environment."""
    _marks(pod, draft, account)
    _names(pod, draft, account)
    _scheduling(pod, draft, account)
    _resources(container, draft, account)
    _volumes(pod, container, draft, account)
    for key, why in _CONTAINER.items():
        if container.node[key].exists:
            account.changed(container.node[key], why)
    for each in pod.all_containers:
        if each.node.yaml is not container.node.yaml:
            _other(each, account)
    account.known(container.node["name"])


def _marks(pod: Pod, draft: Draft, account: Account) -> None:
    for kind in ("labels", "annotations"):
        kept = {}
        for key, value in pod.metadata[kind].entries.items():
            if key.startswith(_MADE_BY_OTHERS) or (kind == "labels" and key in ("app", "job-name")):
                why = (
                    "a queue admits the whole workload: gang.placement is none for now"
                    if "kueue" in key
                    else "set by its operator"
                )
                account.changed(value, why if key not in ("app",) else "argosy's gang is found by its own labels")
            elif key == "sidecar.istio.io/inject" and kind == "annotations":
                draft.put("gang.pod.labels", {**draft.get("gang.pod.labels", {}), key: value.text})
                account.changed(value, "Istio reads it as a label now", f"gang.pod.labels.{key}")
            else:
                kept[key] = value.text
                account.kept(value, f"gang.pod.{kind}")
        if kept:
            draft.put(f"gang.pod.{kind}", {**draft.get(f"gang.pod.{kind}", {}), **kept})
    account.known(pod.metadata["name"], pod.metadata["creationTimestamp"])


def _names(pod: Pod, draft: Draft, account: Account) -> None:
    for key, field in _NAMES.items():
        node = pod.spec[key]
        if node and not (key == "schedulerName" and node.text == "default-scheduler"):
            draft.put(field, node.text)
            account.kept(node, field)
        else:
            account.known(node)
    if pod.spec["imagePullSecrets"]:
        draft.put("gang.pod.image_pull_secrets", [each["name"].text for each in pod.spec["imagePullSecrets"]])
        account.kept(pod.spec["imagePullSecrets"], "gang.pod.image_pull_secrets")
    if pod.host_network:
        draft.put("gang.pod.host_network", True)
        account.kept(pod.spec["hostNetwork"], "gang.pod.host_network")
    else:
        account.known(pod.spec["hostNetwork"])
    for key, why in _POD.items():
        if pod.spec[key].exists:
            account.changed(pod.spec[key], why)
    for key, field in (
        ("activeDeadlineSeconds", "deadlines.run_seconds"),
        ("terminationGracePeriodSeconds", "deadlines.grace_seconds"),
    ):
        number = pod.spec[key].number
        if number:
            draft.put(field, number)
            account.kept(pod.spec[key], field)


def _scheduling(pod: Pod, draft: Draft, account: Account) -> None:
    spec = pod.spec
    if spec["nodeSelector"]:
        draft.put("gang.node_selector", {key: value.text for key, value in spec["nodeSelector"].entries.items()})
        account.kept(spec["nodeSelector"], "gang.node_selector")
    if spec["affinity"]:
        draft.put("gang.pod.affinity", spec["affinity"].data)
        account.kept(spec["affinity"], "gang.pod.affinity")
    tolerations = [_toleration(each) for each in spec["tolerations"]]
    if tolerations:
        draft.put("gang.tolerations", tolerations)
        account.kept(spec["tolerations"], "gang.tolerations")


def _toleration(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {key: node[key].text for key in ("key", "operator", "value", "effect") if node[key]}
    if node["tolerationSeconds"].number is not None:
        found["seconds"] = node["tolerationSeconds"].number
    return found


def _resources(container: Container, draft: Draft, account: Account) -> None:
    limits, requests = container.limits.entries, container.requests.entries
    extended = {}
    for name, node in {**requests, **limits}.items():
        if name == "cpu":
            chosen = requests.get("cpu", node)
            draft.put("gang.resources.cpu", chosen.text)
            account.kept(chosen, "gang.resources.cpu")
            if "cpu" in limits and limits["cpu"] is not chosen:
                account.changed(limits["cpu"], "no limit on CPU: throttled loaders starve GPUs", "gang.resources.cpu")
        elif name == "memory":
            draft.put("gang.resources.memory", node.text)
            account.kept(node, "gang.resources.memory")
            if "memory" in requests and requests["memory"].text != node.text:
                account.changed(requests["memory"], "memory is requested as it is limited", "gang.resources.memory")
        elif name == "ephemeral-storage":
            account.lost(node, "argosy does not ask for disk")
        elif _is_gpu(name) and not draft.get("gang.resources.gpu"):
            _gpu(name, node, draft, account)
        elif "/" in name or name.startswith("hugepages-"):
            extended[name] = node.text
            account.kept(node, "gang.resources.extended")
        account.known(*(held[name] for held in (limits, requests) if name in held))
    if extended:
        draft.put("gang.resources.extended", extended)


def _is_gpu(name: str) -> bool:
    return name.endswith("/gpu") or "mig-" in name or "gaudi" in name


def _gpu(name: str, node: Node, draft: Draft, account: Account) -> None:
    if node.number is None:
        account.by_hand(node, "the number of GPUs is filled in later: write gang.resources.gpu")
        return
    draft.put("gang.resources.gpu", node.number)
    if name != "nvidia.com/gpu":
        draft.put("gang.resources.gpu_resource", name)
    account.kept(node, "gang.resources.gpu")


def _volumes(pod: Pod, container: Container, draft: Draft, account: Account) -> None:
    kept = []
    for mount in container.node["volumeMounts"]:
        name, path = mount["name"].text, mount["mountPath"].text.rstrip("/")
        volume = pod.volumes.get(name)
        if volume is None:
            account.lost(mount, f"there is no volume {name!r}")
        elif path in ("/dev/shm", "/dev"):
            _shared_memory(volume, mount, draft, account)
        elif mount["subPathExpr"] or mount["mountPropagation"]:
            account.lost(mount, "only subPath and readOnly go with a volume")
        else:
            kept.append(_volume(name, path, mount, volume))
            account.kept(mount, "gang.pod.volumes")
            account.kept(volume, "gang.pod.volumes")
            _needs(volume, account)
    if kept:
        draft.put("gang.pod.volumes", kept)


def _volume(name: str, path: str, mount: Node, volume: Node) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name if name not in _OWN else f"user-{name}", "mount_path": path}
    if mount["subPath"]:
        found["sub_path"] = mount["subPath"].text
    if mount["readOnly"].flag:
        found["read_only"] = True
    source = {key: value for key, value in volume.data.items() if key != "name"}
    return {**found, "source": source or {"emptyDir": {}}}


_OWN: Final = ("shm", "storage", "cache", "data", "workspace", "tmp")


def _needs(volume: Node, account: Account) -> None:
    claim = volume.at("persistentVolumeClaim.claimName")
    if claim:
        account.by_hand(
            claim, f"PersistentVolumeClaim {claim.text!r} must exist in the namespace; every node mounts it"
        )
    if volume["hostPath"]:
        account.by_hand(volume["hostPath"], "hostPath needs a namespace with Pod Security privileged")


def _shared_memory(volume: Node, mount: Node, draft: Draft, account: Account) -> None:
    size = volume.at("emptyDir.sizeLimit")
    if size:
        draft.put("gang.shm_size", size.text)
        account.kept(volume, "gang.shm_size")
    else:
        account.changed(volume, "every pod has its own /dev/shm in memory: see gang.shm_size", "gang.shm_size")
    account.known(mount)


def _other(container: Container, account: Account) -> None:
    words = " ".join(node.text for node in container.argv)
    if container.init and any(
        tool in words for tool in ("aws ", "s3 ", "s5cmd", "gsutil", "rclone", "azcopy", "curl", "wget")
    ):
        account.by_hand(container.node, "argosy stages data before the GPUs wait: write [dataset] uri")
    elif container.init:
        account.lost(container.node, "a run has no init containers: do it in the image or in the script")
    else:
        account.lost(container.node, "a run has no sidecars, but those of a fabric profile")
