"""The gate step: compare the metric with the floor and with what is promoted now."""

from __future__ import annotations

from hera.workflows import Container

from argosy.steps.contract.arguments import GateArgs
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import (
    decision_parameter,
    given,
    identity,
    input_parameters,
    output_parameters,
)
from argosy.workflows.templates.needs import need_evaluation
from argosy.workflows.templates.retries import step_retries


def gate(run: TrainingRun) -> Container:
    """Template ``gate``.

    Inputs: ``checkpoint-digest``, ``value`` (the metric), ``run-id``. Outputs: ``decision`` (``promote`` or
    ``refuse``), ``reason``.

    Raises:
        InputError: the run has no evaluation.
    """
    evaluation = need_evaluation(run, "gate")
    args = GateArgs(
        checkpoint_digest=given("checkpoint-digest"),
        metric=evaluation.metric,
        value=given("value"),
        direction=evaluation.direction,
        floor=evaluation.floor,
        baseline=evaluation.baseline,
        pointer=run.promotion.pointer,
        **identity(run),
    )
    return step_container(
        run,
        "gate",
        args,
        retries=step_retries(),
        inputs=input_parameters("checkpoint-digest", "value"),
        outputs=[decision_parameter(), *output_parameters("reason")],
    )
