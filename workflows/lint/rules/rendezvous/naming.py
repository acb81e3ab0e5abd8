"""Names that objects give their pods: one for several, or one that nobody can know."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.rendezvous.addresses import dialled
from argosy.workflows.lint.rules.rendezvous.services import talks
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.service import service
from argosy.workflows.manifests.workload import Workload


@rule("REND016", Level.WARNING, on=Workload)
def hostname(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A hostname in the template of several pods."""
    for role in workload.roles:
        held: Node = role.template.at("spec.hostname")
        if not held or held.open or workload.family == "argo" or (role.replicas or 1) < 2:
            continue
        replaced = workload.document.kind == "StatefulSet" or role.job["completionMode"].text == "Indexed"
        if not (replaced or talks(workload, bundle)):
            continue
        yield Problem(
            held,
            f"the controller replaces hostname: {held.text} by a name of its own"
            if replaced
            else f"all {role.replicas} pods are named {held.text}: the name means any of them",
            "take hostname away; an Indexed Job names its pods JOB-0, JOB-1, ...",
        )


@rule("REND017", Level.WARNING, on=Workload)
def random_name(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``generateName`` and a master whose name is written down."""
    metadata = workload.document.metadata
    prefix = metadata["generateName"].text
    if not prefix or metadata["generateName"].open or metadata["name"] or workload.family in ("argo", "pod", "other"):
        return
    for _, given, address in dialled(workload, bundle):
        if address.host.startswith(prefix) and service(bundle, address.host, workload.document) is None:
            yield Problem(
                given.node,
                f"the object's name is {prefix} and five random characters, so no pod is named {address.host}",
                "write metadata.name, or take the name from the pod (a label through fieldRef)",
                inside=given.inside,
            )
