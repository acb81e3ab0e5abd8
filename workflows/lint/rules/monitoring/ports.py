"""The port that is read."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.monitor import Monitor, monitor


@rule("MON005", Level.ERROR, on=Document)
def number(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """``port`` is a name; a name of a port has a letter in it."""
    del bundle
    found = monitor(document)
    for endpoint in found.endpoints if found is not None else ():
        port = endpoint["port"]
        if port.number is not None:
            yield Problem(
                port,
                f"port: {port.text} is a number, and the field takes the name of a port"
                + ("" if port.is_string else "; the API refuses it"),
                "write the name of the Service's port (or targetPort for a number)"
                if found is not None and found.of_services
                else "write the name of the container's port (or portNumber for a number)",
            )


@rule("MON006", Level.ERROR, on=Document)
def unknown_port(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """The port's name is one of what is selected."""
    found = monitor(document)
    if found is None:
        return
    names = _names(found, bundle)
    if names is None:
        return
    for endpoint in found.endpoints:
        port = endpoint["port"]
        if port.text and port.number is None and not port.open and port.text not in names:
            where = "the Service that it selects" if found.of_services else "the pods that it selects"
            have = f"its ports are named {', '.join(sorted(names))}" if names else "its ports have no names"
            yield Problem(
                port,
                f"no port is named {port.text!r} in {where} ({have}): nothing is read",
                "write the port's name, or give the port this one",
            )


def _names(found: Monitor, bundle: Bundle) -> set[str] | None:
    """Names of the ports of everything selected; None when nothing is, or a name is filled in later."""
    if found.of_services:
        services = found.services(bundle)
        ports = [port for each in services for port in each.spec["ports"]]
        if not services:
            return None
    else:
        pods = found.pods(bundle)
        containers = [each for pod in pods for each in pod.containers]
        ports = [port for each in containers for port in each.ports]
        if not pods or any(pod.document.kind == "TrainJob" or pod.document.group == "ray.io" for pod in pods):
            return None  # their operators, or the runtime, add ports
    if any(port["name"].open for port in ports):
        return None
    return {port["name"].text for port in ports if port["name"].text}


@rule("MON007", Level.WARNING, on=Document)
def old_target_port(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A PodMonitor's ``targetPort`` is deprecated."""
    del bundle
    found = monitor(document)
    for endpoint in found.endpoints if found is not None and not found.of_services else ():
        if endpoint["targetPort"]:
            yield Problem(
                endpoint["targetPort"],
                "targetPort of a PodMonitor is deprecated",
                "write port for a name, portNumber for a number",
            )
