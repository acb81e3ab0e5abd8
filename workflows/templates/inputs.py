"""Placeholders: an Argo value is always the whole value of one flag, never a part of a longer text."""

from __future__ import annotations

from typing import Any

from hera.workflows import Parameter
from hera.workflows.models import ValueFrom

from argosy.steps.outputs import output_path
from argosy.workflows.spec.run import TrainingRun

DEFAULTS: dict[str, str | None] = {
    "run-id": "",
    "dataset-uri": None,
    "dataset-digest": "",
    "args": "[]",
    "resume-from": "latest",
    "force": "false",
    "event": "",
    "checkpoint-digest": None,
    "value": None,
}
"""Every input of our templates -> its default; None: the caller must give it."""


def given(name: str) -> Any:
    """The template's input ``name`` as a flag's whole value; typed Any because a flag may be of any type.

    Its dollar signs are doubled: the kubelet reads ``$(NAME)`` in arguments as a variable of the container, and
    whoever may set a parameter (an object's key in an event, say) could have a secret written out.
    """
    return f"{{{{=replace(inputs.parameters['{name}'], '$', '$$')}}}}"


def identity(run: TrainingRun) -> dict[str, Any]:
    """The arguments that every step has, as keyword arguments of a ``RunArgs``."""
    return {
        "store_uri": run.storage.uri,
        "name": run.name,
        "run_id": given("run-id"),
        "workflow": "{{workflow.name}}",
        "workflow_uid": "{{workflow.uid}}",
    }


def input_parameters(*names: str) -> list[Parameter]:
    """``run-id`` and these, with their defaults."""
    wanted = [(name, DEFAULTS[name]) for name in ("run-id", *names)]
    return [Parameter(name=n) if value is None else Parameter(name=n, default=value) for n, value in wanted]


def output_parameters(*names: str) -> list[Parameter]:
    """Outputs read from the files that the step writes; "" when it wrote none."""
    return [Parameter(name=name, value_from=ValueFrom(path=output_path(name), default="")) for name in names]


def decision_parameter() -> Parameter:
    """The output that ``when`` reads: without a default, so that a missing decision is an error and not a skip."""
    return Parameter(name="decision", value_from=ValueFrom(path=output_path("decision")))
