"""Which outputs a group of steps has, and whose standard output anybody reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import any_string
from argosy.workflows.engine.node import OMITTED, SKIPPED, NodeState
from argosy.workflows.engine.operation import Operation, TemplateError
from argosy.workflows.engine.scope import Scope
from argosy.workflows.engine.substitute import nested


def keeps_result(op: Operation, node: NodeState) -> bool:
    """Whether a step beside this one reads its ``outputs.result``; nobody stores it else."""
    template = op.group_templates.get(node.boundary)
    if template is None:
        return False
    name = re.escape(node.display_name.split("(", 1)[0])
    owner = "tasks" if "dag" in template else "steps"
    text = json.dumps(template).replace("\\\\", "")
    return re.search(rf"{owner}(\.{name}|\[\\?['\"]{name}\\?['\"]\])\.outputs\.result", text) is not None


def add_to_scope(op: Operation, scope: Scope, prefix: str, node: NodeState) -> None:
    """What ``PREFIX.…`` may name of a node: its values; its outputs' defaults if it was skipped."""
    source = node
    if node.type == "Retry":
        attempts = op.attempts(node)
        source = attempts[-1] if attempts else node
    scope.add_node(prefix, source)
    scope.values[f"{prefix}.status"] = node.phase
    if node.phase not in (SKIPPED, OMITTED) or not node.template_name:
        return
    template = op.document.scopes.get(node.scope, {}).get(node.template_name, {})
    for parameter in (template.get("outputs") or {}).get("parameters") or []:
        default = (parameter.get("valueFrom") or {}).get("default")
        if default is not None:
            scope.values[f"{prefix}.outputs.parameters.{parameter['name']}"] = any_string(default)


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
        stored = scope.artifacts.get(reference_of(artifact.get("from", "")))
        if stored is not None and "stored" in stored:
            found.setdefault("artifacts", {})[artifact["name"]] = stored["stored"]
        elif not artifact.get("optional"):
            missing = reference_of(artifact.get("from", ""))
            raise TemplateError(f"unable to resolve outputs from scope: Unable to resolve: {{{{{missing}}}}}")
    return found


def reference_of(text: str) -> str:
    """``{{tasks.a.outputs.artifacts.x}}`` without its braces."""
    return text.strip().removeprefix("{{").removesuffix("}}").strip()


def _parameter(parameter: Mapping[str, Any], scope: Scope) -> str:
    source = parameter.get("valueFrom")
    if source is None:
        if parameter.get("value") is not None:
            return any_string(parameter["value"])
        raise TemplateError("output parameters must have a valueFrom specified")
    if source.get("expression"):
        found = _evaluated(str(source["expression"]), scope)
    else:
        found = scope.values.get(reference_of(str(source.get("parameter", ""))))
    if found is not None:
        return found
    if source.get("default") is not None:
        return any_string(source["default"])
    raise TemplateError(
        f"Unable to resolve: {{{{{reference_of(str(source.get('parameter') or source.get('expression')))}}}}}"
    )


def _evaluated(text: str, scope: Scope) -> str | None:
    from argosy.workflows.engine.expression.evaluate import evaluate
    from argosy.workflows.engine.gotext import json_text

    try:
        value = evaluate(text, nested(scope.values))
    except ExpressionError:
        return None
    return value if value is None or isinstance(value, str) else json_text(value)
