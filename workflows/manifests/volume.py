"""Volumes of a pod, and the claims behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod

READ_ONLY_SOURCES: Final = ("configMap", "secret", "downwardAPI", "projected", "image")


@dataclass(frozen=True)
class VolumeClaim:
    """A PersistentVolumeClaim: an object, or a template of one.

    Args:
        name: of the claim, or of the template.
        spec: its spec.
        template: whether each pod (or each workflow) gets one of its own.
    """

    name: str
    spec: Node
    template: bool = False

    @property
    def modes(self) -> list[str]:
        """``accessModes``."""
        return [each.text for each in self.spec["accessModes"]]

    @property
    def block(self) -> bool:
        """Whether it is a raw block device."""
        return self.spec["volumeMode"].text == "Block"


def source_of(volume: Node) -> str:
    """``emptyDir``, ``persistentVolumeClaim``, …; ``""`` for a volume without a source."""
    return next((key for key in volume.entries if key != "name"), "")


def claims_in(document: Document) -> Iterator[VolumeClaim]:
    """The claims that a document holds: itself, or the templates of a StatefulSet, a Workflow, a JobSet, a pod."""
    if document.is_a("PersistentVolumeClaim", ""):
        yield VolumeClaim(document.name, document.spec)
        return
    spec = document.spec["workflowSpec"] or document.spec
    templates = [*spec["volumeClaimTemplates"], *spec.at("leaderWorkerTemplate.volumeClaimTemplates")]
    for holder in (spec, spec.at("template.spec")):  # a JobSet, and the one in a TrainingRuntime
        templates += [each for policy in holder["volumeClaimPolicies"] for each in policy["templates"]]
    for each in templates:
        yield VolumeClaim(each.at("metadata.name").text, each["spec"], template=True)
    if document.group == "batch.volcano.sh":
        for volume in spec["volumes"]:
            if volume["volumeClaim"]:
                yield VolumeClaim(volume["volumeClaimName"].text, volume["volumeClaim"])


def claim_of(volume: Node, pod: Pod, bundle: Bundle) -> VolumeClaim | None:
    """The claim behind a volume; None for another volume, or when the claim is not among the files."""
    name = volume.at("persistentVolumeClaim.claimName")
    if volume.at("ephemeral.volumeClaimTemplate"):
        return VolumeClaim(volume["name"].text, volume.at("ephemeral.volumeClaimTemplate.spec"), template=True)
    if not name or name.open:
        return None
    found = bundle.find("PersistentVolumeClaim", name.text, pod.document)
    return VolumeClaim(name.text, found.spec) if found is not None else None


def template_of(name: str, pod: Pod) -> VolumeClaim | None:
    """The claim template that makes the pod's volume of this name."""
    return next((each for each in claims_in(pod.document) if each.template and each.name == name), None)


def mount_of(path: str, container: Container) -> Node | None:
    """The mount in which a path lies: the longest that is above it."""
    above = [each for each in container.mounts if path == each or path.startswith(f"{each}/")]
    return container.mounts[max(above, key=len)] if above else None
