"""Dashboards and notebooks that anyone can open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.arguments import arguments
from argosy.workflows.lint.view.container import Container

_OPEN_PORTS: Final = {
    8265: "Ray's dashboard, which runs any job that it is sent",
    10001: "Ray's client port, which runs any code that it is sent",
    6379: "Redis or Ray's store, which asks for no password by default",
    8888: "Jupyter",
    6006: "TensorBoard, which has no login",
    5000: "MLflow, which has no login by default",
    2746: "the Argo server",
}
_TOKENS: Final = ("token", "password")


@rule("SEC024", Level.WARNING, on=Document)
def outside(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A Service that brings a dashboard out of the cluster."""
    del bundle
    if document.is_a("Service", ""):
        yield from _exposed(document.spec["type"], document.spec)
    elif document.group == "ray.io":
        cluster = document.spec["rayClusterSpec"] or document.spec["rayClusterConfig"] or document.spec
        kind = cluster.at("headGroupSpec.serviceType")
        if kind.text in ("LoadBalancer", "NodePort"):
            yield Problem(
                kind,
                f"serviceType: {kind.text} opens Ray's dashboard and client port outside of the cluster, and both run "
                "whatever they are sent",
                "leave it at ClusterIP and use kubectl port-forward",
            )


def _exposed(kind: Node, spec: Node) -> Iterator[Problem]:
    if kind.text not in ("LoadBalancer", "NodePort"):
        return
    for port in spec["ports"]:
        numbers = [each.number for each in (port["port"], port["targetPort"]) if each.number in _OPEN_PORTS]
        if numbers and numbers[0] is not None:
            yield Problem(
                port["port"],
                f"a {kind.text} opens port {numbers[0]} outside of the cluster: {_OPEN_PORTS[numbers[0]]}",
                "use ClusterIP with kubectl port-forward, or an ingress that asks who is there",
            )
            return


@rule("SEC025", Level.WARNING, on=Container)
def notebook(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Jupyter without a token is a shell for whoever reaches its port."""
    for process in bundle.processes(container):
        if not any("jupyter" in word for word in process.words):
            continue
        for name, value in arguments(process):
            if name.rpartition(".")[2] in _TOKENS and name != "token" and not value.strip("'\""):
                yield Problem(
                    process.node,
                    f"Jupyter with an empty {name}: whoever reaches the port runs code in the pod",
                    "leave its token on; it is in the log",
                    inside=name if process.in_shell else "",
                )
                return
