"""Which outputs a group of steps has, and whose standard output anybody reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import any_string, plain_text
from argosy.workflows.engine.node import OMITTED, SKIPPED, NodeState
from argosy.workflows.engine.operation import Operation, TemplateError
from argosy.workflows.engine.references import reference_of
from argosy.workflows.engine.scope import Scope
from argosy.workflows.engine.substitute import nested

CALLS = ("template", "templateRef", "inline")
"""The ways in which a step or task says what it runs."""


def keeps_result(op: Operation, node: NodeState) -> bool:
    """Whether a step beside this one reads its ``outputs.result``; nobody stores it else."""
    template = op.group_templates.get(node.boundary)
    if template is None:
        return False
    name = re.escape(node.display_name.split("(", 1)[0])
    owner = "tasks" if "dag" in template else "steps"
    text = json.dumps(template).replace("\\\\", "")
    return re.search(rf"{owner}(\.{name}|\[\\?['\"]{name}\\?['\"]\])\.outputs\.result", text) is not None


def add_to_scope(
    op: Operation, scope: Scope, prefix: str, node: NodeState, step: Mapping[str, Any], scope_name: str
) -> None:
    """What ``PREFIX.…`` may name of a node: its values; its outputs' defaults, or None, if it was skipped."""
    source = node
    if node.type == "Retry":
        attempts = op.attempts(node)
        source = attempts[-1] if attempts else node
    scope.add_node(prefix, source)
    scope.values[f"{prefix}.status"] = source.phase
    if node.phase not in (SKIPPED, OMITTED) or not any(step.get(key) for key in CALLS):
        return
    _, template = op.document.template(step, scope_name)
    outputs = template.get("outputs") or {}
    for parameter in outputs.get("parameters") or []:
        default = (parameter.get("valueFrom") or {}).get("default")
        value = None if default is None else any_string(default)
        scope.values[f"{prefix}.outputs.parameters.{parameter['name']}"] = value
    if prefix.startswith("steps."):
        for artifact in outputs.get("artifacts") or []:
            scope.artifacts[f"{prefix}.outputs.artifacts.{artifact['name']}"] = {}


def group_outputs(template: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    """Outputs of a DAG or Steps template, taken from its steps.

    Raises:
        TemplateError: a reference that nothing answers and that has no default.
    """
    outputs = template.get("outputs") or {}
    found: dict[str, Any] = {}
    for parameter in outputs.get("parameters") or []:
        found.setdefault("parameters", {})[parameter["name"]] = _parameter(parameter, scope)
    for artifact in outputs.get("artifacts") or []:
        source = _artifact(artifact, scope)
        if source is not None:
            found.setdefault("artifacts", {})[artifact["name"]] = source.get("stored") or source
    return found


@dataclass(frozen=True)
class _Artifact:
    """An artifact as an expression sees it: it can be chosen, nothing else."""

    source: dict[str, Any]


def _artifact(artifact: Mapping[str, Any], scope: Scope) -> dict[str, Any] | None:
    """Where an output artifact of a group comes from; None where it has none."""
    if artifact.get("fromExpression"):
        try:
            value = _chosen(str(artifact["fromExpression"]), scope)
        except ExpressionError as error:
            raise TemplateError(f"unable to resolve outputs from scope: {error}") from None
        if not isinstance(value, _Artifact):
            raise TemplateError(f"unable to resolve outputs from scope: {artifact['name']} is not an artifact")
        return value.source
    name = reference_of(str(artifact.get("from") or ""))
    if name and name not in scope.artifacts and not artifact.get("optional"):
        raise TemplateError(f'unable to resolve outputs from scope: Unable to resolve: "{name}"')
    return scope.artifacts.get(name)


def _chosen(text: str, scope: Scope) -> Any:
    from argosy.workflows.engine.expression.evaluate import evaluate

    return evaluate(text, nested({**scope.values, **{name: _Artifact(each) for name, each in scope.artifacts.items()}}))


def _parameter(parameter: Mapping[str, Any], scope: Scope) -> str:
    source = parameter.get("valueFrom")
    if source is None:
        if parameter.get("value") is not None:
            return any_string(parameter["value"])
        raise TemplateError("output parameters must have a valueFrom specified")
    name = reference_of(str(source.get("parameter") or ""))
    try:
        found = _evaluated(str(source["expression"]), scope) if source.get("expression") else scope.values[name]
    except (ExpressionError, KeyError) as error:
        if source.get("default") is not None:
            return any_string(source["default"])
        raise TemplateError(f'Unable to resolve: "{name}"' if isinstance(error, KeyError) else str(error)) from None
    if found is not None:
        return found
    if source.get("default") is not None:
        return any_string(source["default"])
    raise TemplateError(
        f'output parameter "{parameter["name"]}": "{source.get("parameter", "")}" is an absent optional '
        "(skipped/omitted node output with no default)"
    )


def _evaluated(text: str, scope: Scope) -> str:
    from argosy.workflows.engine.expression.evaluate import evaluate

    value = evaluate(text, nested(scope.values))
    if value is None:
        raise ExpressionError(f'failed to evaluate expression "{text}"')
    return plain_text(value)  # not JSON, as elsewhere
