"""What a container mounts, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem, RenameKey
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.volume import claims_in

# A workflow that refers to the template, a TrainJob that patches the runtime, may bring the volume.
_FILLED_BY_OTHERS = ("WorkflowTemplate", "ClusterWorkflowTemplate", "TrainingRuntime", "ClusterTrainingRuntime")
_EXPANSION = re.compile(r"\$\(([A-Za-z_][\w.-]*)\)")


# Volumes that an operator adds: mpi-operator v2beta1 and v1 pkg/controller, trainer pkg/constants, kuberay
# ray-operator/controllers/ray/common/pod.go.
_TRAINER: Final = frozenset({"mpi-ssh-auth", "mpi-hostfile"})
_RAY: Final = frozenset({"ray-token", "ray-tls", "shared-mem", "log-volume"})
_MADE: Final = {
    "MPIJob": frozenset({"mpi-job-config", "mpi-job-kubectl", "ssh-auth", "ssh-home"}),
    **dict.fromkeys(("TrainingRuntime", "ClusterTrainingRuntime"), _TRAINER),
    **dict.fromkeys(("RayCluster", "RayJob", "RayService"), _RAY),
}


def _names(container: Container) -> set[str]:
    document = container.pod.document
    made = _MADE.get(document.kind, frozenset())
    return {*container.pod.volumes, *(each.name for each in claims_in(document)), *made}


@rule("STORE001", Level.ERROR, on=Container)
def unknown_volume(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A mount names a volume of the pod."""
    pod = container.pod
    later = any(each["name"].open for each in pod.spec["volumes"])
    if later or pod.document.kind == "TrainJob" or pod.spec["podSpecPatch"]:
        return
    names = _names(container)
    for mount in [*container.node["volumeMounts"], *container.node["volumeDevices"]]:
        name = mount["name"]
        if name and not name.open and name.text not in names:
            have = ", ".join(sorted(names)) or "none"
            level = Level.WARNING if bundle.left_to_write(name) else Level.ERROR
            yield Problem(
                name,
                f"no volume {name.text!r} in the pod, which the API refuses (its volumes: {have})",
                f"add a volume {name.text!r}, or mount one that exists",
                level=Level.NOTE if pod.document.kind in _FILLED_BY_OTHERS else level,
            )


@rule("STORE002", Level.ERROR, on=Container)
def same_path(container: Container) -> Iterator[Problem]:
    """Two mounts at one path are refused; a path is no shell's."""
    seen: dict[str, str] = {}
    for mount in container.node["volumeMounts"]:
        path = mount["mountPath"]
        if path.text.startswith("~"):
            message = "no shell expands ~ in a mount's path: the volume is below /~, and programs look at their home"
            yield Problem(path, message, "write the whole path", level=Level.WARNING)
        if path and not path.open and path.text in seen:
            yield Problem(
                path,
                f"{path.text} is mounted twice, from {seen[path.text]!r} and {mount['name'].text!r}, which the API "
                "refuses",
                "mount one of them elsewhere",
            )
        seen[path.text] = mount["name"].text


@rule("STORE003", Level.WARNING, on=Container)
def unexpanded_sub_path(container: Container) -> Iterator[Problem]:
    """``subPath`` is taken literally; ``subPathExpr`` expands the container's own variables."""
    declared = {each["name"].text for each in container.node["env"]}
    for mount in container.node["volumeMounts"]:
        sub_path = mount["subPath"]
        names = set(_EXPANSION.findall(sub_path.text))
        if names and not mount["subPathExpr"]:
            yield Problem(
                sub_path,
                f"subPath is not expanded: every pod writes into a directory that is called {sub_path.text!r}",
                "write subPathExpr, which knows the container's variables",
                edits=[RenameKey(sub_path, "subPathExpr")] if names <= declared else [],
                level=None if names <= declared else Level.WARNING,  # Kustomize's vars are written the same way
            )
