"""What the gang's pods have besides: labels, volumes, affinity, in Kubernetes' own words."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from argosy.workflows.fabric.profile import OWN_VOLUMES
from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.storage import is_below
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import KubeName, LabelValue, Line, NamedLabel, check_literal

_DEEPEST = 12


def _check_object(value: dict[str, Any]) -> dict[str, Any]:
    _check_value(value, 0)
    return value


def _check_value(value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise Refusal("is nested too deeply", "write it as Kubernetes has it")
    if isinstance(value, str):
        check_literal(value)
    elif isinstance(value, dict):
        for key, below in value.items():
            check_literal(str(key))
            _check_value(below, depth + 1)
    elif isinstance(value, list):
        for below in value:
            _check_value(below, depth + 1)
    elif not (value is None or isinstance(value, bool | int | float)):
        raise Refusal("holds what Kubernetes has no word for", "use text, numbers, lists and tables")


KubeObject = Annotated[dict[str, Any], AfterValidator(_check_object)]
"""A part of a manifest, as Kubernetes has it; nothing in it is rewritten on its way."""

_OF_CONTROLLERS = ("kueue.x-k8s.io/", "scheduling.x-k8s.io/", "workflows.argoproj.io/", "argosy.dev/")


class Volume(Table):
    """``[[gang.pod.volumes]]``: a volume, and where the script sees it."""

    name: KubeName = Field(description="Name of the volume.", min_length=1)
    mount_path: Line = Field(description="Absolute folder in the pod at which it is mounted.", min_length=1)
    sub_path: Line = Field(default="", description="Folder or file of the volume that is mounted. Empty: all of it.")
    read_only: bool = Field(default=False, description="Whether the script can only read it.")
    source: KubeObject = Field(
        description='What it is, as in a pod\'s volumes: { persistentVolumeClaim = { claimName = "data" } }.'
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name in OWN_VOLUMES:
            remedy = "choose another name"
            raise Refusal("is a volume that every pod has", remedy, field="name", value=self.name)
        if "." in self.name or len(self.name) > 63:
            rule = "must be a DNS label of at most 63, as Kubernetes has volumes"
            raise Refusal(rule, "use a-z, 0-9 and '-'", field="name", value=self.name)
        path = self.mount_path
        if not path.startswith("/") or posixpath.normpath(path) != path or path == "/" or ":" in path:
            remedy = 'write for example "/mnt/data"'
            raise Refusal("must be an absolute folder below '/', without ':'", remedy, field="mount_path", value=path)
        if self.sub_path.startswith("/") or ".." in self.sub_path.split("/"):
            rule, remedy = "must be a path within the volume, without '..'", "write it relative to the volume"
            raise Refusal(rule, remedy, field="sub_path", value=self.sub_path)
        if is_below(path, "/argosy", "/dev/shm"):
            remedy = "mount it elsewhere"
            raise Refusal("is argosy's own", remedy, field="mount_path", value=path)
        if len(self.source) != 1:
            remedy = 'write for example { persistentVolumeClaim = { claimName = "data" } }'
            raise Refusal("must say one kind of volume", remedy, field="source", value=list(self.source))
        return self

    def manifest(self) -> dict[str, Any]:
        """The volume, as Kubernetes has it."""
        return {"name": self.name, **self.source}

    def mount(self) -> dict[str, Any]:
        """The mount, as Kubernetes has it."""
        fields = {"name": self.name, "mountPath": self.mount_path, "subPath": self.sub_path, "readOnly": self.read_only}
        return {name: value for name, value in fields.items() if value}


class Pod(Table):
    """``[gang.pod]``: what the gang's pods have besides what argosy gives them."""

    labels: dict[NamedLabel, LabelValue] = Field(
        default={},
        description="Labels of all pods of the run; those that the affinity selects by, and Kueue's, the gang's only.",
    )
    annotations: dict[NamedLabel, Annotated[str, AfterValidator(check_literal)]] = Field(
        default={}, description="Annotations of the gang's pods."
    )
    affinity: KubeObject = Field(
        default={}, description="A pod's affinity, as Kubernetes has it: nodeAffinity, podAffinity, podAntiAffinity."
    )
    volumes: tuple[Volume, ...] = Field(default=(), description="Further volumes of the gang's pods.")
    scheduler: KubeName = Field(default="", description="schedulerName of the gang's pods. Empty: the cluster's own.")
    runtime_class: KubeName = Field(default="", description="RuntimeClass of the gang's pods. Empty: the default.")
    host_network: bool = Field(
        default=False, description="Whether the gang's pods use their node's network; Pod Security privileged only."
    )
    image_pull_secrets: tuple[Annotated[KubeName, Field(min_length=1)], ...] = Field(
        default=(), description="Secrets with which images are pulled, those of the steps too."
    )
    image_pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = Field(
        default="", description="When the image is pulled. Empty: Kubernetes' default."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        paths = [volume.mount_path for volume in self.volumes]
        for path in paths:
            if paths.count(path) > 1:
                raise Refusal("is mounted twice", "remove one of them", field="volumes.mount_path", value=path)
        named: dict[str, dict[str, Any]] = {}
        for volume in self.volumes:
            if named.setdefault(volume.name, volume.source) != volume.source:
                remedy = "give them two names"
                raise Refusal("stands for two volumes", remedy, field="volumes.name", value=volume.name)
        return self

    def fields(self) -> dict[str, Any]:
        """The fields of the pod's spec."""
        found: dict[str, Any] = {
            "affinity": self.affinity,
            "schedulerName": self.scheduler,
            "runtimeClassName": self.runtime_class,
            "imagePullSecrets": [{"name": name} for name in self.image_pull_secrets],
        }
        if self.host_network:
            # Names inside the cluster are still wanted. https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/
            found |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        return {name: value for name, value in found.items() if value}

    def common_labels(self) -> dict[str, str]:
        """The labels of every pod of the run.

        A policy that wants labels wants them of every pod, and so does an identity in the cloud. By the others the
        gang's pods find or avoid each other, and a supervisor that had them would take a node from its own gang; or a
        queue or a group of pods would hold back the steps. Argo, and we, find the steps' pods by labels of our own.
        """
        terms = [each for kind in ("podAffinity", "podAntiAffinity") for each in _selectors(self.affinity.get(kind))]
        selected = {key for each in terms for key in each.get("matchLabels") or {}}
        selected |= {each.get("key") for term in terms for each in term.get("matchExpressions") or ()}
        return {
            key: value
            for key, value in self.labels.items()
            if key not in selected and not key.startswith(_OF_CONTROLLERS)
        }

    def volume_manifests(self) -> list[dict[str, Any]]:
        """The volumes, each once."""
        return list({volume.name: volume.manifest() for volume in self.volumes}.values())


def _selectors(part: Any) -> list[dict[str, Any]]:
    """Every ``labelSelector`` within, however deep: preferred terms are wrapped."""
    if isinstance(part, Mapping):
        own = [part["labelSelector"]] if isinstance(part.get("labelSelector"), Mapping) else []
        return own + [each for value in part.values() for each in _selectors(value)]
    return [each for value in part for each in _selectors(value)] if isinstance(part, (list, tuple)) else []
