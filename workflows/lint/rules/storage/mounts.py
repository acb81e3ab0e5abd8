"""What a container mounts, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem, RenameKey
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.injected import injected
from argosy.workflows.lint.view.volume import claim_of, claims_in

_EXPANSION = re.compile(r"\$\(([A-Za-z_][\w.-]*)\)")


def _names(container: Container) -> set[str]:
    return {*container.pod.volumes, *(each.name for each in claims_in(container.pod.document))}


@rule("STORE001", Level.ERROR, on=Container)
def unknown_volume(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A mount names a volume of the pod."""
    del bundle
    pod = container.pod
    if pod.document.kind == "TrainJob" or pod.spec["podSpecPatch"]:
        return
    names = _names(container)
    for mount in [*container.node["volumeMounts"], *container.node["volumeDevices"]]:
        name = mount["name"]
        if name and not name.open and name.text not in names:
            have = ", ".join(sorted(names)) or "none"
            calls = pod.document.kind in ("WorkflowTemplate", "ClusterWorkflowTemplate")
            yield Problem(
                name,
                f"no volume {name.text!r} in the pod, which the API refuses (its volumes: {have})",
                f"add a volume {name.text!r}, or mount one that exists",
                level=Level.WARNING if calls else Level.ERROR,  # a workflow that refers to it may bring the volume
            )


@rule("STORE002", Level.ERROR, on=Container)
def same_path(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Two mounts at one path are refused."""
    del bundle
    seen: dict[str, str] = {}
    for mount in container.node["volumeMounts"]:
        path = mount["mountPath"]
        if path and not path.open and path.text in seen:
            yield Problem(
                path,
                f"{path.text} is mounted twice, from {seen[path.text]!r} and {mount['name'].text!r}, which the API "
                "refuses",
                "mount one of them elsewhere",
            )
        seen[path.text] = mount["name"].text


@rule("STORE003", Level.ERROR, on=Container)
def unexpanded_sub_path(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``subPath`` is taken literally; ``subPathExpr`` expands the container's own variables."""
    del bundle
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
            )


@rule("STORE004", Level.ERROR, on=Container)
def unknown_in_expression(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A variable of ``subPathExpr`` that the container does not have keeps it from starting."""
    declared = {*(each["name"].text for each in container.node["env"]), *bundle.environment(container)}
    from_elsewhere = any(True for _ in container.node["envFrom"])
    for mount in container.node["volumeMounts"]:
        expression = mount["subPathExpr"]
        if expression and mount["subPath"]:
            yield Problem(expression, "subPath and subPathExpr of one mount, which the API refuses", "keep subPathExpr")
        for name in _EXPANSION.findall(expression.text):
            if name not in declared and not from_elsewhere and not injected(name, container):
                yield Problem(
                    expression,
                    f"subPathExpr names $({name}), which is not in the container's env: the container cannot start",
                    f"add {name} to env, for a pod's name with valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}",
                )


@rule("STORE005", Level.ERROR, on=Container)
def block_as_files(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A claim with ``volumeMode: Block`` is a device, no directory."""
    for mount in container.node["volumeMounts"]:
        volume = container.pod.volumes.get(mount["name"].text)
        claim = claim_of(volume, container.pod, bundle) if volume is not None else None
        if claim is not None and claim.block:
            yield Problem(
                mount["mountPath"],
                f"the claim {claim.name!r} is a block device (volumeMode: Block) and is mounted as a directory",
                "use volumeDevices with a devicePath, or a claim with volumeMode: Filesystem",
            )


@rule("STORE006", Level.NOTE, on=Container)
def read_only_claim(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A claim that many pods may only read, mounted as if it could be written."""
    for mount in container.node["volumeMounts"]:
        volume = container.pod.volumes.get(mount["name"].text)
        claim = claim_of(volume, container.pod, bundle) if volume is not None else None
        said = mount["readOnly"].flag or (volume and volume.at("persistentVolumeClaim.readOnly").flag)
        if claim is not None and claim.modes == ["ReadOnlyMany"] and not said:
            yield Problem(
                mount["mountPath"],
                f"the claim {claim.name!r} is ReadOnlyMany and is mounted writable: depending on the driver the pod "
                "does not start, or its writes fail",
                "set readOnly: true here",
            )
