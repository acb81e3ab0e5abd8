"""The promote step: move the pointer."""

from __future__ import annotations

from hera.workflows import Container

from argosy.steps.contract.arguments import PromoteArgs
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import given, identity, input_parameters, output_parameters
from argosy.workflows.templates.needs import need_evaluation
from argosy.workflows.templates.retries import step_retries


def promote(run: TrainingRun) -> Container:
    """Template ``promote``.

    Inputs: ``checkpoint-digest``, ``value`` (the metric), ``run-id``. Outputs: ``promoted-digest``.

    Raises:
        InputError: the run has no evaluation.
    """
    args = PromoteArgs(
        pointer=run.promotion.pointer,
        checkpoint_digest=given("checkpoint-digest"),
        metric=need_evaluation(run, "promote").metric,
        value=given("value"),
        **identity(run),
    )
    return step_container(
        run,
        "promote",
        args,
        retries=step_retries(),
        inputs=input_parameters("checkpoint-digest", "value"),
        outputs=output_parameters("promoted-digest"),
    )
