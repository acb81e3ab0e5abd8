"""Where checkpoints and results are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.output import Output, outputs, writers
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.volume import READ_ONLY_SOURCES, claim_of, mount_of, source_of, template_of

_CHECKPOINTS: Final = re.compile(r"/(checkpoints?|ckpts?)$")
_TAKEN_ELSEWHERE: Final = re.compile(
    r"upload|push|hub|s3|gs:|gsutil|gcs|rclone|mlflow|wandb|minio|azcopy|\b(cp|mv|rsync|tar) "
)
"""Words of a command that may carry its output away before the pod ends."""


def _places(container: Container, bundle: Bundle) -> Iterator[tuple[Output, Container, Node | None]]:
    """(path, container that writes it, its mount) for each path whose place is known here."""
    document = container.pod.document
    if document.kind == "TrainJob" or container.init:  # a TrainJob's volumes stand in its runtime
        return
    for output in outputs(container, bundle):
        for writer in writers(container, bundle)[:1]:
            yield output, writer, mount_of(output.path, writer)


def _kept_by_argo(path: str, container: Container) -> bool:
    role = container.pod.role
    kept = [*role.node.at("outputs.artifacts"), *role.node.at("outputs.parameters")] if role is not None else []
    paths = [(each["path"] or each.at("valueFrom.path")).text.rstrip("/") for each in kept]
    return any(each and (path == each or each.startswith(f"{path}/") or path.startswith(f"{each}/")) for each in paths)


def _mounts_by_name(container: Container, known: list[str]) -> Iterator[tuple[Output, Container, Node]]:
    """Mounts whose path says that checkpoints are kept there, where no option of the command names them."""
    if container.init or container.gpus == 0 or container.pod.document.kind == "TrainJob":
        return
    for path, mount in container.mounts.items():
        if _CHECKPOINTS.search(path) and not any(each == path or each.startswith(f"{path}/") for each in known):
            yield Output(path, "the mount", mount["mountPath"]), container, mount


@rule("STORE015", Level.WARNING, on=Container)
def lost(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """What is written into the container or an emptyDir is gone with the pod."""
    places = list(_places(container, bundle))
    for output, writer, mount in [*places, *_mounts_by_name(container, [each.path for each, _, _ in places])]:
        if _kept_by_argo(output.path, container) or output.path.endswith(".log"):
            continue
        where = _gone_with_the_pod(output.path, mount, writer)
        if where:
            yield Problem(
                output.node,
                f"{output.named} {output.path} {where}: it is gone when the pod is restarted or its node is lost",
                "mount a claim there that all ranks reach, or write to an object store",
                level=Level.NOTE if _TAKEN_ELSEWHERE.search(" ".join(each.text for each in writer.argv)) else None,
                inside=output.inside,
            )


def _gone_with_the_pod(path: str, mount: Node | None, writer: Container) -> str:
    if mount is None:
        return "lies in no volume" if path != "/dev" and not path.startswith(("/dev/", "/proc/")) else ""
    volume = writer.pod.volumes.get(mount["name"].text)
    if volume is None or source_of(volume) not in ("emptyDir", "ephemeral"):
        return ""
    others = [each for each in writer.pod.all_containers if each.node is not writer.node]
    shared = any(item["name"].text == mount["name"].text for each in others for item in each.node["volumeMounts"])
    return "" if shared else f"lies in {mount['name'].text!r}, an {source_of(volume)} volume"


@rule("STORE016", Level.WARNING, on=Container)
def cannot_be_written(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A path that is written, in a volume that cannot be."""
    for output, writer, mount in _places(container, bundle):
        why = _read_only(mount, writer, bundle) if mount is not None else ""
        if why:
            yield Problem(
                output.node,
                f"{output.named} {output.path} lies in a volume that cannot be written: {why}",
                "mount a writable volume there, or write elsewhere",
                inside=output.inside,
            )


def _read_only(mount: Node, writer: Container, bundle: Bundle) -> str:
    if mount["readOnly"].flag:
        return "its mount says readOnly: true"
    volume = writer.pod.volumes.get(mount["name"].text)
    if volume is None:
        return ""
    if source_of(volume) in READ_ONLY_SOURCES:
        return f"it is made of a {source_of(volume)}"
    if volume.at("persistentVolumeClaim.readOnly").flag:
        return "persistentVolumeClaim.readOnly is true"
    claim = claim_of(volume, writer.pod, bundle) or template_of(mount["name"].text, writer.pod)
    return f"the claim {claim.name!r} is ReadOnlyMany" if claim is not None and claim.modes == ["ReadOnlyMany"] else ""
