"""Words that a field takes: one of a few."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from argosy.workflows.lint.finding import Level, Problem, SetValue
from argosy.workflows.lint.rule import also, rule
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod
from argosy.workflows.manifests.workload import Workload

_OF_CONTAINERS: Final = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
}
_OF_PODS: Final = {
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
_OF_JOBS: Final = {
    "completionMode": ("Indexed", "NonIndexed"),
    "podReplacementPolicy": ("Failed", "TerminatingOrFailed"),
}
_KEPT_ALIVE: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
_OPERATED: Final = ("pytorch", "tensorflow", "xgboost", "mpi")
_SERVICES: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def _not_of(node: Node, words: tuple[str, ...]) -> Iterator[Problem]:
    if not node.is_scalar or node.open or node.text in words:
        return
    near = next((each for each in words if each.lower() == node.text.lower()), "")
    near = near or next(iter(get_close_matches(node.text, words, 1, 0.7)), "")
    yield Problem(
        node,
        f"{node.key or (node.parent or node).key}: {node.text!r} is not taken by the API",
        f"write {near}" if near else f"write one of {', '.join(words)}",
        [SetValue(node, near)] if near else [],
    )


@rule("API015", Level.ERROR, on=Container)
def container_words(container: Container) -> Iterator[Problem]:
    """Words of a container."""
    for key, words in _OF_CONTAINERS.items():
        yield from _not_of(container.node[key], words)
    for port in container.ports:
        yield from _not_of(port["protocol"], ("TCP", "UDP", "SCTP"))


@also("API015", on=Pod)
def pod_words(pod: Pod) -> Iterator[Problem]:
    """Words of a pod: policies, tolerations, node selectors, media of volumes."""
    for key, words in _OF_PODS.items():
        yield from _not_of(pod.spec[key], words)
    for toleration in pod.spec["tolerations"]:
        yield from _not_of(toleration["operator"], ("Exists", "Equal", "Lt", "Gt"))
        yield from _not_of(toleration["effect"], ("NoSchedule", "PreferNoSchedule", "NoExecute"))
        if toleration["operator"].text == "Exists" and toleration["value"].text:
            yield Problem(
                toleration["value"],
                "a toleration with the operator Exists has a value, which the API refuses",
                "remove the value, or write operator: Equal",
            )
    node_affinity = pod.spec.at("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    for term in node_affinity["nodeSelectorTerms"]:
        for expression in term["matchExpressions"]:
            yield from _not_of(expression["operator"], _OPERATORS)
    for volume in pod.spec["volumes"]:
        medium = volume.at("emptyDir.medium")
        if not medium.text.startswith("HugePages-"):
            yield from _not_of(medium, ("", "Memory", "HugePages"))


@also("API015", on=Workload)
def workload_words(workload: Workload) -> Iterator[Problem]:
    """Words of a Job, and the restart policies that each operator knows."""
    for role in workload.roles:
        for key, taken in _OF_JOBS.items():
            yield from _not_of(role.job[key], taken)
        words = ("Always",) if workload.document.kind in _KEPT_ALIVE else ("Always", "OnFailure", "Never")
        more = ("ExitCode",) if workload.family in _OPERATED else ()
        yield from _not_of(role.restart_policy, (*words, *more))
    if workload.document.kind == "JobSet":  # its webhook looks the names up
        policies = [workload.spec["successPolicy"], *workload.spec.at("failurePolicy.rules")]
        for target in (target for policy in policies for target in policy["targetReplicatedJobs"]):
            yield from _not_of(target, tuple(role.name for role in workload.roles))
    processes = workload.spec["nprocPerNode"]
    if workload.document.kind == "PyTorchJob" and processes.text and processes.number is None:
        yield from _not_of(processes, ("auto", "cpu", "gpu"))
    policy = workload.spec.at("runPolicy.cleanPodPolicy")
    if policy:
        yield from _not_of(policy, ("None", "Running", "All"))


@also("API015", on=Document)
def service_words(document: Document) -> Iterator[Problem]:
    """Words of a Service, a claim, a network policy."""
    if document.is_a("Service", ""):
        yield from _not_of(document.spec["type"], _SERVICES)
        for port in document.spec["ports"]:
            yield from _not_of(port["protocol"], ("TCP", "UDP", "SCTP"))
    if document.is_a("PersistentVolumeClaim", ""):
        for mode in document.spec["accessModes"]:
            yield from _not_of(mode, ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"))
        yield from _not_of(document.spec["volumeMode"], ("Filesystem", "Block"))
