"""What steps and tasks have in common: they call a template, with hooks, and see what others did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from argosy.workflows.engine.validation.arguments import items_of
from argosy.workflows.engine.validation.outputs import global_outputs, outputs_of
from argosy.workflows.engine.validation.refusal import Refused

if TYPE_CHECKING:
    from argosy.workflows.engine.validation.validator import Validator


def has_exit_hook(holder: Mapping[str, Any]) -> bool:
    """Whether something is to run when a step or task has ended."""
    return bool(holder.get("onExit")) or (holder.get("hooks") or {}).get("exit") is not None


def check_hooks(hooks: Mapping[str, Any] | None, where: str) -> None:
    """A hook other than ``exit`` says when it runs.

    Raises:
        Refused: it does not.
    """
    for name, hook in (hooks or {}).items():
        if name != "exit" and not (hook or {}).get("expression"):
            raise Refused(f"{where}.hooks.{name}.expression: required; only the hook 'exit' needs none")


def inline_inputs(holder: Mapping[str, Any]) -> list[str]:
    """Names of the inputs of a template that is written inline, for its own tags."""
    inputs = (holder.get("inline") or {}).get("inputs")
    return [f"inputs.parameters.{each.get('name')}" for each in items_of(inputs, "parameters")]


def publish(
    validator: Validator, template: Mapping[str, Any] | None, prefix: str, names: dict[str, str], *,
    loop: bool = False, ended: bool = False,
) -> None:  # fmt: skip
    """Add to ``names`` what can be referred to once ``prefix`` has run, and to the workflow's names its global ones."""
    made, wild = global_outputs(template)
    for name in made:
        validator.global_names[name] = validator.placeholders.next()
    names.update(dict.fromkeys((*outputs_of(template, prefix, loop=loop, ended=ended), *made, *wild), ""))
