"""Exit hooks of steps, tasks and workflows: ``hooks.exit`` and the older ``onExit``, which wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.node import NodeState
from argosy.workflows.engine.operation import Operation, TemplateError, Waiting
from argosy.workflows.engine.references import hook_arguments
from argosy.workflows.engine.scope import Scope
from argosy.workflows.engine.substitute import nested


def exit_hook(step: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The hook that runs after the step, if it has one; without arguments of its own it gets the workflow's."""
    if step.get("onExit"):
        return {"template": step["onExit"], "arguments": arguments}
    found = (step.get("hooks") or {}).get("exit")
    if found is None:
        return None
    own = found.get("arguments") or {}
    return dict(found) if own.get("parameters") or own.get("artifacts") else {**found, "arguments": arguments}


def run_exit_hook(
    op: Operation, step: Mapping[str, Any], node: NodeState, scope_name: str, prefix: str, scope: Scope
) -> bool:
    """Advance the hook of a node that has ended. True when there is none or it has ended.

    Raises:
        TemplateError: its condition or arguments cannot be evaluated, or its template cannot be executed.
    """
    hook = exit_hook(step, op.arguments)
    if hook is None:
        return True
    own = Scope(dict(scope.values), dict(scope.artifacts))
    own.values[f"{prefix}.status"] = node.phase
    name = f"{node.name}.onExit"
    try:
        if hook.get("expression") and not _holds(op, str(hook["expression"]), own):
            return True
        attempts = op.attempts(node)
        own.add_values(prefix, (attempts[-1] if attempts else node).outputs)
        arguments = hook_arguments(hook, own, op.globals)
        found = op.execute(op, name, hook, scope_name, arguments, boundary=node.boundary, hooked=True)
    except Waiting:
        return False
    except ExpressionError as error:
        raise TemplateError(str(error)) from None
    finally:
        if op.node(name) is not None:
            op.add_child(node, name)
    return found.fulfilled


def _holds(op: Operation, expression: str, scope: Scope) -> bool:
    from argosy.workflows.engine.expression.evaluate import evaluate_boolean

    return evaluate_boolean(expression, nested({**op.globals, **scope.values}))
