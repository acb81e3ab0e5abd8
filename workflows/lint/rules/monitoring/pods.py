"""``prometheus.io/scrape`` and its like."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.workload import Workload

_PREFIX = "prometheus.io/"


@rule("MON010", Level.WARNING, on=Workload)
def wrong_object(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The annotations are read from pods and Services, and not handed down by what makes them."""
    del bundle
    document = workload.document
    if document.kind == "Pod":
        return
    for key, node in document.annotations.entries.items():
        if key.startswith(_PREFIX):
            yield Problem(
                node,
                f"{key} on a {document.kind}: Prometheus looks for it on pods and Services, and the pods do not get it",
                "move it to the metadata of the pod template",
            )
            return


@rule("MON011", Level.WARNING, on=Pod)
def undeclared_port(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """The annotation's port and the ports that the containers declare."""
    del bundle
    port = pod.annotations[f"{_PREFIX}port"]
    declared = [each["containerPort"].number for container in pod.containers for each in container.ports]
    if port.text and not port.open and port.number is None:
        yield Problem(port, f"{_PREFIX}port: {port.text!r} is no number", "write the number of the port")
    elif port.number is not None and declared and None not in declared and port.number not in declared:
        yield Problem(
            port,
            f"{_PREFIX}port: {port.text}, and the containers declare {', '.join(str(each) for each in declared)}",
            "write the port on which the metrics are, and declare it",
            level=Level.NOTE,
        )
