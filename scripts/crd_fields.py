"""Fields, types, enums and required fields of the kinds that a CRD describes; read by fields.py.

The CRDs are those of the releases' own repositories, laid out as FOLDER/PROJECT/…: mpi-operator, volcano, kuberay,
kueue, argo-workflows (``manifests/base/crds/full``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

# kind -> (pattern below the folder, version)
CRDS = {
    "MPIJob": ("mpi-operator/manifests/base/kubeflow.org_mpijobs.yaml", "v2beta1"),
    "Job": ("volcano/config/crd/volcano/bases/batch.volcano.sh_jobs.yaml", "v1alpha1"),
    "PodGroup": ("volcano/config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml", "v1beta1"),
    "RayCluster": ("kuberay/**/crd/bases/ray.io_rayclusters.yaml", "v1"),
    "RayJob": ("kuberay/**/crd/bases/ray.io_rayjobs.yaml", "v1"),
    "LocalQueue": ("kueue/config/components/crd/bases/kueue.x-k8s.io_localqueues.yaml", "v1beta2"),
    "Workflow": ("argo-workflows/manifests/base/crds/full/argoproj.io_workflows.yaml", "v1alpha1"),
    "WorkflowTemplate": ("argo-workflows/manifests/base/crds/full/argoproj.io_workflowtemplates.yaml", "v1alpha1"),
    "ClusterWorkflowTemplate": (
        "argo-workflows/manifests/base/crds/full/argoproj.io_clusterworkflowtemplates.yaml",
        "v1alpha1",
    ),
    "CronWorkflow": ("argo-workflows/manifests/base/crds/full/argoproj.io_cronworkflows.yaml", "v1alpha1"),
}
Types = dict[str, dict[str, str]]


def add_crds(folder: Path, kinds: dict[str, str], types: Types) -> None:
    """Add the kinds of :data:`CRDS` and their types to those of Kubernetes' own."""
    reader = _Reader(dict(types), types)
    for kind, (pattern, version) in CRDS.items():
        text = next(iter(sorted(folder.glob(pattern)))).read_text("utf-8")
        crd = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        schema = next(each["schema"] for each in crd["spec"]["versions"] if each["name"] == version)
        group = crd["spec"]["group"]
        name = f"{group.split('.')[0].capitalize()}{version.capitalize()}{kind}"
        spec = reader.type_of(schema["openAPIV3Schema"]["properties"]["spec"], f"{name}Spec")
        needed = "!" if "spec" in schema["openAPIV3Schema"].get("required", ()) else ""
        # Newer releases have more fields (~).
        held = {"apiVersion": "str", "kind": "str", "metadata": "ObjectMeta", "spec": spec + needed, "status": "any"}
        types[name] = {**held, "~": ""}
        kinds[f"{group}/{version} {kind}"] = name


class _Reader:
    """Schemas into types; what has the fields of a type of Kubernetes' own is that type."""

    def __init__(self, core: Types, types: Types) -> None:
        operators = ("KubeflowOrg", "Trainer", "Jobset")
        own = {name: fields for name, fields in core.items() if not name.startswith(operators)}
        self._core = {name: fields for name, fields in own.items() if len(fields) > 2 and "apiVersion" not in fields}
        self._types = types
        self._named: dict[tuple[tuple[str, str], ...], str] = {}

    def type_of(self, schema: dict[str, Any], name: str) -> str:
        """The type of a value in the words of fields.json; objects are added to the types under ``name``."""
        if schema.get("x-kubernetes-int-or-string") or "anyOf" in schema:
            return "quantity" if "Ki" in schema.get("pattern", "") or "]i" in schema.get("pattern", "") else "any"
        kind = schema.get("type")
        if kind == "array":
            return f"[{self.type_of(schema['items'], name)}]"
        if kind == "string":
            return "=" + "|".join(schema["enum"]) if "enum" in schema else "str"
        if kind in ("integer", "boolean"):
            return "int" if kind == "integer" else "bool"
        if kind != "object":
            return "any"
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            return self._object(schema, name)
        below = schema.get("additionalProperties")
        return f"{{{self.type_of(below, name)}}}" if isinstance(below, dict) and below else "any"

    def _object(self, schema: dict[str, Any], name: str) -> str:
        required = set(schema.get("required", ()))
        core = self._of_core(set(schema["properties"]), required)
        if core:
            return core
        fields = {
            key: self.type_of(below, name + key[:1].upper() + key[1:])
            + ("!" if key in required and "default" not in below else "")
            for key, below in schema["properties"].items()
        }
        if {"globalName", "valueFrom"} <= set(fields):  # Argo's AnyString takes numbers and booleans
            fields |= dict.fromkeys(("value", "default", "enum"), "any")
        held = tuple(sorted(fields.items()))
        if held not in self._named:
            self._named[held] = name
            self._types[name] = fields
        return self._named[held]

    def _of_core(self, keys: set[str], required: set[str]) -> str:
        """The type of Kubernetes' own that has these fields, of an older or a newer release; ``""`` for none."""
        found = [
            (len(fields), name)
            for name, fields in self._core.items()
            if keys <= set(fields) and len(keys) * 10 >= len(fields) * 7 and len(keys) > 2
            if {key for key, kind in fields.items() if kind.endswith("!")} == required
        ]
        return min(found)[1] if found else ""
