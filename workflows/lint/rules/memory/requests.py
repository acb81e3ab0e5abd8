"""Requests against limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import AddKey, Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.quantity import quantity

_OVERCOMMITTED: Final = ("cpu", "memory", "ephemeral-storage")


def extended(resource: str) -> bool:
    """Whether it is a resource of which a request must equal the limit: a device, huge pages."""
    domain, slash, _ = resource.partition("/")
    own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return resource.startswith("hugepages-") or (bool(slash) and not own)


@rule("MEM007", Level.WARNING, on=Container)
def device_request(container: Container) -> Iterator[Problem]:
    """A device cannot be overcommitted: its request must equal its limit, and there must be a limit."""
    for name, request in container.requests.entries.items():
        if not extended(name) or not request or request.open:
            continue
        limit = container.limits[name]
        if not limit:
            gke = _on_gke(container)
            yield Problem(
                request,
                f"{name} is requested without a limit, which the API refuses" + " unless GKE Autopilot writes it" * gke,
                f"write limits: {{{name}: {request.text}}}; the request follows from it",
                edits=_limit(container, name, request),
                level=Level.NOTE if gke else None,
            )
        elif None not in (most := quantity(limit.text), asked := quantity(request.text)) and most != asked:
            yield Problem(
                request,
                f"{name}: the request is {request.text} and the limit {limit.text}; the API refuses a device whose "
                "request is not its limit",
                "write the number once, below limits",
                level=Level.ERROR,
            )


def _on_gke(container: Container) -> bool:
    """Whether the pod asks for nodes by GKE's labels: Autopilot's webhook writes the limits of what is requested."""
    return any(key.startswith("cloud.google.com/") for key in container.pod.spec["nodeSelector"].entries)


def _limit(container: Container, name: str, request: Node) -> list[AddKey]:
    value = request.number if request.number is not None else request.text
    if container.limits.is_mapping:
        return [AddKey(container.limits, name, value)]
    if container.limits.exists:
        return []
    return [AddKey(container.node["resources"], "limits", {name: value})]


@rule("MEM008", Level.ERROR, on=Container)
def above_the_limit(container: Container) -> Iterator[Problem]:
    """A request above its limit is refused."""
    for name in _OVERCOMMITTED:
        request, limit = (quantity(each[name].text) for each in (container.requests, container.limits))
        if request is not None and limit is not None and request > limit:
            yield Problem(
                container.requests[name],
                f"{name}: the request of {container.requests[name].text} is above the limit of "
                f"{container.limits[name].text}, which the API refuses",
                "raise the limit or lower the request",
            )
