"""Write workflows/lint/schema/fields.json: the fields of the kinds that lint knows, and their types.

    uv run --no-project --with kubernetes==37.0.2 --with kubeflow-trainer-api==2.3.0 --with kubeflow-training==1.9.3 \
        --with pyyaml python scripts/fields.py FOLDER

The clients are generated from the API's own OpenAPI, so a field that is not in them is a field that the API refuses
(Kubernetes 1.37, JobSet 0.12, Trainer 2.3, Training Operator 1.9). What has no client is read from the projects' CRDs
below FOLDER (crd_fields.py); ``~`` there says that only near misses may be reported.
"""

from __future__ import annotations

import datetime
import importlib
import json
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any

from crd_fields import add_crds

TARGET = Path(__file__).resolve().parents[1] / "workflows/lint/schema/fields.json"
QUANTITIES = {"limits", "requests", "hard", "capacity", "allocatable", "overhead", "default", "defaultRequest"}
QUANTITIES |= {"minResources", "resourcesPerNode", "maxLimitRequestRatio"}
QUANTITY = {"sizeLimit", "divisor"}
UNREAD = {"status", "managed_fields", "managedFields"}
"""What the server writes: nobody's mistakes are there."""

KUBERNETES = {
    "v1 Pod": "V1Pod",
    "v1 Service": "V1Service",
    "v1 ConfigMap": "V1ConfigMap",
    "v1 Secret": "V1Secret",
    "v1 Namespace": "V1Namespace",
    "v1 ServiceAccount": "V1ServiceAccount",
    "v1 PersistentVolumeClaim": "V1PersistentVolumeClaim",
    "v1 PersistentVolume": "V1PersistentVolume",
    "v1 ResourceQuota": "V1ResourceQuota",
    "v1 LimitRange": "V1LimitRange",
    "batch/v1 Job": "V1Job",
    "batch/v1 CronJob": "V1CronJob",
    "apps/v1 Deployment": "V1Deployment",
    "apps/v1 StatefulSet": "V1StatefulSet",
    "apps/v1 DaemonSet": "V1DaemonSet",
    "apps/v1 ReplicaSet": "V1ReplicaSet",
    "networking.k8s.io/v1 NetworkPolicy": "V1NetworkPolicy",
    "policy/v1 PodDisruptionBudget": "V1PodDisruptionBudget",
    "scheduling.k8s.io/v1 PriorityClass": "V1PriorityClass",
    "scheduling.k8s.io/v1beta1 PodGroup": "V1beta1PodGroup",
    "scheduling.k8s.io/v1beta1 Workload": "V1beta1Workload",
    "storage.k8s.io/v1 StorageClass": "V1StorageClass",
    "rbac.authorization.k8s.io/v1 Role": "V1Role",
    "rbac.authorization.k8s.io/v1 RoleBinding": "V1RoleBinding",
    "rbac.authorization.k8s.io/v1 ClusterRole": "V1ClusterRole",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": "V1ClusterRoleBinding",
    "resource.k8s.io/v1 ResourceClaimTemplate": "V1ResourceClaimTemplate",
}
TRAINER = {
    "jobset.x-k8s.io/v1alpha2 JobSet": "JobsetV1alpha2JobSet",
    "trainer.kubeflow.org/v1alpha1 TrainJob": "TrainerV1alpha1TrainJob",
    "trainer.kubeflow.org/v1alpha1 TrainingRuntime": "TrainerV1alpha1TrainingRuntime",
    "trainer.kubeflow.org/v1alpha1 ClusterTrainingRuntime": "TrainerV1alpha1ClusterTrainingRuntime",
}
TRAINING = {
    f"kubeflow.org/v1 {kind}": f"KubeflowOrgV1{kind}"
    for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
}


def main() -> None:
    """Write the file."""
    found: dict[str, dict[str, str]] = {}
    kinds: dict[str, str] = {}
    for module, table in (
        ("kubernetes.client", KUBERNETES),
        ("kubeflow_trainer_api.models", TRAINER),
        ("kubeflow.training", TRAINING),
    ):
        loaded = importlib.import_module(module)
        for kind, name in table.items():
            kinds[kind] = visit(getattr(loaded, name), loaded, found)
    for name in ("V1PodTemplateSpec", "V1Toleration", "V1Volume", "V1Affinity"):
        loaded = importlib.import_module("kubernetes.client")
        visit(getattr(loaded, name), loaded, found)
    add_crds(Path(sys.argv[1]), kinds, found)
    # github.com/kubernetes-sigs/scheduler-plugins apis/scheduling/v1alpha1/types.go
    found["CoschedulingPodGroup"] = {
        **dict.fromkeys(("apiVersion", "kind"), "str"),
        "metadata": "ObjectMeta",
        "spec": "CoschedulingPodGroupSpec",
        "status": "any",
        "~": "",
    }
    fields = {"minMember": "int", "minResources": "{quantity}", "scheduleTimeoutSeconds": "int"}
    found["CoschedulingPodGroupSpec"] = fields
    kinds["scheduling.x-k8s.io/v1alpha1 PodGroup"] = "CoschedulingPodGroup"
    TARGET.write_text(rendered(kinds, found), "utf-8")


def rendered(kinds: dict[str, str], found: dict[str, dict[str, str]]) -> str:
    """A line per kind and per type, so that a new version of an API is a diff that can be read."""
    lines = [f"  {json.dumps(kind)}: {json.dumps(name)}" for kind, name in sorted(kinds.items())]
    fields = [f"  {json.dumps(name)}: {json.dumps(types, sort_keys=True)}" for name, types in sorted(found.items())]
    return '{"kinds": {\n' + ",\n".join(lines) + '\n}, "types": {\n' + ",\n".join(fields) + "\n}}\n"


def short(name: str) -> str:
    """``V1PodSpec``, ``IoK8sApiCoreV1PodSpec`` -> ``PodSpec``; other versions than v1 stay in the name."""
    name = re.sub(r"^IoK8s(Api|Apimachinery|ApimachineryPkgApis)(Core|Batch|Meta|Autoscaling)?(?=V)", "", name)
    name = re.sub(r"^(Jobset|Trainer)V1alpha[12]", r"\1", name)
    return re.sub(r"(?:^|(?<=KubeflowOrg))V1(?![a-z])", "", name)


def visit(cls: Any, module: types.ModuleType, found: dict[str, dict[str, str]]) -> str:
    """Read a class and what it refers to; returns its name in the file."""
    name = short(cls.__name__)
    if name in found:
        return name
    found[name] = {}
    for field, (kind, required) in fields_of(cls, module, found).items():
        if field in QUANTITIES and kind == "{str}":
            kind = "{quantity}"
        if field in QUANTITY and kind == "str":
            kind = "quantity"
        found[name][field] = kind + ("!" if required else "")
    return name


def fields_of(cls: Any, module: types.ModuleType, found: dict[str, dict[str, str]]) -> dict[str, tuple[str, bool]]:
    """Field -> (type, whether it must be there)."""
    if not hasattr(cls, "model_fields"):  # the Training Operator's client is of an older generator
        return {  # its Go types mark as required what the CRD does not
            cls.attribute_map[field]: ("any" if field in UNREAD else old_type(text, module, found), False)
            for field, text in cls.openapi_types.items()
        }
    return {
        (each.alias or each.serialization_alias or name).lstrip("_"): (
            "any" if name in UNREAD else of(each.annotation, module, found),
            each.is_required(),
        )
        for name, each in cls.model_fields.items()
        if name != "additional_properties"
    }


def old_type(text: str, module: types.ModuleType, found: dict[str, dict[str, str]]) -> str:
    """The type in the words of an older generator: ``list[V1Pod]``, ``dict(str, str)``."""
    if match := re.fullmatch(r"list\[(.+)\]", text):
        return f"[{old_type(match[1], module, found)}]"
    if match := re.fullmatch(r"dict\(str, (.+)\)", text):
        return f"{{{old_type(match[1], module, found)}}}"
    if text in ("str", "int", "bool"):
        return text
    core = getattr(importlib.import_module("kubernetes.client"), text, None)
    if core is not None:
        return visit(core, module, found)
    return visit(getattr(module, text), module, found) if hasattr(module, text) else "any"


def of(annotation: Any, module: types.ModuleType, found: dict[str, dict[str, str]]) -> str:
    """The type of a pydantic field."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return of(arguments[0], module, found)
    if origin in (typing.Union, types.UnionType):
        inner = {of(each, module, found) for each in arguments if each is not type(None)}
        return inner.pop() if len(inner) == 1 else "any"
    if origin is list:
        return f"[{of(arguments[0], module, found)}]"
    if origin is dict:
        return f"{{{of(arguments[1], module, found)}}}"
    if annotation in (str, bytes, datetime.datetime):
        return "str"
    if annotation is int or annotation is bool:
        return str(annotation.__name__)
    name = getattr(annotation, "__name__", "")
    if name.endswith(("Quantity", "IntOrString")):
        return "quantity" if name.endswith("Quantity") else "any"
    return visit(annotation, module, found) if hasattr(annotation, "model_fields") else "any"


if __name__ == "__main__":
    main()
