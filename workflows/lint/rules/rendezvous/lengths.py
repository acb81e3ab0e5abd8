"""Names that a pod, a Service or a label cannot have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.workload import Role, Workload

_LONGEST: Final = 63
_SERVICE: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@rule("REND080", Level.ERROR, on=Workload)
def too_long(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The names that a controller makes of the object's name."""
    del bundle
    name = workload.document.metadata["name"]
    if not name.text or name.open:
        return
    for role in workload.roles:
        made = _longest(workload, role, name.text)
        if len(made) > _LONGEST:
            yield Problem(
                name,
                f"the pods' name {made} has {len(made)} characters, and a host name has {_LONGEST} at most",
                f"take {len(made) - _LONGEST} characters away",
            )
            return


def _longest(workload: Workload, role: Role, name: str) -> str:
    """The longest host name or label that is made of a role's name."""
    kind = workload.document.kind
    last = max((role.replicas or 1) - 1, 0)
    if kind in ("JobSet", "TrainJob"):
        times = (role.node["replicas"].number or 1) - 1 if kind == "JobSet" else 0
        each = max((role.completions or 1) - 1, 0) if kind == "JobSet" else last
        return f"{name}-{role.name}-{times}-{each}-abcde"
    if workload.document.group == "kubeflow.org":
        return f"{name}-{role.name.lower()}-{last}"
    if kind == "Job" and workload.document.group == "batch":
        return f"{name}-{max((role.completions or 1) - 1, 0)}" if role.job["completionMode"].text == "Indexed" else name
    if kind == "CronJob":
        return f"{name}-12345678901"
    if kind == "StatefulSet":
        return f"{name}-0123456789"
    return f"{name}-{role.name}-{last}" if workload.family == "volcano" else ""


@rule("REND081", Level.ERROR, on=Document)
def no_name(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Characters that the API server refuses in a name."""
    workload = bundle.workload(document)
    if document.kind != "Service" and workload is None:
        return
    node: Node = document.metadata["name"]
    text = node.text
    if not text or node.open or document.host is not None:
        return
    of_services = document.kind == "Service" or (document.group == "kubeflow.org" and document.kind != "MPIJob")
    allowed = _SERVICE if of_services else _SUBDOMAIN
    if _SUBDOMAIN.fullmatch(text) is None:
        return  # no name of any object: API008
    if allowed.fullmatch(text) is None or (document.kind == "Service" and len(text) > _LONGEST):
        begins = "begin with a letter, " if of_services else ""
        yield Problem(
            node,
            f"{text} is no name of a {document.kind}: the API server refuses it",
            f"{begins}take lower-case letters, digits and - only, {_LONGEST} characters at most",
        )
