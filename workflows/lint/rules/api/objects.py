"""What the API asks of whole objects: a kind, a name, a template that its selector selects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import AddKey, Level, Problem, Remove, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.api.versions import KINDS, VERSIONS
from argosy.workflows.lint.schema.fields import type_of_kind
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.workload import Workload

_VERSIONS: Final = {
    "Pod": "v1",
    "Service": "v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "PersistentVolumeClaim": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "CronJob": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "PyTorchJob": "kubeflow.org/v1",
    "TFJob": "kubeflow.org/v1",
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
    "RayJob": "ray.io/v1",
    "Workflow": "argoproj.io/v1alpha1",
    "LocalQueue": "kueue.x-k8s.io/v1beta2",
}
_CORE: Final = {"Job": "batch/v1", **{kind: version for kind, version in _VERSIONS.items() if "." not in version}}
# Kinds that one project has, whatever group a guide writes before them.
_OF_ONE_GROUP: Final = {
    **{kind: version for kind, version in _VERSIONS.items() if "." in version and kind != "Workflow"},
    **dict.fromkeys(("XGBoostJob", "PaddleJob", "JAXJob"), "kubeflow.org/v1"),
    **dict.fromkeys(("TrainingRuntime", "ClusterTrainingRuntime"), "trainer.kubeflow.org/v1alpha1"),
    **dict.fromkeys(("RayCluster", "RayService"), "ray.io/v1"),
    **dict.fromkeys(("ClusterQueue", "ResourceFlavor"), "kueue.x-k8s.io/v1beta2"),
    **dict.fromkeys(("ServiceMonitor", "PodMonitor", "PrometheusRule"), "monitoring.coreos.com/v1"),
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}
# Of another group nobody knows whether it has the kind: xgboostjob.kubeflow.org had an XGBoostJob.
_GROUPS: Final = {"", *(version.rpartition("/")[0] for version, _ in KINDS)}
# A stable version without a domain: those that are gone have a rule of their own.
_CORE_LIKE: Final = re.compile(r"(?:[a-z]+/)?v\d+")


@rule("API019", Level.ERROR, on=Document)
def identity(document: Document) -> Iterator[Problem]:
    """apiVersion, kind and a name."""
    root = document.root
    own = document.host is None or document.host.kind != "Sensor"
    if not root["apiVersion"]:
        version = _VERSIONS.get(document.kind, "")
        if version or (root["metadata"] and root["spec"]):  # other tools have files with a kind
            edits = [AddKey(root, "apiVersion", version)] if version and not root["apiVersion"].exists else []
            message = f"a {document.kind} without an apiVersion"
            # A program that makes the pods itself (Dask's, Airflow's) takes a template of one without.
            level = None if version and document.kind != "Pod" else Level.NOTE
            yield Problem(root["apiVersion"], message, f"write apiVersion: {version}".rstrip(": "), edits, level)
    elif not root["kind"]:
        if root["metadata"]:
            message = f"an object of {document.api_version} without a kind"
            yield Problem(root["kind"], message, "write its kind", level=Level.NOTE)
    elif own and type_of_kind(document.api_version, document.kind):
        name = document.metadata["name"]
        if not name and not name.open and not document.metadata["generateName"]:
            message = f"the {document.kind} has no name: the API refuses it, unless a program gives it one"
            yield Problem(name, message, "write metadata.name or metadata.generateName", level=Level.NOTE)


@rule("API020", Level.ERROR, on=Document)
def version_of_kind(document: Document) -> Iterator[Problem]:
    """A kind of Kubernetes' own under another group: ``v1`` for a Job, ``batch/v1`` for a Pod."""
    node, right = document.root["apiVersion"], _CORE.get(document.kind, "")
    other = _OF_ONE_GROUP.get(document.kind, "")
    if other and document.group != other.rpartition("/")[0] and node and not node.open:
        if (document.api_version, document.kind) in KINDS or document.api_version in VERSIONS:
            return
        near = document.group in _GROUPS
        renamed = document.group.endswith(".k8s.io")  # a group of the project that has the kind, and not the kind's
        yield Problem(
            node,
            f"{node.text} has no kind {document.kind}"
            + ("" if near or renamed else " that is known: it is of another project's"),
            f"write apiVersion: {other}",
            [SetValue(node, other)] if near else (),
            None if near else Level.WARNING if renamed else Level.NOTE,
        )
        return
    if not right or not node or node.open or node.text == right or not _CORE_LIKE.fullmatch(node.text):
        return
    yield Problem(
        node, f"{node.text} has no kind {document.kind}", f"write apiVersion: {right}", [SetValue(node, right)]
    )


@rule("API021", Level.ERROR, on=Workload)
def selector(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A selector that does not select its own template, or that a Job must not have."""
    if bundle.is_named_patch(workload.document):
        return
    document, spec = workload.document, workload.spec
    if document.kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"):
        labels = {key: node.text for key, node in spec.at("template.metadata.labels").entries.items()}
        for key, node in spec.at("selector.matchLabels").entries.items():
            if labels.get(key) != node.text and not node.open and "{" not in labels.get(key, ""):
                yield Problem(
                    node,
                    f"the selector wants {key}: {node.text} and the template has "
                    f"{labels.get(key, 'no such label') or 'no value'}: the API refuses it",
                    "write the same label in template.metadata.labels",
                )
    for role in workload.roles:
        own = role.job["selector"]
        filled = any(each.entries or each.items for each in own.entries.values())
        if filled and role.job["manualSelector"].flag is not True:
            message = "a Job with a selector of its own, which the API refuses: it makes one for each Job"
            yield Problem(own, message, "remove it", _remove(own))


def _remove(node: Node) -> list[Remove]:
    return [Remove(node)] if node.exists else []
