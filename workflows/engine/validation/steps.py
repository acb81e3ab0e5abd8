"""Templates of steps: each sees what those before it did, in its own group too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from argosy.workflows.engine.validation.arguments import check_arguments
from argosy.workflows.engine.validation.calls import check_hooks, has_exit_hook, inline_inputs, publish
from argosy.workflows.engine.validation.loops import is_aggregate, item_names
from argosy.workflows.engine.validation.names import wrong_step_name
from argosy.workflows.engine.validation.refusal import Refused
from argosy.workflows.engine.validation.variables import check_variables

if TYPE_CHECKING:
    from argosy.workflows.engine.validation.validator import Validator


def check_steps(
    validator: Validator, template: Mapping[str, Any], scope: str, path: str, names: dict[str, str]
) -> None:
    """Judge the steps of a template one after the other; ``names`` grows by what each makes known."""
    seen: set[str] = set()
    for number, group in enumerate(template["steps"]):
        for index, step in enumerate(group or []):
            with validator.refusals.gathered():
                _check_step(validator, step or {}, scope, f"{path}.steps[{number}][{index}]", names, seen)


def _check_step(
    validator: Validator, step: Mapping[str, Any], scope: str, where: str, names: dict[str, str], seen: set[str]
) -> None:
    name = str(step.get("name") or "")
    if not name:
        raise Refused(f"{where}.name: missing; a name is required")
    if name in seen:
        raise Refused(f"{where}.name: {name!r} stands twice; names are unique")
    if wrong_step_name(name):
        raise Refused(f"{where}.name: {name!r}: {wrong_step_name(name)}")
    seen.add(name)
    prefix = f"steps.{name}"
    names[f"{prefix}.status"] = ""
    names.update(dict.fromkeys(item_names(step, where), ""))
    check_arguments(step.get("arguments") or {}, f"{where}.arguments")
    called = validator.holder(step, scope, None, where)
    try:
        if has_exit_hook(step):
            publish(validator, called, prefix, names)
        check_hooks(step.get("hooks"), where)
        check_variables(step, where, {**names, **dict.fromkeys(inline_inputs(step), "")}, validator.global_names)
    finally:
        # A mistake in this step is no mistake of those that refer to it.
        publish(validator, called, prefix, names, loop=is_aggregate(step))
    validator.holder(step, scope, step.get("arguments") or {}, where)
