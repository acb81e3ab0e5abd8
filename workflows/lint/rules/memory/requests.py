"""Requests against limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import AddKey, Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.quantity import quantity

_OVERCOMMITTED: Final = ("cpu", "memory", "ephemeral-storage")


def extended(resource: str) -> bool:
    """Whether it is a resource of which a request must equal the limit: a device, huge pages."""
    domain, slash, _ = resource.partition("/")
    own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return resource.startswith("hugepages-") or (bool(slash) and not own)


@rule("MEM006", Level.NOTE, on=Container)
def no_memory_limit(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A GPU container without a memory limit can take the whole node down with it."""
    del bundle
    if container.gpus and not container.init and not container.limits["memory"]:
        yield Problem(
            container.limits["memory"],
            "a container with GPUs and no memory limit: when it leaks, the kernel picks a victim on the whole node",
            "set limits.memory, what /dev/shm may take included",
        )


@rule("MEM007", Level.ERROR, on=Container)
def device_request(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A device cannot be overcommitted: its request must equal its limit, and there must be a limit."""
    del bundle
    for name, request in container.requests.entries.items():
        if not extended(name) or not request or request.open:
            continue
        limit = container.limits[name]
        if not limit:
            yield Problem(
                request,
                f"{name} is requested without a limit, which the API refuses",
                f"write limits: {{{name}: {request.text}}}; the request follows from it",
                edits=_limit(container, name, request),
            )
        elif not limit.open and quantity(limit.text) != quantity(request.text):
            yield Problem(
                request,
                f"{name}: the request is {request.text} and the limit {limit.text}; the API refuses a device whose "
                "request is not its limit",
                "write the number once, below limits",
            )


def _limit(container: Container, name: str, request: Node) -> list[AddKey]:
    value = request.number if request.number is not None else request.text
    if container.limits.is_mapping:
        return [AddKey(container.limits, name, value)]
    if container.limits.exists:
        return []
    return [AddKey(container.node["resources"], "limits", {name: value})]


@rule("MEM008", Level.ERROR, on=Container)
def above_the_limit(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A request above its limit is refused."""
    del bundle
    for name in _OVERCOMMITTED:
        request, limit = (quantity(each[name].text) for each in (container.requests, container.limits))
        if request is not None and limit is not None and request > limit:
            yield Problem(
                container.requests[name],
                f"{name}: the request of {container.requests[name].text} is above the limit of "
                f"{container.limits[name].text}, which the API refuses",
                "raise the limit or lower the request",
            )


@rule("MEM009", Level.NOTE, on=Container)
def burstable(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A pod whose memory request is below its limit is killed before those that asked for all they use."""
    workload = bundle.workload(container.pod.document)
    if container.init or not container.gpus or workload is None or not workload.gang:
        return
    request, limit = (quantity(each["memory"].text) for each in (container.requests, container.limits))
    if request is not None and limit is not None and request < limit:
        yield Problem(
            container.requests["memory"],
            f"a rank that requests {container.requests['memory'].text} of memory and may use "
            f"{container.limits['memory'].text} is among the first to be killed when the node runs short, and takes "
            "the gang with it",
            "request as much memory as the limit allows",
        )


@rule("MEM010", Level.ERROR, on=Container)
def huge_pages_alone(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Huge pages need a request for cpu or memory beside them."""
    del bundle
    held = {**container.requests.entries, **container.limits.entries}
    pages = next((node for name, node in held.items() if name.startswith("hugepages-")), None)
    if pages is not None and not {"cpu", "memory"} & set(held):
        yield Problem(
            pages,
            "huge pages without cpu or memory beside them, which the API refuses",
            "add limits for cpu and memory",
        )
