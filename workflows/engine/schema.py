"""Fields of a Workflow: supported, ignored or refused, each with its reason; what is not here is not built in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ignore:
    """Has no meaning on one machine and changes no result."""

    reason: str


@dataclass(frozen=True)
class Refuse:
    """Would change what happens; not built here."""

    reason: str


@dataclass(frozen=True)
class ListOf:
    """A list whose items are of one kind."""

    item: Any


@dataclass(frozen=True)
class MapOf:
    """A map from any name to values of one kind."""

    value: Any


SCALAR, TEXT, WHOLE, FLAG, ANYTHING = (
    "a text, number or boolean",
    "a text",
    "a whole number",
    "true or false",
    "anything",
)
"""Kinds of plain values; WHOLE also takes a text (a number or a tag)."""

_SCHEDULING = Ignore("placement: there is one machine")
_SECURITY = Ignore("security context: processes run as the engine's user")
_RESOURCES = Ignore("resources: processes share the machine")
_KEEPING = Ignore("clean-up in the cluster: the run's folder is kept")
_METRICS = Ignore("metrics are the controller's")
_PROBE = Ignore("probes: no kubelet asks")
_CLUSTER = Refuse("needs a cluster")
_LATER = Refuse("not built into the local engine")

METADATA = {
    "name": TEXT, "generateName": TEXT, "namespace": TEXT, "labels": MapOf(SCALAR), "annotations": MapOf(SCALAR),
    "creationTimestamp": Ignore("set by the cluster"), "uid": Ignore("set by the cluster"),
    "resourceVersion": Ignore("set by the cluster"), "finalizers": _KEEPING,
}  # fmt: skip
POD_METADATA = {"labels": Ignore("labels of the pod"), "annotations": Ignore("annotations of the pod")}

_KEY = {"name": TEXT, "key": TEXT, "optional": FLAG}
VALUE_FROM = {
    "path": TEXT, "default": SCALAR, "parameter": TEXT, "expression": TEXT,
    "jsonPath": Refuse("belongs to resource templates"), "jqFilter": Refuse("belongs to resource templates"),
    "configMapKeyRef": _KEY,
    "event": Refuse("events start workflows on a cluster; give the value as a parameter"),
    "supplied": Refuse("nobody is there to supply it"),
}  # fmt: skip
PARAMETER = {
    "name": TEXT, "value": SCALAR, "default": SCALAR, "enum": ListOf(SCALAR), "globalName": TEXT,
    "description": Ignore("text for people"), "valueFrom": VALUE_FROM,
}  # fmt: skip
_STORES = {kind: Refuse("raw, s3 and passed-on artifacts are built in; use one of them, a volume or a file:// store")
           for kind in ("gcs", "azure", "http", "git", "oss", "hdfs", "artifactory", "plugin")}  # fmt: skip
_S3 = {
    "endpoint": TEXT, "bucket": TEXT, "key": TEXT, "region": TEXT, "insecure": FLAG, "useSDKCreds": FLAG,
    "accessKeySecret": _KEY, "secretKeySecret": _KEY, "sessionTokenSecret": _KEY,
    "createBucketIfNotPresent": Refuse("make the bucket"), "roleARN": Refuse("give keys"),
    "encryptionOptions": _LATER, "caSecret": _LATER, "addressingStyle": _LATER,
}  # fmt: skip
_ARCHIVE = {"none": {}, "tar": {"compressionLevel": WHOLE}, "zip": {}}
ARTIFACT = {
    "name": TEXT, "path": TEXT, "raw": {"data": SCALAR}, "from": TEXT, "fromExpression": TEXT,
    "optional": FLAG, "mode": WHOLE,
    "archive": _ARCHIVE, "archiveLogs": Ignore("logs are files here"), "s3": _S3,
    "artifactGC": _KEEPING, "deleted": Ignore("set by the cluster"),
    "subPath": _LATER, "recurseMode": _LATER, "globalName": _LATER, **_STORES,
}  # fmt: skip
ARGUMENTS = {"parameters": ListOf(PARAMETER), "artifacts": ListOf(ARTIFACT)}
OUTPUTS = {**ARGUMENTS, "result": Refuse("set by the cluster"), "exitCode": Refuse("set by the cluster")}

ENV = {
    "name": TEXT, "value": SCALAR,
    "valueFrom": {
        "fieldRef": {"fieldPath": TEXT, "apiVersion": TEXT}, "secretKeyRef": _KEY,
        "configMapKeyRef": _KEY,
        "resourceFieldRef": Refuse("no resource limits are set here"),
    },
}  # fmt: skip
ENV_FROM = {
    "prefix": TEXT, "secretRef": {"name": TEXT, "optional": FLAG}, "configMapRef": {"name": TEXT, "optional": FLAG},
}  # fmt: skip
MOUNT = {
    "name": TEXT, "mountPath": TEXT, "subPath": TEXT, "readOnly": Ignore("volumes are writable folders here"),
    "mountPropagation": _CLUSTER, "subPathExpr": _LATER, "recursiveReadOnly": Ignore("volumes are writable folders"),
}  # fmt: skip
CONTAINER = {
    "name": Ignore("the container is called main"), "image": Ignore("no image: the machine's own programs run"),
    "imagePullPolicy": Ignore("no image is pulled"), "command": ListOf(SCALAR), "args": ListOf(SCALAR),
    "env": ListOf(ENV), "envFrom": ListOf(ENV_FROM), "volumeMounts": ListOf(MOUNT), "workingDir": TEXT,
    "resources": _RESOURCES, "securityContext": _SECURITY, "ports": Ignore("processes share the machine's network"),
    "terminationMessagePath": TEXT, "terminationMessagePolicy": Refuse("only File, the default, is built in"),
    "livenessProbe": _PROBE, "readinessProbe": _PROBE, "startupProbe": _PROBE, "stdin": Ignore("no terminal"),
    "stdinOnce": Ignore("no terminal"), "tty": Ignore("no terminal"), "resizePolicy": _RESOURCES,
    "lifecycle": _LATER, "restartPolicy": _LATER, "volumeDevices": _CLUSTER,
}  # fmt: skip
SCRIPT = {**CONTAINER, "source": TEXT}
VOLUME = {
    "name": TEXT, "emptyDir": {"medium": Ignore("a folder on disk"), "sizeLimit": _RESOURCES},
    "persistentVolumeClaim": {"claimName": TEXT, "readOnly": Ignore("volumes are writable folders here")},
    "secret": {"secretName": TEXT, "optional": FLAG, "items": ANYTHING, "defaultMode": WHOLE},
    "configMap": {
        "name": TEXT, "optional": FLAG, "items": ListOf({"key": TEXT, "path": TEXT, "mode": WHOLE}),
        "defaultMode": WHOLE,
    },
    **dict.fromkeys(("hostPath", "projected", "downwardAPI", "csi", "nfs", "ephemeral"), _CLUSTER),
    **dict.fromkeys(("image", "iscsi", "cephfs", "fc", "glusterfs"), _CLUSTER),
}  # fmt: skip
CLAIM = {
    "metadata": METADATA, "spec": Ignore("a claim is a folder"), "apiVersion": TEXT, "kind": TEXT,
    "status": Ignore("set by the cluster"),
}  # fmt: skip

BACKOFF = {"duration": SCALAR, "factor": WHOLE, "maxDuration": SCALAR, "cap": SCALAR}
RETRY = {
    "limit": WHOLE, "retryPolicy": TEXT, "expression": TEXT, "backoff": BACKOFF,
    "affinity": Ignore("placement: there is one machine"),
}  # fmt: skip
_ELSEWHERE = {"namespace": Refuse("a lock of another namespace"), "database": Refuse("no database is there")}
MUTEX = {"name": TEXT, **_ELSEWHERE}
SEMAPHORE = {"configMapKeyRef": _KEY, **_ELSEWHERE}
SYNCHRONIZATION = {"mutexes": ListOf(MUTEX), "semaphores": ListOf(SEMAPHORE)}
TEMPLATE_REF = {"name": TEXT, "template": TEXT, "clusterScope": FLAG}
HOOK = {"template": TEXT, "templateRef": TEMPLATE_REF, "arguments": ARGUMENTS, "expression": TEXT}
HOOKS = {"exit": HOOK}
CONTINUE_ON = {"error": FLAG, "failed": FLAG}
SEQUENCE = {"count": WHOLE, "start": WHOLE, "end": WHOLE, "format": TEXT}
STEP = {
    "name": TEXT, "template": TEXT, "templateRef": TEMPLATE_REF, "arguments": ARGUMENTS, "when": SCALAR,
    "withItems": ListOf(ANYTHING), "withParam": SCALAR, "withSequence": SEQUENCE, "continueOn": CONTINUE_ON,
    "hooks": HOOKS, "onExit": TEXT,
}  # fmt: skip
TASK = {**STEP, "depends": TEXT, "dependencies": ListOf(TEXT)}
DAG = {"tasks": ListOf(TASK), "failFast": FLAG, "target": TEXT}

_OF_PODS = {
    "nodeSelector": _SCHEDULING, "affinity": _SCHEDULING, "tolerations": _SCHEDULING, "schedulerName": _SCHEDULING,
    "securityContext": _SECURITY, "hostAliases": _CLUSTER,
    "serviceAccountName": Ignore("no API server is there"),
    "automountServiceAccountToken": Ignore("no API server is there"), "executor": Ignore("no executor runs"),
    "podSpecPatch": TEXT, "parallelism": WHOLE,
    "activeDeadlineSeconds": WHOLE, "synchronization": SYNCHRONIZATION, "volumes": ListOf(VOLUME),
}  # fmt: skip
TEMPLATE = {
    **_OF_PODS, "priorityClassName": _SCHEDULING,
    "archiveLocation": Ignore("logs and artifacts lie in the run's folder"),
    "name": TEXT, "inputs": ARGUMENTS, "outputs": OUTPUTS, "container": CONTAINER, "script": SCRIPT,
    "dag": DAG, "steps": ListOf(ListOf(STEP)), "suspend": {"duration": SCALAR}, "retryStrategy": RETRY,
    "failFast": FLAG, "timeout": SCALAR, "metadata": POD_METADATA, "metrics": _METRICS,
    "annotations": Ignore("display only"), "daemon": _LATER, "sidecars": _LATER, "initContainers": _LATER,
    "memoize": _LATER, "containerSet": _LATER, "resource": _CLUSTER, "http": _LATER, "plugin": _CLUSTER,
    "data": _LATER,
}  # fmt: skip
STEP["inline"] = TASK["inline"] = TEMPLATE
DEFAULTS = {key: value for key, value in TEMPLATE.items() if key not in ("dag", "steps", "suspend")}
SPEC = {
    **_OF_PODS, "priority": SCALAR,
    "entrypoint": TEXT, "templates": ListOf(TEMPLATE), "arguments": ARGUMENTS, "onExit": TEXT,
    "hooks": HOOKS, "templateDefaults": DEFAULTS,
    "workflowTemplateRef": {"name": TEXT, "clusterScope": FLAG}, "volumeClaimTemplates": ListOf(CLAIM),
    "volumeClaimGC": _KEEPING, "podGC": _KEEPING, "ttlStrategy": _KEEPING,
    "artifactGC": _KEEPING, "archiveLogs": Ignore("logs are files here"), "metrics": _METRICS,
    "podMetadata": POD_METADATA, "workflowMetadata": {
        "labels": MapOf(SCALAR), "annotations": MapOf(SCALAR), "labelsFrom": Ignore("labels of the object"),
    },
    "imagePullSecrets": Ignore("no image is pulled"), "podDisruptionBudget": _SCHEDULING,
    "podPriorityClassName": _SCHEDULING, "dnsConfig": _CLUSTER,
    "dnsPolicy": Ignore("the machine's own names"), "hostNetwork": Ignore("processes share the machine's network"),
    "artifactRepositoryRef": Ignore("artifacts lie in the run's folder"), "retryStrategy": _LATER,
    "shutdown": Refuse("a workflow that is to be shut down is not run"), "suspend": Refuse("starts suspended"),
}  # fmt: skip
WORKFLOW = {
    "apiVersion": TEXT,
    "kind": TEXT,
    "metadata": METADATA,
    "spec": SPEC,
    "status": Ignore("set by the cluster"),
}
