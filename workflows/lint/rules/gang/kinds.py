"""Kinds that keep pods alive, used for what should end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.ranks import launches
from argosy.workflows.lint.view.workload import Workload

_SERVES: Final = ("serve", "server", "api", "infer", "vllm", "triton", "gradio", "uvicorn")


@rule("GANG021", Level.WARNING, on=Workload)
def never_ends(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A Deployment starts its containers again when they have ended well."""
    if workload.document.kind not in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"):
        return
    for role in workload.roles:
        for _, process in launches(role.pod, bundle):
            if any(part in word.lower() for word in process.words for part in _SERVES):
                continue
            yield Problem(
                workload.document.root["kind"],
                f"{process.program} in a {workload.document.kind}: a container that has ended is started again, so the "
                "training begins anew when it is done, and its failures are never counted",
                "use a JobSet, an Indexed Job or a TrainJob",
            )
            return


@rule("GANG022", Level.NOTE, on=Workload)
def one_pod_of_many(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Plain pods that are a gang by name only."""
    if workload.document.kind != "Pod" or workload.document.host is not None:
        return
    for container, process in launches(workload.roles[0].pod, bundle):
        nodes = process.option("nnodes") or ""
        if nodes.isdecimal() and int(nodes) > 1:
            yield Problem(
                container.node["command"] if container.node["command"] else container.node,
                f"a plain Pod as one of {nodes} nodes: nothing starts it again when its node is lost, and nothing "
                "holds the pods together",
                "make the pods of a JobSet or an Indexed Job",
            )
            return
