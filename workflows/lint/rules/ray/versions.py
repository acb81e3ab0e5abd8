"""Which Ray the head, the workers and the operator take each other for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.image import image
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload

_TAG: Final = re.compile(r"(\d+\.\d+\.\d+)(?:[.-](?:\w+-)?(py3\d+))?.*")


@rule("RAY004", Level.WARNING, on=Workload)
def versions(workload: Workload) -> Iterator[Problem]:
    """A head and workers of different versions of Ray or Python, which do not join; another one in ``rayVersion``."""
    if workload.family != "ray":
        return
    known = [(role, *found) for role in workload.roles if (found := _version(role)) is not None]
    head = next((each for each in known if each[0].name == "head"), None)
    for role, node, ray, python in known if head is not None else ():
        of_head = head[2] if head is not None else ""
        other_python = head is not None and head[3] and python and head[3] != python
        if ray != of_head or other_python:
            this, that = (ray, of_head) if ray != of_head else (python, head[3] if head is not None else "")
            yield Problem(
                node,
                f"the {role.name} has {this} and the head {that}: Ray lets no node of another version join",
                "take the same tag for the head and all workers",
            )
    for place in ("rayVersion", "rayClusterSpec.rayVersion", "rayClusterConfig.rayVersion"):
        said = workload.spec.at(place)
        told = _TAG.fullmatch(said.text)  # who writes the image's tag says its version, too
        if said and not said.open and head is not None and (told[1] if told else said.text) != head[2]:
            yield Problem(
                said,
                f"rayVersion {said.text} and Ray {head[2]} in the head's image: KubeRay prepares the pods for another "
                "version",
                f"write rayVersion: '{head[2]}'",
                level=Level.WARNING,
            )


def _version(role: Role) -> tuple[Node, str, str] | None:
    """(where, Ray, Python) as the tag of one of Ray's own images says it; other images' tags count their own way."""
    containers = role.pod.containers
    node = containers[0].image if containers else Node(None, role.node.origin)
    found = image(node.text)
    match = _TAG.fullmatch(found.tag)
    if node.open or match is None or not re.search(r"(^|/)rayproject/ray(-ml|-llm)?$", found.repository):
        return None
    return node, match[1], match[2] or ""
