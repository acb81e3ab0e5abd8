"""From a step or task as it is written to one whose references to earlier ones are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.arguments import ABSENT
from argosy.workflows.engine.artifacts import SOURCES
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.loops import is_loop
from argosy.workflows.engine.operation import TemplateError
from argosy.workflows.engine.scope import Scope
from argosy.workflows.engine.substitute import STEPS_AND_TASKS, Substitution
from argosy.workflows.engine.when import should_execute


def resolved(step: Mapping[str, Any], scope: Scope, names: Mapping[str, str]) -> dict[str, Any]:
    """The step with everything replaced but its hooks, whose turn is when it has ended.

    If its condition is false nothing but the condition is replaced: the rest need not have values then.

    Raises:
        Unanswered: it refers to something of an earlier step or task that has no value (yet).
        ExpressionError: an expression fails, or a value is missing for good.
        TemplateError: an artifact that is not there and not optional.
    """
    substitution = Substitution({**names, **scope.values}, STEPS_AND_TASKS)
    if step.get("when"):
        when = substitution.tree(str(step["when"]))
        try:
            if not should_execute(when):
                return {**step, "when": when}
        except ExpressionError:
            # It may wait for the item of a loop.
            if not is_loop(dict(step)):
                raise
    body = {key: value for key, value in step.items() if key != "hooks"}
    body["arguments"] = _without_absent(step.get("arguments") or {}, scope)
    found: dict[str, Any] = substitution.tree(body)
    found["arguments"] = with_artifacts(found["arguments"], scope)
    return {**found, "hooks": step["hooks"]} if "hooks" in step else found


def _without_absent(arguments: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    """Arguments that are nothing but the output of a skipped node count as not given."""
    return {**arguments, "parameters": [
        {**each, "value": ABSENT} if _is_absent(each.get("value"), scope) else each
        for each in arguments.get("parameters") or []
    ]}  # fmt: skip


def _is_absent(value: Any, scope: Scope) -> bool:
    if not isinstance(value, str) or not value.startswith("{{") or not value.endswith("}}"):
        return False
    name = value[2:-2].strip()
    return name in scope.values and scope.values[name] is None


def hook_arguments(hook: Mapping[str, Any], scope: Scope, names: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of a hook; what nothing answers stays as it stands.

    Raises:
        ExpressionError: a value is missing for good, or no JSON can hold it.
        TemplateError: an artifact that is not there and not optional.
    """
    arguments = _without_absent(hook.get("arguments") or {}, scope)
    return with_artifacts(Substitution({**names, **scope.values}).tree(arguments), scope)


def with_artifacts(arguments: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """``arguments`` with every ``from`` of its artifacts replaced by what it names.

    Raises:
        TemplateError: it names nothing and is not optional.
    """
    kept = []
    for artifact in arguments.get("artifacts") or []:
        if "from" not in artifact:
            kept.append(artifact)
            continue
        name = reference_of(str(artifact["from"]))
        found = scope.artifacts.get(name)
        if found is not None:
            source = {key: found[key] for key in (*SOURCES, "archive") if key in found}
            kept.append({"name": artifact["name"], **source})
        elif not artifact.get("optional"):
            raise TemplateError(f'Unable to resolve: "{name}"')
    return {**arguments, "artifacts": kept} if "artifacts" in arguments else arguments


def reference_of(text: str) -> str:
    """``{{tasks.a.outputs.artifacts.x}}`` without its braces."""
    return text.strip().removeprefix("{{").removesuffix("}}").strip()
