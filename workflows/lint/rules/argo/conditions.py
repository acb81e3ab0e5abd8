"""``successCondition`` and ``failureCondition``: label selectors over the object's fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.argo.resources import resource_templates
from argosy.workflows.lint.schema.fields import type_of_kind
from argosy.workflows.manifests.argo_templates import ArgoWorkflow
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.outcome import Outcome, outcome

_REQUIREMENT: Final = re.compile(
    r"!?\s*([A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)\s*(?:(==|=|!=|>|<)\s*([\w.:+-]*)|\s(in|notin)\s*\(([^()]*)\))?"
)


def _requirements(node: Node) -> list[str]:
    return [each.strip() for each in re.split(r",(?![^()]*\))", node.text) if each.strip()]


def _conditions(workflow: ArgoWorkflow, bundle: Bundle) -> Iterator[tuple[Node, Document | None]]:
    for _, resource, made in resource_templates(workflow, bundle):
        for key in ("successCondition", "failureCondition"):
            if resource[key].text and "{{" not in resource[key].text:
                yield resource[key], made


@rule("ARGO023", Level.ERROR, on=ArgoWorkflow)
def no_selector(workflow: ArgoWorkflow, bundle: Bundle) -> Iterator[Problem]:
    """A condition has the form of a label selector, in which a path with brackets or quotes cannot stand."""
    for node, made in _conditions(workflow, bundle):
        for each in _requirements(node):
            if _REQUIREMENT.fullmatch(each) is None:
                known = outcome(made) if made is not None else None
                yield Problem(
                    node,
                    f"{each!r} cannot be read: a condition is a label selector, a key of letters, digits, '.', '-' and "
                    "'_' with ==, !=, <, >, in or notin",
                    f"for a {made.kind} write {known.success}"
                    if known is not None and made is not None and known.success
                    else "compare one field of the status that holds a single value",
                )
            elif re.search(r"conditions\.\d+\.", each):
                yield Problem(
                    node,
                    f"{each!r} asks for a condition by its place in the list, which depends on what happened before",
                    "compare a field of the status that holds a single value",
                    level=Level.WARNING,
                )


@rule("ARGO024", Level.WARNING, on=ArgoWorkflow)
def never(workflow: ArgoWorkflow, bundle: Bundle) -> Iterator[Problem]:
    """A field that the kind's status does not have, or a value that the field never has."""
    for node, made in _conditions(workflow, bundle):
        known = outcome(made) if made is not None and type_of_kind(made.api_version, made.kind) else None
        for each in _requirements(node) if known is not None else ():
            found = _REQUIREMENT.fullmatch(each)
            if found is None or known is None or made is None or not found[1].startswith("status."):
                continue
            why = _impossible(found, known, made)
            if why:
                hint = known.failure if node.key == "failureCondition" else known.success
                yield Problem(
                    node,
                    f"{each!r} is never true: {why}",
                    f"write {hint}" if hint else "wait for the JobSet of the same name instead (action: get)",
                    level=None if made.group in ("", "batch", "apps") else Level.NOTE,  # operators' status changes
                )


def _impossible(found: re.Match[str], known: Outcome, made: Document) -> str:
    path = found[1].removeprefix("status.")
    first = path.partition(".")[0]
    if first not in known.fields:
        return f"the status of a {made.kind} has no {first!r}"
    allowed = known.values.get(path)
    wanted = [each.strip() for each in (found[5] or found[3] or "").split(",") if each.strip()]
    wrong = [each for each in wanted if allowed is not None and each not in allowed]
    if wrong and found[2] != "!=" and found[4] != "notin" and allowed is not None:
        return f"{path} is one of {', '.join(allowed)}, and not {wrong[0]!r}"
    if first == "replicaStatuses" and path.count(".") > 0:
        return _role(path.split(".")[1], made)
    return ""


def _role(role: str, made: Document) -> str:
    roles = [name for key, node in made.spec.entries.items() if key.endswith("ReplicaSpecs") for name in node.entries]
    return f"the {made.kind} has no replica type {role!r}" if roles and role not in roles else ""
