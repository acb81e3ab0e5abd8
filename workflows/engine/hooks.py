"""Exit hooks of steps and tasks: ``hooks.exit`` and the older ``onExit``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.node import NodeState
from argosy.workflows.engine.operation import Operation, TemplateError, Waiting
from argosy.workflows.engine.scope import Scope
from argosy.workflows.engine.substitute import Substitution, nested


def exit_hook(step: Mapping[str, Any]) -> dict[str, Any] | None:
    """The hook that runs after the step, if it has one."""
    found = (step.get("hooks") or {}).get("exit")
    if found is not None:
        return dict(found)
    return {"template": step["onExit"]} if step.get("onExit") else None


def run_exit_hook(
    op: Operation, step: Mapping[str, Any], node: NodeState, scope_name: str, prefix: str, scope: Scope
) -> bool:
    """Advance the hook of a node that has ended. True when there is none or it has ended."""
    hook = exit_hook(step)
    if hook is None:
        return True
    own = Scope(dict(scope.values), dict(scope.artifacts))
    own.add_node(prefix, op.attempts(node)[-1] if node.type == "Retry" and op.attempts(node) else node)
    own.values[f"{prefix}.status"] = node.phase
    if hook.get("expression") and not _holds(op, str(hook["expression"]), own):
        return True
    arguments = Substitution({**op.globals, **own.values}).tree(hook.get("arguments") or {})
    arguments = with_artifacts(arguments, own)
    name = f"{node.name}.onExit"
    try:
        found = op.execute(op, name, hook, scope_name, arguments, boundary=node.boundary, hooked=True)
    except Waiting:
        return False
    except TemplateError:
        op.add_child(node, name)
        return True
    op.add_child(node, name)
    return found.fulfilled


def _holds(op: Operation, expression: str, scope: Scope) -> bool:
    from argosy.workflows.engine.expression.evaluate import evaluate_boolean
    from argosy.workflows.engine.expression.parser import ExpressionError

    try:
        return evaluate_boolean(expression, nested({**op.globals, **scope.values}))
    except ExpressionError as error:
        raise TemplateError(str(error)) from None


def with_artifacts(arguments: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """``arguments`` with every ``from`` of its artifacts replaced by what it names.

    Raises:
        TemplateError: it names nothing and is not optional.
    """
    from argosy.workflows.engine.results import reference_of

    kept = []
    for artifact in arguments.get("artifacts") or []:
        if "from" not in artifact:
            kept.append(artifact)
            continue
        reference = reference_of(str(artifact["from"]))
        found = scope.artifacts.get(reference)
        if found is not None:
            source = {key: found[key] for key in ("stored", "raw") if key in found}
            kept.append({"name": artifact["name"], **source})
        elif not artifact.get("optional"):
            raise TemplateError(f"Unable to resolve: {{{{{reference}}}}}")
    return {**arguments, "artifacts": kept} if "artifacts" in arguments else arguments
